/**
 * One simulated world: instances with the code under test, a store, a sink, and things that go
 * wrong. All of it follows from the seed. In turns, things go wrong for a while and are then let
 * heal; at the end, when all is well, the check of the user has its say.
 */
import { seededRandom } from '../../src/core/random.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { Counters } from '../sim/counters.ts';
import { SimHost, SimProcess } from '../sim/host.ts';
import { Machine } from '../sim/machine.ts';
import { type NetworkParts, Path } from '../sim/network.ts';
import { mixed, Seat } from '../sim/seat.ts';
import { PHASE, Timeline } from '../sim/timeline.ts';
import { type Note, Trace } from '../sim/trace.ts';
import { runWorld, Stop } from '../sim/world-run.ts';
import { EffectAudit, type SimulationViolation } from './effect-audit.ts';
import { type Escape, EscapeWatch, placesIn } from './escape-watch.ts';
import { HEAL_MS, planFaults, type SimulatedEpisode } from './faults.ts';
import { INSTANCE_NAMES, Instance, type SimulatedInstance } from './instance.ts';
import { type InstanceSeat, Nemesis } from './nemesis.ts';
import type { SimulationSettings } from './options.ts';
import { SinkServer } from './sink.ts';

/** One of the worlds that a seed makes. */
export interface WorldPlan {
  readonly seed: number;
  readonly instances: number;
  /** Null: as the seed says. */
  readonly episodes: readonly SimulatedEpisode[] | null;
  /** Reports every real input and output. Slower: see `EscapeWatch`. */
  readonly watchAll?: boolean;
  /** The world ends then, even if nothing was found; default: when all faults have healed. */
  readonly untilMs?: number;
}

export interface SimulatedRun {
  readonly seed: number;
  readonly instances: number;
  readonly violation: SimulationViolation | null;
  readonly escape: Escape | null;
  readonly episodes: readonly SimulatedEpisode[];
  readonly episode: number;
  readonly simulatedMs: number;
  /** The same for the same seed. */
  readonly digest: string;
  readonly notes: readonly Note[];
  readonly counters: Counters;
}

const CLIENT = { name: 'client', number: 90 };
/** Clocks run this much faster or slower at most. */
const DRIFT = 0.001;
/** Between the last fault and the check: leases of the dead expire, and retries come to an end. */
const SETTLE_MS = 180_000;
/** Processes that were stopping are gone after this, and are started again. */
const STOPPED_MS = 12_000;
/** A process whose setup failed is started again after this, as a supervisor would. */
const SETUP_AGAIN_MS = 1_000;
/** How often the world looks whether client and check have ended, and how long they may take. */
const LOOK_EVERY_MS = 5_000;
const END_WITHIN_MS = 3_600_000;

export class SimulatedWorld {
  readonly #settings: SimulationSettings;
  readonly #plan: WorldPlan;
  readonly #timeline = new Timeline();
  readonly #counters = new Counters();
  readonly #trace = new Trace(() => this.#timeline.nowMs);
  readonly #audit: EffectAudit;
  readonly #watch: EscapeWatch;
  readonly #machine: Machine;
  readonly #server: SimProcess;
  readonly #store: Store;
  readonly #sink: SinkServer;
  readonly #seats: readonly InstanceSeat[];
  readonly #client: InstanceSeat;
  readonly #nemesis: Nemesis;
  readonly #episodes: readonly SimulatedEpisode[];
  #escape: Escape | null = null;
  #episode = 0;
  #works = 0;
  #isClientDone = false;

