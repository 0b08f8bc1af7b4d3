/**
 * One process of a world: the production `open` on a memory store over a bad network, and the code
 * under test on it.
 */
import type { Clock, Timer } from '../../src/core/clock.ts';
import type { Random } from '../../src/core/random.ts';
import { type Holdfast, type OpenOptions, open } from '../../src/holdfast.ts';
import type { Store } from '../../src/store/port/store.ts';
import type { SimProcess } from '../sim/host.ts';
import type { NetworkParts, Path } from '../sim/network.ts';
import { remoteStore } from '../sim/remote-store.ts';
import type { Occupant } from '../sim/seat.ts';
import type { Trace } from '../sim/trace.ts';
import { InstanceSink, type Sink, type SinkServer } from './sink.ts';
import { boundToWork, WorkLog, watchHandlers, watchKinds } from './work-log.ts';

/** The time of one simulated process. */
export interface SimulatedClock extends Clock {
  /** What `Date.now()` is in your program: milliseconds since 1970, as this machine believes. */
  now(): number;
}

/** All that the code of one simulated process may use. */
export interface SimulatedTools {
  /** The outside world: write to it in place of your database or service. */
  readonly sink: Sink;
  /** For `Date.now`, `setTimeout` and `sleep`. */
  readonly clock: SimulatedClock;
  /** For `Math.random` and `randomUUID`. */
  readonly random: Random;
  /** `ana`, `ben`, … The same after a restart. */
  readonly name: string;
}

/** What `setup` and `client` are given: one process. */
export interface SimulatedInstance extends SimulatedTools {
  readonly holdfast: Holdfast;
}

/** Instances by number. There are no more than these. */
export const INSTANCE_NAMES = ['ana', 'ben', 'cleo', 'dan', 'eva', 'finn'] as const;

/** The options of `open` that a simulated instance may have. */
export type SimulatedOpenOptions = Pick<OpenOptions, 'kinds' | 'maxTtl' | 'prefix' | 'sessionIds'>;

export interface InstanceParts {
  readonly network: NetworkParts;
  readonly name: string;
  readonly store: Store;
  /** The machine that has the store. */
  readonly server: SimProcess;
  readonly sink: SinkServer;
  readonly sinkPath: Path;
  readonly trace: Trace;
  nextNumber(): number;
  /** Called when code of this process asks for the time, or for the sink. */
  enter(): void;
  /** The options of `open`. */
  options(tools: SimulatedTools): SimulatedOpenOptions;
  /** The code under test. */
  run(instance: SimulatedInstance): unknown;
  /** It returned, or threw. */
  onSettled(outcome: { readonly error: unknown } | null): void;
}

const STOP_WITHIN = '10s';

export class Instance implements Occupant {
  readonly process: SimProcess;
  readonly #parts: InstanceParts;
  readonly #store: Store;
  readonly #abandon: () => void;
  #holdfast: Holdfast | null = null;
  #isStopping = false;

  constructor(parts: InstanceParts) {
    this.#parts = parts;
    this.process = parts.network.process;
    const remote = remoteStore({ ...parts, onCarriedOut: () => {} });
    this.#store = remote.store;
    this.#abandon = remote.abandon;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  get holdfast(): Holdfast | null {
    return this.#holdfast;
  }

  async start(): Promise<void> {
    const { process } = this;
    const { network, name, trace, sink: server, sinkPath, enter, nextNumber } = this.#parts;
    const { timeline, counters } = network;
    const clock = new InstanceClock(process, enter);
    const log = new WorkLog({ name, trace, counters, nextNumber, process });
    const { random } = process;
    const own = { timeline, process, path: sinkPath, counters };
    const sink = new InstanceSink({ network: own, server, name, enter });
    const tools = { sink, clock, random, name };
    try {
      const options = this.#parts.options(tools);
      const kinds = watchKinds(options.kinds ?? {}, log);
      const holdfast = await open(this.#store, { ...options, kinds, clock, random, name });
      this.#holdfast = holdfast;
      this.#listen(holdfast);
      watchHandlers(holdfast, log);
      await this.#parts.run({ ...tools, holdfast });
      this.#settled(null);
    } catch (error) {
      this.#settled({ error });
    }
  }

  async stop(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    await this.#holdfast?.close({ within: STOP_WITHIN });
    this.end();
  }

  end(): void {
    this.process.kill();
    this.#abandon();
  }

  #settled(outcome: { readonly error: unknown } | null): void {
    if (!this.process.isDead && !this.#isStopping) this.#parts.onSettled(outcome);
  }

  #listen(holdfast: Holdfast): void {
    const { trace, name, network } = this.#parts;
    holdfast.on('lease.lost', ({ key, reason }) => {
      if (this.process.isDead) return;
      network.counters.add(`lease lost: ${reason}`);
      trace.note(name, `loses its lease on '${key}' (${reason})`, { about: `target:${key}` });
    });
    // Else they would be printed.
    holdfast.on('store.warned', () => network.counters.add('store.warned'));
  }
}

/** The clock of a process, as its code has it. */
class InstanceClock implements SimulatedClock {
  readonly #process: SimProcess;
  readonly #enter: () => void;

  constructor(process: SimProcess, enter: () => void) {
    this.#process = process;
    this.#enter = enter;
  }

  get startedAtMs(): number {
    return this.#process.startedAtMs;
  }

  now(): number {
    return Math.floor(this.wallMs());
  }

  monotonicMs(): number {
    this.#enter();
    return this.#process.monotonicMs();
  }

  wallMs(): number {
    this.#enter();
    return this.#process.wallMs();
  }

  after(delayMs: number, run: () => void): Timer {
    this.#enter();
    return this.#process.after(delayMs, boundToWork(run));
  }

  soon(run: () => void): void {
    this.#process.soon(boundToWork(run));
  }

  afterInput(run: () => void): void {
    this.#process.afterInput(boundToWork(run));
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.#enter();
    return this.#process.sleep(ms, signal);
  }
}
