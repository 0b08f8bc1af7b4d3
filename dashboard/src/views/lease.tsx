/** One lease: its holder, its fence, its earlier holders, and the way to revoke it. */
import type { LeaseState } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { type Asked, useAsked } from '../data/asked.ts';
import { targets } from '../data/fleet.ts';
import { expectRevoked } from '../data/revocation.ts';
import { sessionLabel } from '../data/session-lookup.ts';
import { shellWord } from '../data/words.ts';
import { Action } from '../parts/action.tsx';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Left, Owner, Panel, Stat } from '../parts/basics.tsx';
import { hrefOf } from '../router.ts';
import { Age, Answered } from './answered.tsx';
import { partsOf } from './leases/held.ts';
import { Holders, usePast } from './target/holders.tsx';
import { LEASE_STATES, type StateName } from './target/machine.ts';
import { Machine } from './target/machine.tsx';
import '../style/target.css';

const ASK_EVERY_MS = 1_000;

export function LeaseView({ id: key }: { id: string }) {
  const asked = useAsked<LeaseState>({
    ask: (signal) => client.lease(key, { signal }),
    key,
    everyMs: ASK_EVERY_MS,
  });
  useArrivals(['lease'], (come) => {
    if (come.some((event) => event.key === key)) asked.again();
  });
  const past = usePast({ id: key, isTarget: false });
  const held = asked.value?.state === 'held' ? asked.value : null;
  const present =
    asked.value === null
      ? null
      : { owner: held?.holder ?? null, since: null, fence: asked.value.fence };
  return (
    <>
      <div class="view-head">
        <h1 class="cut mono" title={key}>
          {key}
        </h1>
        {asked.value !== null && <span class={BADGES[asked.value.state]}>{asked.value.state}</span>}
        <span class="push quiet small">
          <Age asked={asked} />
        </span>
      </div>
      <Answered asked={asked}>{(lease) => <Known {...{ lease, asked }} />}</Answered>
      <Holders past={past} present={present} />
    </>
  );
}

const BADGES = { held: 'badge good', revoked: 'badge warn', free: 'badge' } as const;
const STATE_OF: Readonly<Record<LeaseState['state'], StateName>> = {
  held: 'held',
  revoked: 'barred',
  free: 'free',
};

function Known({ lease, asked }: { lease: LeaseState; asked: Asked<LeaseState> }) {
  const { key, state, holder, fence, expiresInMs } = lease;
  if (state === 'free' && fence === '0') return <NeverHeld name={key} />;
  const { instance, session } = holder === undefined ? NOBODY : partsOf(holder);
  const endsAt = (asked.seenAtMs ?? 0) + (expiresInMs ?? Number.POSITIVE_INFINITY);
  const revoke = async (reason: string) => {
    expectRevoked(await client.revoke(key, { reason, fence }));
    asked.again();
  };
  return (
    <>
      <div class="stats">
        <Stat
          name={state === 'revoked' ? 'Revoked from' : 'Holder'}
          value={<Owner id={instance} none="no holder" />}
        />
        <Stat
          name={state === 'revoked' ? 'Blocked for' : 'Expires in'}
          value={state === 'free' ? '–' : <Left at={endsAt} />}
          note={state === 'held' ? 'unless its holder renews it' : undefined}
        />
        <Stat name="Fence" value={<span class="mono fence">{fence}</span>} />
      </div>
      {session !== null && SESSION.test(session) && (
        <p class="target-why">
          Its holder runs session{' '}
          <a href={hrefOf('sessions', session)} title={session}>
            {sessionLabel(session)}
          </a>
          .
        </p>
      )}
      <Panel title="Status">
        <Machine states={LEASE_STATES} current={STATE_OF[state]} />
        <p class="quiet small">
          This is the state in the store. Only the holder knows whether it is uncertain.
        </p>
      </Panel>
      <Panel title="Actions">
        <div class="buttons">
          <Action
            name="Revoke"
            effect={`The store revokes '${key}' at once. Its holder learns of it at its next renewal. The store grants the key to no other process while that holder may still act.`}
            cli={`holdfast revoke ${shellWord(key)} --fence ${fence} --reason '…'`}
            scope="v3:admin"
            reason="required"
            danger
            disabled={state !== 'held'}
            run={revoke}
          />
          <a class="button" href={hrefOf('feed', undefined, { event: 'lease', text: key })}>
            Show events
          </a>
        </div>
      </Panel>
    </>
  );
}

/** Workers hold leases for sessions. */
const SESSION = /^[0-9a-f-]{36}$/;
const NOBODY = { instance: null, session: null };

function NeverHeld({ name }: { name: string }) {
  return (
    <Empty title="The store remembers no lease with this key.">
      {targets.has(name) ? (
        <>
          It is a target: <a href={hrefOf('targets', name)}>open the target</a>.
        </>
      ) : (
        'Acquire it from a shell:'
      )}
      <AsCli command={`holdfast run ${shellWord(name)} -- sleep 60`} />
    </Empty>
  );
}
