// One instance of a fleet: the production poller, and a record of what it was granted, until when, and what it did.
import { open, systemClock } from 'holdfast';
import { detour } from './detour.mjs';
import { GuardedWrites } from './guarded-writes.mjs';
import { identify, obey, record, say, settings, work } from './work.mjs';

const TOLD = [
  'lease.lost',
  'lease.uncertain',
  'lease.confirmed',
  'lease.reasserted',
  'lease.releasing',
  'lease.released',
  'lease.abandoned',
  'lease.transferred',
  'lease.returned',
  'loop.delayed',
  'store.connected',
  'store.disconnected',
  'store.forgot',
  'store.quarantined',
  'fleet.stalled',
  'fleet.resumed',
  'poll.stuck',
  'poll.settled',
  'result.refused',
];

detour(settings.ports);

// The reading from which an event's `remainingMs` counts: with a reading of our own, a process stopped in between would
// believe itself valid for longer than it was.
let readMs = 0;
const clock = Object.assign(Object.create(systemClock), {
  monotonicMs() {
    readMs = systemClock.monotonicMs();
    return readMs;
  },
});

const about = ({ key, target = key, leaseClass: _, holder: __, error, ...facts }) => ({
  ...(target !== undefined && { target }),
  ...facts,
  ...(error !== undefined && { error: String(error) }),
});
const granted = (what) => (facts) => {
  if (facts.leaseClass !== 'poll') return;
  const deadlineMs = readMs + facts.remainingMs;
  record(what, { ...about(facts), deadlineMs });
};
const told = Object.fromEntries(TOLD.map((what) => [what, (facts) => record(what, about(facts))]));

const holdfast = await open(settings.url, {
  name: settings.name,
  // Quarantines last as long as the leases of this run.
  maxTtl: settings.ttlMs,
  clock,
  on: {
    'store.warned': () => {},
    'lease.acquired': granted('lease.acquired'),
    'lease.extended': granted('lease.extended'),
    ...told,
  },
});
identify(holdfast.instanceId);

const { databases, check } = settings;
const writes = databases === undefined ? undefined : new GuardedWrites(databases, check);
const commit =
  writes &&
  (async (row, between) => {
    const { target, fence } = row;
    try {
      await writes.write(row, between);
      record('guard.passed', { target, fence });
    } catch (error) {
      const isRefused = error.code === 'HF001';
      record(isRefused ? 'guard.refused' : 'guard.failed', { target, fence, error: String(error) });
    }
  });

const poller = holdfast.poller({
  targets: settings.targets.map((id) => ({ id })),
  every: settings.everyMs,
  ttl: settings.ttlMs,
  poll: (target, { signal, fence, assertHeld }) =>
    work(target.id, { signal, fence, mayAct: assertHeld, commit }),
});
obey(async () => {
  await poller.stop();
  await holdfast.close();
});
say({ event: 'ready', id: holdfast.instanceId });
await poller.start();
