/** A place on a machine of its own: a process runs there, ends, and is started again. */
import { seededRandom } from '../../src/core/random.ts';
import type { Counters } from './counters.ts';
import { SimHost, SimProcess } from './host.ts';
import type { Machine } from './machine.ts';
import { type NetworkParts, Path } from './network.ts';
import type { Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';

/** What runs in a seat: one process, and what it does. */
export interface Occupant {
  readonly process: SimProcess;
  readonly isStopping: boolean;
  start(): Promise<void>;
  stop(): Promise<void>;
  end(): void;
}

export interface SeatParts<T extends Occupant> {
  readonly timeline: Timeline;
  /** The server that a new connection leads to; it may be another one later. */
  readonly machine: Machine;
  readonly counters: Counters;
  readonly trace: Trace;
  readonly seed: number;
  readonly number: number;
  readonly rate: number;
  make(network: NetworkParts): T;
}

export class Seat<T extends Occupant> {
  readonly host: SimHost;
  /** Between this machine and the store, for every process that runs here. */
  readonly path: Path;
  readonly #parts: SeatParts<T>;
  #lives = 0;
  #instance: T | null = null;

  constructor(parts: SeatParts<T>) {
    this.#parts = parts;
    this.host = new SimHost(parts.timeline, { rate: parts.rate });
    this.path = new Path(seededRandom(mixed(parts.seed, 77_003 + parts.number)));
  }

  get instance(): T | null {
    return this.#instance;
  }

  get process(): SimProcess | null {
    return this.#instance?.process ?? null;
  }

  start(): void {
    if (this.#instance !== null) return;
    const parts = this.#parts;
    const { timeline, seed, number, trace, counters } = parts;
    const life = ++this.#lives;
    const random = seededRandom(mixed(seed, number * 1_009 + life));
    const process = new SimProcess(this.host, `i${number}.${life}`, random);
    const network: NetworkParts = {
      timeline,
      process,
      path: this.path,
      counters,
      get machine() {
        return parts.machine;
      },
    };
    this.#instance = parts.make(network);
    trace.note(process.name, 'started');
    void this.#instance.start();
  }

  kill(): void {
    const instance = this.#instance;
    if (instance === null) return;
    this.#parts.trace.note(instance.process.name, 'killed');
    this.#instance = null;
    instance.end();
  }

  async stop(): Promise<void> {
    const instance = this.#instance;
    if (instance === null || instance.isStopping) return;
    this.#parts.trace.note(instance.process.name, 'told to stop');
    await instance.stop();
    if (this.#instance === instance) this.#instance = null;
  }
}

/**
 * Something happens to the process in a seat when its code comes to a named point for the n-th
 * time.
 */
export function trap(
  { process }: Pick<Seat<Occupant>, 'process'>,
  at: {
    readonly point: string;
    readonly passes: number;
    readonly counters: Counters;
    readonly trace: Trace;
    spring(process: SimProcess): void;
  },
): void {
  if (process === null) return;
  const { point, passes, counters, trace } = at;
  const spring = () => {
    counters.add(`caught at: ${point}`);
    trace.note(process.name, 'caught', { point });
    at.spring(process);
  };
  process.trap = { point, passes, spring };
}

/**
 * Another seed from a seed: one for each stream of chance, so that they do not disturb each other.
 */
export function mixed(seed: number, stream: number): number {
  return (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream + 1, 0xc2b2ae35)) >>> 0;
}
