/** How views show that an answer has not come yet, is old, or failed. */
import type { ComponentChildren } from 'preact';
import { HoldfastApiError } from '../../../src/client/index.ts';
import { messageOf } from '../data/access.ts';
import type { Asked } from '../data/asked.ts';
import { now } from '../data/now.ts';
import { Ago, Empty } from '../parts/basics.tsx';

export function Answered<T>({
  asked,
  missing,
  children,
}: {
  asked: Asked<T>;
  /** What to show if the server says 404. */
  missing?: ComponentChildren;
  children: (value: T) => ComponentChildren;
}) {
  const { value, error } = asked;
  const status = error instanceof HoldfastApiError ? error.status : null;
  if (status === 404 && missing !== undefined) return <>{missing}</>;
  if (status === 403)
    return (
      <Empty title="Your token does not allow this view.">
        It belongs to one tenant, and this view is about the whole fleet.
      </Empty>
    );
  if (value === null && error === null) return <p class="quiet">Loading data …</p>;
  return (
    <>
      {error !== null && (
        <p class="notice bad" role="alert">
          {messageOf(error)}{' '}
          <button type="button" onClick={() => asked.again()}>
            Try again
          </button>
        </p>
      )}
      {value !== null && children(value)}
    </>
  );
}

/** How old the data are. */
export function Age({ asked: { seenAtMs } }: { asked: Asked<unknown> }) {
  if (seenAtMs === null) return null;
  return now.value - seenAtMs < 1_000 ? (
    <>updated just now</>
  ) : (
    <>
      updated <Ago at={seenAtMs} />
    </>
  );
}
