/** Leases: who holds which, with which fence, and how long they last without a renewal. */
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { client } from '../data/access.ts';
import { useArrivals } from '../data/arrivals.ts';
import { type Asked, useAsked } from '../data/asked.ts';
import { now } from '../data/now.ts';
import { sessionLabel } from '../data/session-lookup.ts';
import { spanOf } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Owner, Panel } from '../parts/basics.tsx';
import { hrefOf, place } from '../router.ts';
import { Age, Answered } from './answered.tsx';
import {
  beginningWith,
  type Held,
  looked,
  partsOf,
  type SeenLease,
  told,
  walked,
} from './leases/held.ts';
import { LongList, shareText } from './long-list.tsx';
import { Search } from './query-fields.tsx';
import '../style/work.css';

const MOST = 20_000;
/** Changes within this time are shown together. */
const GATHER_MS = 200;
/** How often the dashboard asks for a lease that is on the screen and seems to have expired. */
const LOOK_EVERY_MS = 250;

export function LeasesView() {
  const asked = useAsked<Held>({
    ask: (signal) =>
      walked(
        (query) => client.leases(query, { signal }),
        MOST,
        () => performance.now(),
      ),
  });
  useArrivals(
    ['lease'],
    (come) => asked.patch((held) => told(held, come, performance.now())),
    GATHER_MS,
  );
  const shown = useLooks(asked);
  return (
    <>
      <div class="view-head">
        <h1>Leases</h1>
        <span class="push quiet small">
          <Age asked={asked} />
        </span>
        <button type="button" onClick={() => asked.again()}>
          Refresh
        </button>
      </div>
      <p class="quiet small lead">
        The dashboard reads all keys of the store once, and again when you press Refresh. The log
        keeps the list up to date. Leases of targets are on <a href="#/">the map</a>; leases of
        workflows are in <a href="#/workflows">Workflows</a>.
      </p>
      <Panel
        title="Held leases"
        aside={
          <Search name="prefix" label="Filter by the start of the key" hint="start of the key  /" />
        }
      >
        <Answered asked={asked}>{(held) => <List held={held} shown={shown} />}</Answered>
      </Panel>
    </>
  );
}

/** Renewals are not in the log. So the dashboard asks for each lease on the screen that seems to have expired, one at a time. */
function useLooks(asked: Asked<Held>): Map<string, SeenLease> {
  const shown = useRef(new Map<string, SeenLease>()).current;
  useEffect(() => {
    let isLooking = false;
    const timer = setInterval(async () => {
      const overdue = [...shown.values()].find(
        ({ expiresAtMs }) => expiresAtMs <= performance.now(),
      );
      if (overdue === undefined || isLooking || document.visibilityState === 'hidden') return;
      isLooking = true;
      const state = await client.lease(overdue.key).catch(() => null);
      isLooking = false;
      if (state !== null) asked.patch((held) => looked(held, state, performance.now()));
    }, LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return shown;
}

function List({ held, shown }: { held: Held; shown: Map<string, SeenLease> }) {
  const prefix = place.value.query.get('prefix') ?? '';
  const found = useMemo(() => beginningWith(held, prefix), [held, prefix]);
  if (held.leases.size === 0)
    return (
      <Empty title="No process holds a lease.">
        <span>
          Acquire one in your program with <code>holdfast.withLease('nightly-report', …)</code>, or
          from a shell:
        </span>
        <AsCli command="holdfast run nightly-report -- sleep 60" />
      </Empty>
    );
  return (
    <>
      <LongList
        of="lease"
        items={found}
        label="Leases"
        head={['Key', 'Holder', 'Fence', 'Time left']}
        heights={[38, 64]}
        keyOf={({ key }) => key}
        row={(lease) => <Row lease={lease} shown={shown} />}
      />
      <p class="quiet small">
        {shareText(found.length, held.leases.size, 'lease')}
        {held.hasMore && `; the dashboard lists no more. See all: holdfast ls ${prefix}`}
      </p>
    </>
  );
}

function Row({ lease, shown }: { lease: SeenLease; shown: Map<string, SeenLease> }) {
  const { key, holder, fence } = lease;
  const { instance, session } = partsOf(holder);
  useEffect(() => {
    shown.set(key, lease);
    return () => {
      shown.delete(key);
    };
  }, [lease]);
  return (
    <div class="lease-row list-row" data-lease={key}>
      <a class="cut mono" href={hrefOf('leases', key)} title={key}>
        {key}
      </a>
      <span class="cut" title={holder}>
        <Owner id={instance} />
        {session !== null && (
          <>
            {' '}
            for{' '}
            <a href={hrefOf('sessions', session)} title={session}>
              {sessionLabel(session)}
            </a>
          </>
        )}
      </span>
      <code class="quiet">{fence}</code>
      <TimeLeft of={lease} />
    </div>
  );
}

function TimeLeft({ of: { expiresAtMs } }: { of: SeenLease }) {
  const leftMs = expiresAtMs - now.value;
  if (leftMs <= 0) return <span class="quiet">checking …</span>;
  return <span>{Number.isFinite(leftMs) ? spanOf(leftMs) : 'never expires'}</span>;
}
