/**
 * The leases that one session runs under, in the order in which they were taken: that of what it shows first, then that of its slot. They
 * are let go of in reverse. All of them are needed: when one is over, so is the session's time.
 */
import type { Clock } from '../base/clock.ts';
import type { Lease } from '../lease/lease.ts';
import type { Moment } from '../process/host.ts';

export class Tenures {
  readonly #clock: Clock;
  readonly #leases: Lease[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The one that was taken last; undefined while there is none. */
  get last(): Lease | undefined {
    return this.#leases.at(-1);
  }

  add(lease: Lease): void {
    this.#leases.push(lease);
  }

  assertHeld(): void {
    for (const lease of this.#leases) lease.assertHeld();
  }

  /** Until when they are good for. The clocks are read first: what time passes in between makes it earlier, not later. */
  deadline(): Moment {
    const [monotonicMs, wallMs] = [this.#clock.monotonicMs(), this.#clock.wallMs()];
    const leftMs = Math.min(...this.#leases.map((lease) => lease.remainingMs()));
    return { monotonicMs: monotonicMs + leftMs, wallMs: wallMs + leftMs };
  }

  /** Lets go of all of them, the last taken first; never fails. */
  async release(): Promise<void> {
    for (const lease of this.#leases.splice(0).reverse()) await lease.release();
  }

  /** What may still act is never handed over: they are not renewed any more, and run out. */
  async abandon(): Promise<void> {
    const never = new Promise<never>(() => {});
    for (const lease of this.#leases.splice(0)) await lease.release({ settled: never, within: 0 });
  }
}
