/** The slots of each pool: which session has which, on which worker, and when its lease expires unless the worker renews it. */
import type { ApiSlot } from '../../../../src/client/operating-messages.ts';
import { client } from '../../data/access.ts';
import { useArrivals } from '../../data/arrivals.ts';
import { useAsked } from '../../data/asked.ts';
import { markOf, nameOf } from '../../data/palette.ts';
import { sessionLabel } from '../../data/session-lookup.ts';
import { AsCli } from '../../parts/as-cli.tsx';
import { Empty, Left, Meter, Panel } from '../../parts/basics.tsx';
import { hrefOf } from '../../router.ts';
import { Age, Answered } from '../answered.tsx';

/** Renewals are not in the log. */
const EVERY_MS = 2_000;

export function Slots() {
  const asked = useAsked({ ask: (signal) => client.slots({ signal }), everyMs: EVERY_MS });
  useArrivals(['session', 'pipeline'], () => asked.again(300));
  return (
    <Panel title="Slots" aside={<Age asked={asked} />}>
      <Answered asked={asked}>
        {(slots) =>
          slots.length === 0 ? (
            <Empty title="This server has no worker, so it knows no pools.">
              List the pools of your configuration from any host:
              <AsCli command="holdfast slots" />
            </Empty>
          ) : (
            <div class="pools">
              {[...new Set(slots.map(({ pool }) => pool))].map((pool) => (
                <Pool
                  key={pool}
                  pool={pool}
                  slots={slots.filter((slot) => slot.pool === pool)}
                  seenAtMs={asked.seenAtMs ?? 0}
                />
              ))}
            </div>
          )
        }
      </Answered>
    </Panel>
  );
}

function Pool({
  pool,
  slots,
  seenAtMs,
}: {
  pool: string;
  slots: readonly ApiSlot[];
  seenAtMs: number;
}) {
  const taken = slots.filter(({ state }) => state !== 'free').length;
  const isFull = taken === slots.length;
  return (
    <section class="pool" aria-label={`Pool ${pool}`}>
      <h3>
        {pool}{' '}
        <span class={isFull ? 'badge warn' : 'badge'}>
          {taken} of {slots.length} taken{isFull && ': pool is full'}
        </span>
      </h3>
      <Meter share={taken / slots.length} label={`${pool} taken`} />
      <ul class="slots">
        {slots.map((slot) => (
          <Slot key={slot.slot} slot={slot} seenAtMs={seenAtMs} />
        ))}
      </ul>
    </section>
  );
}

function Slot({
  slot: { slot, state, worker, session, expiresInMs },
  seenAtMs,
}: {
  slot: ApiSlot;
  seenAtMs: number;
}) {
  const mark = worker === null ? null : markOf(worker);
  return (
    <li
      class={`slot ${state}`}
      data-slot={slot}
      style={mark === null ? {} : { '--owner-colour': mark.colour }}
    >
      <strong class="cut" title={slot}>
        {slot}
      </strong>
      {state === 'free' ? (
        <span class="quiet">free</span>
      ) : (
        <>
          {session === null ? (
            <span>{state}</span>
          ) : (
            <a class="cut" href={hrefOf('sessions', session)} title={`Session ${session}`}>
              {sessionLabel(session)}
            </a>
          )}
          <span class="quiet cut" title={worker ?? undefined}>
            {worker === null ? 'blocked' : nameOf(worker)}
            {expiresInMs !== null && (
              <>
                , <Left at={seenAtMs + expiresInMs} />
              </>
            )}
          </span>
        </>
      )}
    </li>
  );
}
