/**
 * Runs a program's handlers in simulated worlds, one seed after the other, until one of them does
 * what it must not. That world is lived through twice, to see whether the seed repeats it, and is
 * then shrunk: fewer faults, a shorter run, fewer instances.
 *
 * ```ts
 * const report = await simulate({
 *   targets: ['a', 'b'],
 *   setup: async ({ holdfast, sink }) => {
 *     const poll = async ({ id }, { fence }) => void (await sink.write(id, 'on', { fence }));
 *     await holdfast.poller({ every: '5s', poll }).start();
 *   },
 * });
 * report.assert();
 * ```
 *
 * **What it does not do.** It shows what handlers do with Holdfast's production code on its memory
 * store: not what another store, driver or service does. It controls the time and chance that
 * `setup` is given. Code that uses real ones is told as an escape.
 */
import { spanOf } from '../../src/core/time-text.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { Counters } from '../sim/counters.ts';
import { shrinkPlan } from '../sim/shrink.ts';
import type { SimulationInvariant } from './effect-audit.ts';
import { type Escape, isUnnamed } from './escape-watch.ts';
import { type SimulatedEpisode, type SimulatedFault, TROUBLE_MS } from './faults.ts';
import { readSimulateOptions, type SimulateOptions, type SimulationSettings } from './options.ts';
import { firstDifference, tellStory } from './story.ts';
import { type SimulatedRun, SimulatedWorld, type WorldPlan } from './world.ts';

export interface SimulationFailure {
  /** `simulate({ …, seed })` finds the same failure again. */
  readonly seed: number;
  readonly invariant: SimulationInvariant;
  /** What is wrong, in a sentence or two. */
  readonly violation: string;
  /** What code left the world, if that is what is wrong. */
  readonly escape: Escape | null;
  /** What happened, after shrinking: sentences, each with its time since the world began. */
  readonly story: string;
  /** The faults that it takes, in order. */
  readonly faults: readonly SimulatedFault[];
  /** The instances that it takes. */
  readonly instances: number;
  /** When it happened, before and after shrinking, in simulated time. */
  readonly atMs: { readonly found: number; readonly shrunk: number };
  /** How to run it again. */
  readonly rerun: string;
}

export class SimulationReport {
  /** Null: nothing was found in these worlds, with these faults. */
  readonly failure: SimulationFailure | null;
  readonly seeds: number;
  readonly simulatedMs: number;
  /** How often each fault struck. */
  readonly faults: Readonly<Partial<Record<SimulatedFault, number>>>;
  /** How often the handlers got into each state, such as `poll told to stop`. */
  readonly reached: ReadonlyMap<string, number>;
  /** Faults that were on and never struck: nothing is shown about these. */
  readonly missed: readonly SimulatedFault[];

