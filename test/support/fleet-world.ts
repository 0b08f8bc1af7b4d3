import type { EventName, Events } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { PollContext } from '../../src/fleet/poll/poll-scheduler.ts';
import type { Poller, PollerOptions } from '../../src/fleet/poller.ts';
import type { Target } from '../../src/fleet/targets/target-source.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';

type Happened = { [N in EventName]: { name: N; atMs: number } & Events[N] }[EventName];

/** One poll that was made, on the clock of the world. */
export interface Polled {
  readonly target: string;
  readonly by: string;
  readonly fence: number;
  readonly startMs: number;
  endMs: number;
}

/** An instance of the fleet in a process of its own, as far as the test can make it one. */
export interface Instance {
  readonly holdfast: Holdfast;
  readonly poller: Poller;
  readonly id: string;
  readonly faults: ReturnType<typeof faultyStore>['faults'];
  /** Members whose heartbeats it does not see. */
  readonly blindTo: Set<string>;
  readonly happened: Happened[];
  /** How long its polls take; they end early when told to, unless they are deaf. */
  pollMs: number;
  isDeaf: boolean;
  owned(): string[];
  count(name: EventName): number;
}

const WATCHED: EventName[] = [
  ...(['lease.acquired', 'lease.lost', 'lease.released', 'lease.transferred'] as const),
  ...(['lease.abandoned', 'member.joined', 'member.left', 'member.draining'] as const),
  ...(['member.undrained', 'fleet.planned', 'fleet.asked', 'fleet.stalled'] as const),
  ...([
    'fleet.resumed',
    'session.unreadable',
    'poll.failed',
    'poll.stuck',
    'poll.settled',
  ] as const),
  'result.refused',
  'target.taken',
];

interface FleetWorldOptions {
  readonly clock?: FakeClock;
  /** A connection to the store for each instance; default: all have one store in memory. */
  connect?(): Promise<Store>;
}

/** One store, one clock, and as many instances as a test wants. TTL 3 s, renewals every second. */
export function fleetWorld({ clock = new FakeClock(), connect }: FleetWorldOptions = {}) {
  const store = createMemoryStore({ clock });
  const polls: Polled[] = [];
  const instances: Instance[] = [];
  let started = 0;

  async function instance(options: PollerOptions = {}): Promise<Instance> {
    const { store: reached, faults } = faultyStore((await connect?.()) ?? store, clock);
    const blindTo = new Set<string>();
    const { list } = reached.members;
    reached.members.list = async (call) => {
      const live = await list(call);
      return live.filter(({ id }) => !blindTo.has(id));
    };
    const number = ++started;
    const happened: Happened[] = [];
    const holdfast = await open(reached, {
      clock,
      random: seededRandom(number),
      name: `api${number}`,
    });
    for (const name of WATCHED)
      holdfast.on(name, (facts) =>
        happened.push({ name, atMs: clock.monotonicMs(), ...facts } as Happened),
      );
    const poll = async (target: Target, { signal, fence }: PollContext) => {
      const startMs = clock.monotonicMs();
      const by = holdfast.instanceId;
      const polled = { target: target.id, by, fence, startMs, endMs: Number.POSITIVE_INFINITY };
      polls.push(polled);
      try {
        if (made.isDeaf) await clock.sleep(made.pollMs);
        else if (made.pollMs > 0) await clock.sleep(made.pollMs, signal);
      } finally {
        polled.endMs = clock.monotonicMs();
      }
    };
    const poller = holdfast.poller({
      ...{ ttl: '3s', every: 200, poll, discovery: 'off' as const },
      ...options,
    });
    const made: Instance = {
      ...{ holdfast, poller, faults, blindTo, happened, pollMs: 20, isDeaf: false },
      id: holdfast.instanceId,
      owned: () => poller.manager.ownedSessions().sort(),
      count: (event) => happened.filter(({ name }) => name === event).length,
    };
    instances.push(made);
    return made;
  }

  /** Starts an instance, and lets it look at the fleet once. */
  async function start(options?: PollerOptions): Promise<Instance> {
    const made = await instance(options);
    const starting = made.poller.start();
    await clock.advance(0);
    await starting;
    return made;
  }

  /** Two polls of one target by different instances at the same time. */
  function overlaps(): string[] {
    const found: string[] = [];
    const last = new Map<string, Polled>();
    for (const polled of polls.toSorted((a, b) => a.startMs - b.startMs)) {
      const { target, by, startMs, endMs } = polled;
      const before = last.get(target);
      if (before !== undefined && before.by !== by && startMs < before.endMs)
        found.push(`${target}: ${before.by} and ${by} at ${startMs}`);
      if (before === undefined || endMs > before.endMs) last.set(target, polled);
    }
    return found;
  }

  /** Who owns how many, of those given. */
  function loads(of: readonly Instance[]): number[] {
    return of.map((one) => one.owned().length);
  }

  async function add(count: number, form = (i: number) => `device-${String(i).padStart(6, '0')}`) {
    const [first] = instances;
    const sessions = Array.from({ length: count }, (_, i) => ({ id: form(i) }));
    const holdfast = first?.holdfast ?? (await open(store, { clock, random: seededRandom(99) }));
    await holdfast.targets.addAll(sessions);
    return sessions.map(({ id }) => id);
  }

  return { clock, store, polls, instances, instance, start, add, overlaps, loads };
}