  constructor(settings: SimulationSettings, plan: WorldPlan) {
    const { seed, instances } = plan;
    const timeline = this.#timeline;
    const nowMs = () => timeline.nowMs;
    this.#settings = settings;
    this.#plan = plan;
    const { allowed, sink: rules, kinds, durationMs } = settings;
    this.#audit = new EffectAudit({ nowMs, allowed });
    this.#watch = new EscapeWatch({
      isInside: () => timeline.isActing,
      allowed,
      onEscape: (found) => this.#escaped(found),
    });
    this.#machine = new Machine(timeline, seededRandom(mixed(seed, 71)), () => {});
    const server = (name: string, stream: number) =>
      new SimProcess(new SimHost(timeline), name, seededRandom(mixed(seed, stream)));
    this.#server = server('store', 72);
    this.#store = createMemoryStore({ clock: this.#server });
    const judged = { audit: this.#audit, counters: this.#counters, trace: this.#trace, rules };
    this.#sink = new SinkServer({ ...judged, process: server('sink', 73), nowMs });
    const names = INSTANCE_NAMES.slice(0, instances);
    this.#seats = names.map((name, number) => this.#seat(name, number, settings.setup));
    this.#client = this.#seat(CLIENT.name, CLIENT.number, (client) => this.#runClient(client));
    const common = { timeline, counters: this.#counters, trace: this.#trace };
    this.#nemesis = new Nemesis({ ...common, seats: this.#seats });
    const planned = { random: seededRandom(mixed(seed, 74)), kinds, instances, durationMs };
    this.#episodes = plan.episodes ?? planFaults(planned);
  }

  async run(): Promise<SimulatedRun> {
    const { watchAll = false } = this.#plan;
    const uninstall = this.#watch.install({ watchAll });
    const audit = this.#audit;
    const judge = {
      report: (_: string, __: string, text: string) => audit.report('unhandled rejection', text),
      get violation() {
        return audit.violation;
      },
    };
    try {
      const timeline = this.#timeline;
      await runWorld({ timeline, audit: judge, settled: () => {}, live: () => this.#live() });
    } finally {
      uninstall();
      for (const { seat } of [...this.#seats, this.#client]) seat.kill();
    }
    this.#trace.mix(`${this.#timeline.steps}`);
    const { seed, instances } = this.#plan;
    return {
      seed,
      instances,
      violation: this.#audit.violation,
      escape: this.#escape,
      episodes: this.#episodes,
      episode: this.#episode,
      simulatedMs: this.#timeline.nowMs,
      digest: this.#trace.digest,
      notes: this.#trace.notes,
      counters: this.#counters,
    };
  }

  #seat(name: string, number: number, run: (instance: SimulatedInstance) => unknown): InstanceSeat {
    const { seed } = this.#plan;
    const timeline = this.#timeline;
    const counters = this.#counters;
    const trace = this.#trace;
    const random = seededRandom(mixed(seed, 7_500 + number));
    const sinkPath = new Path(seededRandom(mixed(seed, 7_600 + number)));
    const make = (network: NetworkParts): Instance =>
      new Instance({
        network,
        name,
        trace,
        run,
        sinkPath,
        store: this.#store,
        server: this.#server,
        sink: this.#sink,
        options: (tools) => this.#settings.open(tools),
        nextNumber: () => ++this.#works,
        enter: () => this.#entered(network.process),
        onSettled: (outcome) => this.#settled(name, outcome),
      });
    const rate = 1 + (random.next() - 0.5) * 2 * DRIFT;
    const machine = this.#machine;
    const seat = new Seat({ timeline, counters, trace, seed, number, rate, machine, make });
    return { name, seat, sinkPath };
  }

  async #runClient(client: SimulatedInstance): Promise<void> {
    const { targets } = this.#settings;
    if (targets.length > 0) await client.holdfast.targets.addAll(targets);
    await this.#settings.client(client);
  }

  /** Code of a process runs. Outside of a turn of the world, a real timer or real input ran it. */
  #entered(process: SimProcess): void {
    if (!this.#timeline.isActing && !process.isDead) this.#watch.cameFromOutside();
  }

  #escaped(found: Escape): void {
    const { api, at, instead } = found;
    this.#escape ??= found;
    const where = at === null ? '' : ` at ${at}`;
    this.#audit.report('escape', `your code used ${api}${where}. Use ${instead}.`);
  }

  /** The setup of an instance, or the client, has ended. */
  #settled(name: string, outcome: { readonly error: unknown } | null): void {
    const isClient = name === CLIENT.name;
    if (outcome === null) {
      if (isClient) this.#isClientDone = true;
      return;
    }
    const { error } = outcome;
    const why = whyOf(error);
    if (isClient) this.#audit.report('client', `the client failed: ${why}`);
    else if (this.#nemesis.isQuiet) this.#audit.report('setup', `setup failed: ${why}`);
    const found = this.#seats.find((seat) => seat.name === name);
    if (isClient || found === undefined) return;
    // As a program that fails at its start: its process ends, and is started again.
    this.#counters.add('setup failed');
    this.#trace.note(name, 'fails in its setup, and exits');
    found.seat.kill();
    this.#later(SETUP_AGAIN_MS, () => found.seat.start());
  }

  #later(ms: number, run: () => void): void {
    this.#timeline.at(this.#timeline.nowMs + ms, run, PHASE.observer);
  }

  async #live(): Promise<void> {
    const timeline = this.#timeline;
    const { untilMs } = this.#plan;
    const stop = () => {
      throw new Stop();
    };
    if (untilMs !== undefined) this.#later(untilMs, stop);
    this.#later(0, () => {
      for (const { seat } of [...this.#seats, this.#client]) seat.start();
    });
    for (const [number, { faults, lastsMs }] of this.#episodes.entries()) {
      this.#episode = number;
      const fromMs = timeline.nowMs;
      this.#nemesis.resume();
      for (const fault of faults) this.#later(fault.atMs, () => this.#nemesis.strike(fault));
      await timeline.run(fromMs + lastsMs);
      this.#later(0, () => this.#nemesis.rest());
      await timeline.run(timeline.nowMs + STOPPED_MS);
      this.#later(0, () => {
        for (const { seat } of this.#seats) seat.start();
      });
      await timeline.run(timeline.nowMs + HEAL_MS);
    }
    await this.#until('client', 'the client', () => this.#isClientDone);
    await timeline.run(timeline.nowMs + SETTLE_MS);
    await this.#check();
  }

  async #check(): Promise<void> {
    const { holdfast } = this.#client.seat.instance ?? {};
    if (holdfast === null || holdfast === undefined) return;
    const { seed } = this.#plan;
    let isDone = false;
    const check = async () => {
      try {
        await this.#settings.check({ effects: this.#audit.effects, holdfast, seed });
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        this.#audit.report('check', why);
      }
      isDone = true;
    };
    this.#later(0, () => void check());
    await this.#until('check', 'the check', () => isDone);
  }

  async #until(invariant: 'client' | 'check', what: string, isDone: () => boolean): Promise<void> {
    const timeline = this.#timeline;
    const endMs = timeline.nowMs + END_WITHIN_MS;
    // Once for what needs no time.
    await timeline.run(timeline.nowMs);
    while (!isDone() && timeline.nowMs < endMs) await timeline.run(timeline.nowMs + LOOK_EVERY_MS);
    if (!isDone()) {
      this.#audit.report(invariant, `${what} did not end within an hour after the last fault`);
      throw new Stop();
    }
  }
}

function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const [place] = placesIn(error.stack ?? '');
  return place === undefined ? error.message : `${error.message} (${place})`;
}