  constructor(facts: {
    readonly failure: SimulationFailure | null;
    readonly seeds: number;
    readonly simulatedMs: number;
    readonly counters: Counters;
    readonly kinds: readonly SimulatedFault[];
  }) {
    const { failure, seeds, simulatedMs, counters, kinds } = facts;
    this.failure = failure;
    this.seeds = seeds;
    this.simulatedMs = simulatedMs;
    const struck = kinds.map((kind) => [kind, counters.get(`fault: ${kind}`)] as const);
    this.faults = Object.fromEntries(struck.filter(([, count]) => count > 0));
    this.missed = struck.filter(([, count]) => count === 0).map(([kind]) => kind);
    const states = [...counters].filter(([name]) => !/^(fault|caught at): /.test(name));
    this.reached = new Map(states.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Throws `SimulationFailedError`, whose message is the story, if something was found. */
  assert(): void {
    if (this.failure !== null) throw new SimulationFailedError(this.failure);
  }

  /** The failure, or what was reached, in words. */
  toString(): string {
    const worlds = `${this.seeds} ${this.seeds === 1 ? 'world' : 'worlds'}`;
    if (this.failure !== null) return told(this.failure);
    const counts = (all: Iterable<readonly [string, number]>) =>
      [...all].map(([name, count]) => `  ${String(count).padStart(8)}  ${name}`);
    const missed = this.missed.length === 0 ? [] : [`never struck: ${this.missed.join(', ')}`];
    return [
      `nothing was found in ${worlds}, ${spanOf(this.simulatedMs)} of simulated time`,
      ...counts(Object.entries(this.faults)),
      ...counts(this.reached),
      ...missed,
    ].join('\n');
  }
}

/** What `report.assert()` throws. */
export class SimulationFailedError extends Error {
  override readonly name = 'SimulationFailedError';
  readonly code = 'SIMULATION_FAILED';
  readonly failure: SimulationFailure;

  constructor(failure: SimulationFailure) {
    super(told(failure));
    this.failure = failure;
  }
}

function told({ seed, invariant, violation, ...rest }: SimulationFailure): string {
  const { story, faults, instances, rerun } = rest;
  const takes = faults.length === 0 ? 'no fault' : [...new Set(faults)].join(', ');
  const on = instances === 1 ? 'one instance' : `${instances} instances`;
  return [
    `seed ${seed}: ${invariant}: ${violation}`,
    ...(story === '' ? [] : [`It takes ${on} and ${takes}:`, story]),
    `To see it again: ${rerun}`,
  ].join('\n\n');
}

/** One simulation at a time: each replaces the clocks of the process while it runs. */
let turn: Promise<unknown> = Promise.resolve();

export async function simulate(options: SimulateOptions): Promise<SimulationReport> {
  const settings = readSimulateOptions(options);
  const own = turn.then(() => withOwnRejections(() => new Simulation(settings).run()));
  turn = own.catch(() => {});
  return own;
}

/** A rejection that no code handles is a finding about the world, and not about this process. */
async function withOwnRejections<T>(run: () => Promise<T>): Promise<T> {
  const listeners = process.listeners('unhandledRejection');
  const ignore = () => {};
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', ignore);
  try {
    return await run();
  } finally {
    // Those of the last turn come to light.
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', ignore);
    for (const listener of listeners) process.on('unhandledRejection', listener);
  }
}

/** While a failure is shrunk, it may come later than at first: so many times, and so much. */
const SHRUNK_MOST_TIMES = 1.5;
const SHRUNK_LATER_MS = 30_000;
/** Each halving is tried with all times of the faults half as late. */
const HALVINGS = 4;

class Simulation {
  readonly #settings: SimulationSettings;
  readonly #counters = new Counters();
  #seeds = 0;
  #simulatedMs = 0;

  constructor(settings: SimulationSettings) {
    this.#settings = settings;
  }

  async run(): Promise<SimulationReport> {
    await loadTables();
    const { seeds, kinds } = this.#settings;
    let failure: SimulationFailure | null = null;
    for (const seed of seeds) {
      failure = await this.#try(seed);
      if (failure !== null) break;
    }
    const simulatedMs = this.#simulatedMs;
    const counters = this.#counters;
    return new SimulationReport({ failure, seeds: this.#seeds, simulatedMs, counters, kinds });
  }

  async #try(seed: number): Promise<SimulationFailure | null> {
    const { instances } = this.#settings;
    const plan: WorldPlan = { seed, instances, episodes: null };
    const run = await this.#live(plan);
    this.#seeds++;
    this.#simulatedMs += run.simulatedMs;
    this.#counters.addAll(run.counters);
    if (run.escape !== null) return failureOf(run, await this.#shrinkEscape(plan, run));
    // The first world is always lived through twice, and so is every one that fails.
    if (run.violation === null && this.#seeds > 1) return null;
    const again = await this.#live({ ...plan, watchAll: true });
    if (again.escape !== null) return failureOf(again, await this.#shrinkEscape(plan, again));
    const difference = firstDifference(run, again);
    if (difference !== null && !this.#settings.allowed.has('escape'))
      return failureOf(run, unrepeated(run, difference));
    return run.violation === null ? null : failureOf(run, await this.#shrink(plan, run));
  }

  #live(plan: WorldPlan): Promise<SimulatedRun> {
    return new SimulatedWorld(this.#settings, plan).run();
  }

  /** Most code escapes in the first world, without a fault, on the only instance. */
  async #shrinkEscape(plan: WorldPlan, escaped: SimulatedRun): Promise<SimulatedRun> {
    const alone = { ...plan, episodes: [{ lastsMs: TROUBLE_MS, faults: [] }], instances: 1 };
    const small = await this.#live({ ...alone, watchAll: true });
    if (small.escape !== null) return small;
    const again = await this.#live({ ...plan, watchAll: true });
    const isBetter = again.escape !== null && !isUnnamed(again.escape);
    return isBetter ? again : escaped;
  }

  async #shrink({ seed, ...rest }: WorldPlan, failed: SimulatedRun): Promise<SimulatedRun> {
    const { invariant, atMs = 0 } = failed.violation ?? {};
    // What is found at the end needs an end.
    const isAtEnd = invariant === 'check' || invariant === 'client';
    const until = isAtEnd ? {} : { untilMs: SHRUNK_MOST_TIMES * atMs + SHRUNK_LATER_MS };
    const plan = { seed, ...rest, ...until };
    const fewer = await shrinkPlan<SimulatedRun>(failed, (episodes) =>
      this.#live({ ...plan, episodes }),
    );
    let best = fewer.report;
    const attempt = async (changed: Partial<WorldPlan>): Promise<boolean> => {
      const { episodes, instances } = best;
      const run = await this.#live({ ...plan, episodes, instances, ...changed });
      if (run.violation?.invariant !== best.violation?.invariant) return false;
      best = run;
      return true;
    };
    for (let instances = 1; instances < plan.instances; instances++)
      if (await attempt({ instances, episodes: onlyOf(best.episodes, instances) })) break;
    for (let n = 0; n < HALVINGS; n++)
      if (!(await attempt({ episodes: sooner(best.episodes) }))) break;
    return best;
  }
}

/** The memory store loads SQLite on first use: that takes real time, which no world has. */
async function loadTables(): Promise<void> {
  try {
    await createMemoryStore().workflows.list({ timeoutMs: 5_000 });
  } catch {
    // This Node has no SQLite: workflows, intents and streams will say so.
  }
}

/** The same run, as one that the seed does not repeat. */
function unrepeated(run: SimulatedRun, difference: string): SimulatedRun {
  const text =
    `seed ${run.seed} was run twice and came to two histories, at ${difference}. ` +
    'Your code keeps state outside of setup, or uses real time, chance, input or output that ' +
    'was not recognised. Use what setup is given.';
  const atMs = run.violation?.atMs ?? run.simulatedMs;
  const violation = { invariant: 'escape', text, about: [], atMs } as const;
  return { ...run, violation, notes: [], episodes: [] };
}

function failureOf(found: SimulatedRun, shrunk: SimulatedRun): SimulationFailure | null {
  const { violation, seed, instances } = shrunk;
  if (violation === null) return null;
  const { invariant, text, atMs } = violation;
  const lived = shrunk.episodes.slice(0, shrunk.episode + 1);
  return {
    seed,
    invariant,
    violation: text,
    escape: shrunk.escape,
    story: tellStory(shrunk).join('\n'),
    faults: lived.flatMap(({ faults }) => faults.map(({ kind }) => kind)),
    instances,
    atMs: { found: found.violation?.atMs ?? atMs, shrunk: atMs },
    rerun: `simulate({ …, seed: ${seed} })`,
  };
}

function onlyOf(episodes: readonly SimulatedEpisode[], instances: number): SimulatedEpisode[] {
  return episodes.map(({ lastsMs, faults }) => {
    return { lastsMs, faults: faults.filter(({ seat }) => seat < instances) };
  });
}

function sooner(episodes: readonly SimulatedEpisode[]): SimulatedEpisode[] {
  return episodes.map(({ lastsMs, faults }) => {
    return { lastsMs, faults: faults.map((fault) => ({ ...fault, atMs: fault.atMs / 2 })) };
  });
}
