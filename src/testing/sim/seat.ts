/** A place in the fleet: one machine on which an instance runs, ends, and is started again. */
import { seededRandom } from '../../base/random.ts';
import { SimHost, SimProcess } from './host.ts';
import { type InstanceParts, SimInstance } from './instance.ts';
import type { Machine } from './machine.ts';
import { Path } from './network.ts';
import type { Timeline } from './timeline.ts';

export interface SeatParts extends Omit<InstanceParts, 'network'> {
  readonly timeline: Timeline;
  readonly machine: Machine;
  readonly seed: number;
  readonly number: number;
  readonly rate: number;
}

export class Seat {
  readonly host: SimHost;
  /** Between this machine and the store, whoever runs here. */
  readonly path: Path;
  readonly #parts: SeatParts;
  #lives = 0;
  #instance: SimInstance | null = null;

  constructor(parts: SeatParts) {
    this.#parts = parts;
    this.host = new SimHost(parts.timeline, { rate: parts.rate });
    this.path = new Path(seededRandom(mixed(parts.seed, 77_003 + parts.number)));
    const share = parts.setting.intents?.deafness ?? 0;
    this.path.deafTo = { channel: 'intent:', share };
  }

  get instance(): SimInstance | null {
    return this.#instance;
  }

  get process(): SimProcess | null {
    return this.#instance?.process ?? null;
  }

  start(): void {
    if (this.#instance !== null) return;
    const { timeline, machine, seed, number, trace, counters } = this.#parts;
    const life = ++this.#lives;
    const random = seededRandom(mixed(seed, number * 1_009 + life));
    const process = new SimProcess(this.host, `i${number}.${life}`, random);
    const network = { timeline, process, path: this.path, machine, counters };
    this.#instance = new SimInstance({ ...this.#parts, network });
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

/** Another seed from a seed: one for each stream of chance, so that they do not disturb each other. */
export function mixed(seed: number, stream: number): number {
  return (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream + 1, 0xc2b2ae35)) >>> 0;
}
