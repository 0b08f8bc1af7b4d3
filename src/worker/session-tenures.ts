/**
 * The leases that one session runs under, in the order in which they were taken: that of what it shows first, then that of its slot. They
 * are let go of in reverse. All of them are needed: when one is over, so is the session's time.
 */
import type { Lease } from '../lease/lease.ts';
import type { CommandDeadline } from './supervisor/command-validity.ts';

export class SessionTenures {
  readonly #leases: Lease[] = [];

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

  /** Until when all of them are good. */
  get deadline(): CommandDeadline {
    return this.#leases.map(({ deadline }) => deadline);
  }

  /** The clocks disagree: a lease that is asked whether it is held sends the renewal that this calls for. */
  confirm(): void {
    for (const lease of this.#leases) lease.isHeld();
  }

  /** Lets go of all of them, the last taken first; never fails. */
  async release(): Promise<void> {
    for (const lease of this.#leases.splice(0).reverse()) await lease.release();
  }

  /** What may still act is never handed over: they are not renewed any more, and expire. `settled`: when nothing of it acts any more. */
  async abandon(settled: Promise<unknown> = new Promise(() => {})): Promise<void> {
    const leases = this.#leases.splice(0);
    await Promise.all(leases.map((lease) => lease.release({ settled, within: 0 })));
  }
}
