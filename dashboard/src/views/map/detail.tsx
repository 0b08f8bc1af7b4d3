/** The inspector: who owns the target under the pointer, who should, why, and for how long. */
import { useEffect, useState } from 'preact/hooks';
import type { TargetDetail } from '../../../../src/client/operating-messages.ts';
import { client } from '../../data/access.ts';
import { type SeenTarget, targets, version } from '../../data/fleet.ts';
import { now } from '../../data/now.ts';
import { nameOf, withNames } from '../../data/palette.ts';
import { STATES, wordsFor } from '../../data/states.ts';
import { termsOf, timeLeft } from '../../data/ttl.ts';
import { spanOf } from '../../data/words.ts';
import { Meter, Owner } from '../../parts/basics.tsx';
import { hrefOf } from '../../router.ts';
import { pointed, spoken } from './pointed.ts';

/** If the pointer rests this long, the server is asked for more. */
const REST_MS = 300;

export function Detail() {
  version.value;
  const target = targets.get(pointed.value ?? '');
  return (
    <aside class="map-detail" aria-label="Target under the pointer">
      <Spoken />
      {target === undefined ? (
        <p class="quiet">
          Point at a target, or use the arrow keys, to see its owner and its lease.
        </p>
      ) : (
        <Facts target={target} />
      )}
    </aside>
  );
}

function Facts({ target }: { target: SeenTarget }) {
  const { id, owner, planned, preferred, pinned, movedFrom } = target;
  return (
    <>
      <a class="map-detail-id mono" href={hrefOf('targets', id)} title={id}>
        {id}
      </a>
      <dl>
        <Fact name="owner">
          <Owner id={owner} />
        </Fact>
        <Fact name="lease left">
          <TimeOf target={target} />
        </Fact>
        {planned !== owner && (
          <Fact name="planned owner">
            <Owner id={planned} none="none" />
          </Fact>
        )}
        {preferred !== owner && (
          <Fact name="preferred owner">
            <Owner id={preferred} none="none" />
          </Fact>
        )}
        {pinned !== null && (
          <Fact name="pinned to">
            <Owner id={pinned} />
          </Fact>
        )}
        {movedFrom !== null && movedFrom !== owner && (
          <Fact name="former owner">
            <Owner id={movedFrom} />
          </Fact>
        )}
        <Fact name="state">
          <Why target={target} key={`${id} ${target.reason} ${owner}`} />
        </Fact>
      </dl>
    </>
  );
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function TimeOf({ target }: { target: SeenTarget }) {
  const left = timeLeft(target, termsOf(target.owner), now.value);
  if (left === null) return <>{target.owner === null ? 'no lease' : 'never expires'}</>;
  return (
    <span class="map-detail-time">
      <Meter share={left.share} label="Lease left" />
      {left.isAtLeast && 'at least '}
      {spanOf(left.ms < 1_000 ? Math.round(left.ms / 10) * 10 : left.ms)}
    </span>
  );
}

/** In a word at once; in the words of the server a moment later. */
function Why({ target }: { target: SeenTarget }) {
  const [detail, setDetail] = useState<TargetDetail | null>(null);
  useEffect(() => {
    const end = new AbortController();
    const timer = setTimeout(() => {
      client.target(target.id, { signal: end.signal }).then(setDetail, () => {});
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      end.abort();
    };
  }, [target.id]);
  return (
    <>
      <strong>{wordsFor(target).join(', ')}</strong>:{' '}
      {detail === null ? STATES[target.reason].why : withNames(detail.why)}
    </>
  );
}

/** For screen readers. */
function Spoken() {
  const target = targets.get(spoken.value ?? '');
  return (
    <p class="visually-hidden" aria-live="polite">
      {target !== undefined &&
        `${target.id}: ${wordsFor(target).join(', ')}, ${target.owner === null ? 'no owner' : nameOf(target.owner)}`}
    </p>
  );
}
