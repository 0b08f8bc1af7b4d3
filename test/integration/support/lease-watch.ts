import { expect } from 'vitest';
import type { Lease } from '../../../src/index.ts';
import { hostMs } from '../../support/host-clock.ts';
import { until } from '../../support/until.ts';

export { hostMs };

/** How long a lease may be believed in from the moment its last confirmed request was sent: ttl − guard. */
export function validMs(ttlMs: number): number {
  return ttlMs - Math.min(Math.max(ttlMs / 20, 100), 1_500);
}

/** The shortest lease whose operations still have room on a busy machine; and how long it may be believed in. */
export const SHORT = { ttl: 3_000, renewEvery: 300, operationTimeout: 800 } as const;
export const SHORT_VALID_MS = validMs(SHORT.ttl);

/**
 * Asks a lease every millisecond whether it may still be acted upon, and remembers when it last said yes. The time is
 * taken before the question: a yes at that time or later.
 */
export class LeaseWatch {
  readonly lease: Lease;
  lastHeldMs = 0;
  lastAssertedMs = 0;
  /** When it was last seen to be good for longer than before: its renewal was confirmed then or before, and sent before that. */
  lastConfirmedMs = 0;
  /** What it said, whenever that changed. */
  readonly states: string[] = [];
  readonly #timer: NodeJS.Timeout;
  #remainingMs = 0;

  constructor(lease: Lease) {
    this.lease = lease;
    this.#timer = setInterval(() => this.#ask(), 1);
    this.#ask();
  }

  /** Goes on asking until the moment is past, and then some: nothing may have passed after it. */
  async neverPassesAfter(momentMs: number): Promise<void> {
    const what = 'the deadline to pass';
    await until(() => hostMs() > momentMs + 30, { what, deadlineMs: 15_000, every: 2 });
    this.#ask();
    expect(this.lastHeldMs).toBeLessThanOrEqual(momentMs);
    expect(this.lastAssertedMs).toBeLessThanOrEqual(momentMs);
    expect(this.lease.state).toBe('lost');
    expect(this.lease.signal.aborted).toBe(true);
    expect(this.lease.remainingMs()).toBe(0);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #ask(): void {
    const askedMs = hostMs();
    if (this.lease.isHeld()) this.lastHeldMs = askedMs;
    if (passes(this.lease)) this.lastAssertedMs = askedMs;
    const remainingMs = this.lease.remainingMs();
    if (remainingMs > this.#remainingMs) this.lastConfirmedMs = hostMs();
    this.#remainingMs = remainingMs;
    const { state } = this.lease;
    if (this.states.at(-1) !== state) this.states.push(state);
  }
}

function passes(lease: Lease): boolean {
  try {
    lease.assertHeld();
    return true;
  } catch {
    return false;
  }
}

/** Every tenure of a key has a higher fence than the one before. */
export function expectRising(fences: readonly number[]): void {
  expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
}
