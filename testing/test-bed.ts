/**
 * For tests of what is built on Holdfast: one store in memory, one clock for it and for everybody,
 * and as many instances as a test wants, each with a connection that can be broken. No time passes
 * but what the test lets pass; so a lease of half a minute is lost in a millisecond, at the same
 * moment in every run.
 *
 * ```ts
 * const bed = await TestBed.open();
 * const { holdfast, faults } = await bed.join('ana');
 * const report = nightlyReport(holdfast);
 * faults.hang = true;
 * await expect(bed.outcome(report)).rejects.toMatchObject({ code: 'LEASE_LOST' });
 * await bed.close();
 * ```
 *
 * **What it does not do.** It does not step the timers of the code under test: what that waits for
 * by itself takes as long as ever. And its instances share a process, and a memory: what real
 * processes and stores do to each other needs real ones.
 */
import { type Duration, durationMs } from '../src/core/duration.ts';
import { seededRandom } from '../src/core/random.ts';
import { type Holdfast, type OpenOptions, open } from '../src/holdfast.ts';
import { createMemoryStore } from '../src/store/memory/memory-store.ts';
import type { Store } from '../src/store/port/store.ts';
import { FakeClock } from './fakes/fake-clock.ts';
import { faultyStore, type StoreFaults } from './fakes/faulty-store.ts';

/** A process, as far as a test is concerned. */
export interface TestInstance {
  readonly holdfast: Holdfast;
  /** What is wrong with its connection to the store; nothing, until the test says so. */
  readonly faults: StoreFaults;
}

export interface StepOptions {
  /** How much time may pass for the instances; default an hour. Then it rejects. */
  within?: Duration;
  /** What is waited for, for the message; default `the condition`. */
  what?: string;
}

/** Time passes in steps of this size while something is waited for. */
const STEP_MS = 50;
const DEFAULT_WITHIN_MS = 3_600_000;
/** How long closing waits for work to say that it has stopped, in the time of the instances. */
const CLOSE_MS = 1_000;

export class TestBed implements AsyncDisposable {
  readonly clock: FakeClock;
  /** The one store, without anybody's faults: to look at, and to open something else on. */
  readonly store: Store;
  readonly #instances: Holdfast[] = [];
  #joined = 0;

  private constructor(clock: FakeClock, store: Store) {
    this.clock = clock;
    this.store = store;
  }

  static async open(): Promise<TestBed> {
    const clock = new FakeClock();
    const store = createMemoryStore({ clock });
    // Loads what workflows and intents are kept in: that takes real time, for which a stepped clock
    // would not wait.
    await store.workflows.list({ timeoutMs: 5_000 });
    return new TestBed(clock, store);
  }

  /** One more instance on the store. Its chance is repeatable: the same in every run. */
  async join(
    name = `instance${this.#joined + 1}`,
    options: OpenOptions = {},
  ): Promise<TestInstance> {
    const { store, faults } = faultyStore(this.store, this.clock);
    const random = seededRandom(++this.#joined);
    const holdfast = await open(store, { clock: this.clock, random, name, ...options });
    this.#instances.push(holdfast);
    return { holdfast, faults };
  }

  /**
   * Lets time pass until the condition holds. Rejects if it does not within `within`, or throws.
   */
  async until(
    condition: () => boolean | Promise<boolean>,
    { within = DEFAULT_WITHIN_MS, what = 'the condition' }: StepOptions = {},
  ): Promise<void> {
    const withinMs = durationMs(within, 'within');
    const endMs = this.clock.monotonicMs() + withinMs;
    while (!(await condition())) {
      if (this.clock.monotonicMs() >= endMs)
        throw new Error(
          `${withinMs} ms have passed on the clock of the test, and it still waits for ${what}`,
        );
      await this.clock.advance(STEP_MS);
    }
  }

  /** What comes of a promise, with time passing meanwhile. */
  async outcome<T>(promise: Promise<T>, options: StepOptions = {}): Promise<T> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    promise.then(over, over);
    // What is done without time passing is over by the end of this turn.
    await this.clock.advance(0);
    await this.until(() => isOver, { what: 'an outcome', ...options });
    return promise;
  }

  /** Closes every instance. Work that does not stop is left behind, as `holdfast.close` does. */
  async close(): Promise<void> {
    const open = this.#instances.splice(0);
    await this.outcome(Promise.all(open.map((holdfast) => holdfast.close({ within: CLOSE_MS }))));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
