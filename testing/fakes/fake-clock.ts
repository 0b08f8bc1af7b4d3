import type { Clock, Timer } from '../../src/core/clock.ts';
import { sleepOn } from '../../src/core/sleep.ts';

interface Pending {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/**
 * A clock that stands still until it is told to move. Timers run in order while it advances, with
 * everything their promises lead to in between; so a test steps through time and never waits.
 */
export class FakeClock implements Clock {
  readonly startedAtMs: number;
  #monotonicMs = 1_000;
  #wallMs: number;
  #order = 0;
  readonly #pending = new Set<Pending>();

  constructor({ wallMs = Date.UTC(2026, 0, 1) }: { wallMs?: number } = {}) {
    this.#wallMs = wallMs;
    this.startedAtMs = wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  after(delayMs: number, run: () => void): Timer {
    const pending = { atMs: this.#monotonicMs + Math.max(0, delayMs), order: this.#order++, run };
    this.#pending.add(pending);
    return { cancel: () => this.#pending.delete(pending) };
  }

  soon(run: () => void): void {
    queueMicrotask(run);
  }

  afterInput(run: () => void): void {
    queueMicrotask(run);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  /** Timers that have not run and were not cancelled. */
  get pendingTimers(): number {
    return this.#pending.size;
  }

  /** Moves both clocks, running each timer at its moment and letting what it started finish. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#monotonicMs + ms;
    await settle();
    for (let next = this.#next(endMs); next !== undefined; next = this.#next(endMs)) {
      this.#move(Math.max(0, next.atMs - this.#monotonicMs));
      this.#pending.delete(next);
      next.run();
      await settle();
    }
    this.#move(endMs - this.#monotonicMs);
    await settle();
  }

  /**
   * The event loop is blocked: both clocks move, no timer runs. The next `advance` runs them, late.
   */
  block(ms: number): void {
    this.#move(ms);
  }

  /** The host sleeps, or an operator sets its clock: the wall clock moves alone. */
  jumpWall(ms: number): void {
    this.#wallMs += ms;
  }

  #move(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }

  #next(untilMs: number): Pending | undefined {
    let next: Pending | undefined;
    for (const pending of this.#pending) {
      if (pending.atMs > untilMs) continue;
      if (
        next === undefined ||
        pending.atMs < next.atMs ||
        (pending.atMs === next.atMs && pending.order < next.order)
      )
        next = pending;
    }
    return next;
  }
}

/** Lets every promise that can settle do so. */
async function settle(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
