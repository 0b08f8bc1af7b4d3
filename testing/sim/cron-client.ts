/**
 * One host with cron in a cron world: the production `open` on the production Redis store. At every
 * fire, by its own wall clock,
 * it calls `once` with a job of 50 ms.
 */
import { Emitter } from '../../src/core/events.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import type { OnceOptions } from '../../src/lease/once.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { boundOptions } from './bounds.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import { type NetworkParts, simDialer } from './network.ts';
import type { Occupant } from './seat.ts';

export const CRON_KEY = 'nightly';
const JOB_MS = 50;
const BOUND_MS = 30_000;
const OPEN_AGAIN_MS = 500;

export interface CronClientParts {
  readonly network: NetworkParts;
  readonly counters: Counters;
  readonly options: OnceOptions;
  /** The job begins, under the lease of this holder. */
  onBegan(fire: number, process: SimProcess, holder: string): void;
  /** The job has ended, on record or not. */
  onEnded(): void;
  /** A call of `once` has said that it has run the job to its end. */
  onRan(fire: number, process: SimProcess): void;
}

export class CronClient implements Occupant {
  readonly process: SimProcess;
  readonly #parts: CronClientParts;
  readonly #events = new Emitter();
  #store: Store | null = null;
  #holdfast: Holdfast | null = null;
  #isStopping = false;

  constructor(parts: CronClientParts) {
    this.#parts = parts;
    this.process = parts.network.process;
    // Else they would be printed.
    this.#events.on('store.warned', () => parts.counters.add('store.warned'));
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  async start(): Promise<void> {
    const { process } = this;
    const bounds = { lease: BOUND_MS, poll: BOUND_MS, workflow: BOUND_MS };
    while (!this.#isStopping && !process.isDead) {
      try {
        this.#store = await openRedisStoreOn(simDialer(this.#parts.network), {
          clock: process,
          random: process.random,
          events: this.#events,
          ...boundOptions(bounds),
        });
        break;
      } catch {
        await process.sleep(OPEN_AGAIN_MS);
      }
    }
    if (this.#store === null) return;
    const { random, name } = process;
    this.#holdfast = await open(this.#store, { clock: process, random, name, history: 'off' });
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#holdfast?.close();
    await this.#store?.close();
    this.end();
  }

  end(): void {
    this.process.kill();
    this.#parts.network.path.abandon(this.process);
  }

  /** Cron starts the job. */
  async fire(fire: number): Promise<void> {
    const { counters, options, onBegan, onEnded, onRan } = this.#parts;
    const { process } = this;
    if (this.#holdfast === null) {
      counters.add('cron: fired without a store');
      return;
    }
    try {
      const result = await this.#holdfast.once(CRON_KEY, options, async ({ lease, signal }) => {
        onBegan(fire, process, lease.holder);
        await process.sleep(JOB_MS, signal);
        onEnded();
      });
      if (process.isDead) return;
      counters.add(`cron: ${result.ok ? 'ran' : result.reason}`);
      if (result.ok) onRan(fire, process);
    } catch (error) {
      if (!process.isDead) counters.add(`cron: ${(error as { code?: string }).code ?? error}`);
    }
  }
}
