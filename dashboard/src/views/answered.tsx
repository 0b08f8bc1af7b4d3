/** How views show that an answer is not there yet, is old, or did not come. */
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
  /** Where the server says that there is no such thing. */
  missing?: ComponentChildren;
  children: (value: T) => ComponentChildren;
}) {
  const { value, error } = asked;
  const status = error instanceof HoldfastApiError ? error.status : null;
  if (status === 404 && missing !== undefined) return <>{missing}</>;
  if (status === 403)
    return (
      <Empty title="This token may not see that.">
        It belongs to a tenant, and this is about the fleet as a whole.
      </Empty>
    );
  if (value === null && error === null) return <p class="quiet">Asking …</p>;
  return (
    <>
      {error !== null && (
        <p class="notice bad" role="alert">
          {messageOf(error)}{' '}
          <button type="button" onClick={() => asked.again()}>
            Ask again
          </button>
        </p>
      )}
      {value !== null && children(value)}
    </>
  );
}

/** How old what is shown is, beside it. */
export function Age({ asked: { seenAtMs } }: { asked: Asked<unknown> }) {
  if (seenAtMs === null) return null;
  return now.value - seenAtMs < 1_000 ? (
    <>as of now</>
  ) : (
    <>
      as of <Ago at={seenAtMs} />
    </>
  );
}
