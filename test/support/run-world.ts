import type { EventName, Events } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { RunContext } from '../../src/fleet/run/task-scheduler.ts';
import type { Runner, RunnerOptions } from '../../src/fleet/runner.ts';
import type { Target } from '../../src/fleet/targets/target-source.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';

/** One run of a task, on the clock of the world. */
export interface TaskRecord {
  readonly target: Target;
  readonly by: string;
  readonly context: RunContext;
  readonly startMs: number;
  endMs: number;
  /** Why its signal fired; undefined if it has not. */
  reason: unknown;
}

type Happened = { [N in EventName]: { name: N; atMs: number } & Events[N] }[EventName];

export interface RunInstance {
  readonly holdfast: Holdfast;
  readonly runner: Runner;
  readonly id: string;
  readonly faults: ReturnType<typeof faultyStore>['faults'];
  readonly happened: Happened[];
  /** What its tasks do from now on. */
  work: (target: Target, context: RunContext) => Promise<unknown>;
  owned(): string[];
  events<N extends EventName>(name: N): (Events[N] & { atMs: number })[];
}

const WATCHED: readonly EventName[] = [
  ...(['lease.lost', 'lease.abandoned', 'lease.transferred', 'lease.released'] as const),
  ...(['run.started', 'run.exited', 'run.ended', 'run.silent', 'run.resumed'] as const),
  ...(['run.stuck', 'run.settled', 'result.refused', 'target.taken'] as const),
];

/** Resolves when the signal fires. */
export function untilTold({ signal }: Pick<RunContext, 'signal'>): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** One store, one clock, and as many instances with a runner as a test wants. TTL 3 s. */
export function runWorld() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const tasks: TaskRecord[] = [];
  let started = 0;

  /** `work`: what its tasks do; default: they run until their signal fires. */
  async function start(
    options: Partial<RunnerOptions> = {},
    work: RunInstance['work'] = (_, context) => untilTold(context),
  ): Promise<RunInstance> {
    const { store: reached, faults } = faultyStore(store, clock);
    const number = ++started;
    const happened: Happened[] = [];
    const random = seededRandom(number);
    const holdfast = await open(reached, { clock, random, name: `api${number}` });
    for (const name of WATCHED)
      holdfast.on(name, (facts) =>
        happened.push({ name, atMs: clock.monotonicMs(), ...facts } as Happened),
      );
    const run = async (target: Target, context: RunContext) => {
      const startMs = clock.monotonicMs();
      const endMs = Number.POSITIVE_INFINITY;
      const by = holdfast.instanceId;
      const task: TaskRecord = { target, by, context, startMs, endMs, reason: undefined };
      tasks.push(task);
      context.signal.addEventListener('abort', () => {
        task.reason = context.signal.reason;
      });
      try {
        return await made.work(target, context);
      } finally {
        task.endMs = clock.monotonicMs();
      }
    };
    const runner = holdfast.runner({ ttl: '3s', discovery: 'off', run, ...options });
    const made: RunInstance = {
      holdfast,
      runner,
      id: holdfast.instanceId,
      faults,
      happened,
      work,
      owned: () => runner.manager.ownedSessions().sort(),
      events: (name) => happened.filter((one) => one.name === name) as never,
    };
    const starting = runner.start();
    await clock.advance(0);
    await starting;
    return made;
  }

  async function add(count: number): Promise<string[]> {
    const targets = Array.from({ length: count }, (_, i) => ({ id: `account-${i}`, number: i }));
    const holdfast = await open(store, { clock, random: seededRandom(99) });
    await holdfast.targets.addAll(targets);
    return targets.map(({ id }) => id);
  }

  /** Two tasks of one target at the same time. */
  function overlaps(): string[] {
    return tasks.flatMap((one, i) =>
      tasks
        .slice(i + 1)
        .filter((two) => two.target.id === one.target.id)
        .filter((two) => one.startMs < two.endMs && two.startMs < one.endMs)
        .map((two) => `${one.target.id}: ${one.by} and ${two.by} at ${two.startMs}`),
    );
  }

  const running = () => tasks.filter(({ endMs }) => endMs === Number.POSITIVE_INFINITY);
  return { clock, store, tasks, start, add, overlaps, running };
}
