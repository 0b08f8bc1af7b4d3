import type { LoggedEvent } from '../../src/telemetry/event-log.ts';

/** Noon of a day, from which the moments of these logs count. */
export const NOON = Date.UTC(2026, 5, 1, 12);
export const TTL_MS = 30_000;
const GUARD_MS = 1_500;

interface Skews {
  /** How far the clock of each instance is ahead of the store's. */
  readonly [instance: string]: number;
}

/**
 * Writes a log as instances would: moments are of the store's clock, in milliseconds from noon; each
 * instance writes what its own clock shows then. A request takes 4 ms.
 */
export class LogWriter {
  readonly events: LoggedEvent[] = [];
  readonly #skews: Skews;

  constructor(skews: Skews = {}) {
    this.#skews = skews;
  }

  add(ms: number, instance: string, event: string, facts: Record<string, unknown> = {}): this {
    const at = NOON + ms + (this.#skews[instance] ?? 0);
    const position = String(this.events.length + 1);
    this.events.push({ position, at, instance, event, ...facts });
    return this;
  }

  /** The store grants at `ms`; the holder learns of it 2 ms later. */
  acquired(
    ms: number,
    instance: string,
    { key = 'k', fence = fenceAt(ms), holder = instance } = {},
  ): this {
    const facts = { ...lease(holder, key, fence), ttlMs: TTL_MS, waitedMs: 0, tookMs: 4 };
    const remainingMs = TTL_MS - GUARD_MS - 4;
    return this.add(ms + 2, instance, 'lease.acquired', { ...facts, remainingMs });
  }

  /** The holder stops acting at `ms`; the entry is written when the store has answered. */
  ended(
    how: 'released' | 'lost' | 'transferred' | 'abandoned',
    ms: number,
    instance: string,
    { since, lateMs = 0, ...rest }: { since: number; lateMs?: number; [fact: string]: unknown },
  ): this {
    const { key = 'k', fence = fenceAt(since), ...facts } = rest;
    const heldForMs = ms - since + 2 + lateMs;
    const late = how === 'lost' ? { lateMs, reason: 'expired' } : {};
    const own = { ...lease(instance, String(key), String(fence)), heldForMs, ...late, ...facts };
    return this.add(ms + (how === 'lost' ? lateMs : 4), instance, `lease.${how}`, own);
  }
}

/** The fence of a grant that the store made then. */
export function fenceAt(ms: number): string {
  return String((NOON + ms) * 1_000);
}

export function lease(holder: string, key: string, fence: string) {
  return { leaseClass: 'poll', key, holder, fence };
}
