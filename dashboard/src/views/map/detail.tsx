/** The target that somebody points at: who has it, who should, why, and for how long. */
import { useEffect, useState } from 'preact/hooks';
import type { TargetDetail } from '../../../../src/client/operating-messages.ts';
import { client } from '../../data/access.ts';
import { type SeenTarget, targets, version } from '../../data/fleet.ts';
import { now } from '../../data/now.ts';
import { nameOf } from '../../data/palette.ts';
import { STATES, wordsFor } from '../../data/states.ts';
import { termsOf, timeLeft } from '../../data/ttl.ts';
import { spanOf } from '../../data/words.ts';
import { Meter, Owner } from '../../parts/basics.tsx';
import { hrefOf } from '../../router.ts';
import { pointed, spoken } from './pointed.ts';

/** Who rests on a target this long wants to know more of it. */
const REST_MS = 300;

export function Detail() {
  version.value;
  const target = targets.get(pointed.value ?? '');
  return (
    <aside class="map-detail" aria-label="The target that is pointed at">
      <Spoken />
      {target === undefined ? (
        <p class="quiet">
          Point at a target, or go over them with the arrow keys: here it says who has it and why.
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
        <Fact name="left">
          <TimeOf target={target} />
        </Fact>
        <Fact name="planned">{planned === owner ? 'the same' : <Owner id={planned} />}</Fact>
        <Fact name="preferred">{preferred === owner ? 'the same' : <Owner id={preferred} />}</Fact>
        {pinned !== null && (
          <Fact name="pinned to">
            <Owner id={pinned} />
          </Fact>
        )}
        {movedFrom !== null && movedFrom !== owner && (
          <Fact name="before">
            <Owner id={movedFrom} />
          </Fact>
        )}
        <Fact name="why">
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
  if (left === null) return <>{target.owner === null ? 'no lease' : 'it never ends'}</>;
  return (
    <span class="map-detail-time">
      <Meter share={left.share} label="of the lease is left" />
      {left.isAtLeast && 'at least '}
      {spanOf(left.ms < 1_000 ? Math.round(left.ms / 10) * 10 : left.ms)}
    </span>
  );
}

/** In a word at once; in the server's words for who stays. */
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
      <strong>{wordsFor(target).join(', ')}</strong>: {detail?.why ?? STATES[target.reason].why}
    </>
  );
}

/** For those who do not see where the keyboard is. */
function Spoken() {
  const target = targets.get(spoken.value ?? '');
  return (
    <p class="visually-hidden" aria-live="polite">
      {target !== undefined &&
        `${target.id}: ${wordsFor(target).join(', ')}, ${target.owner === null ? 'nobody has it' : nameOf(target.owner)}`}
    </p>
  );
}
