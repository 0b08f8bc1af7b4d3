/** Entries of the shared log as the page gets them, written down by hand. */
import type { ApiEvent } from '../../src/client/messages.ts';

export const ANA = 'ana-1794794965598888000-aaaaaaaa';
export const BOB = 'bob-1794794965598888000-bbbbbbbb';
export const CARL = 'carl-1794794965598888000-cccccccc';

let count = 0;

export function entry(
  event: string,
  at: number,
  instance: string,
  facts: Readonly<Record<string, unknown>> = {},
): ApiEvent {
  count++;
  return { position: String(count), at, instance, event, ...facts };
}

/** What happened to the lease of the target `t`, told by its holder. */
export function lease(
  what: string,
  at: number,
  holder: string,
  fence: number,
  facts: Readonly<Record<string, unknown>> = {},
): ApiEvent {
  const about = { leaseClass: 'poll', key: 't', holder, fence: String(fence) };
  return entry(`lease.${what}`, at, holder, { ...about, ...facts });
}

export function taken(
  at: number,
  by: string,
  fence: number,
  facts: Readonly<Record<string, unknown>>,
): ApiEvent {
  const plain = { from: null, unownedMs: 0, wakeMs: 0, grantMs: 0, ttlMs: 30_000 };
  return entry('target.taken', at, by, { target: 't', fence: String(fence), ...plain, ...facts });
}

/** ANA had it, was killed, and BOB took it when its lease had run out: at 40,000, 20 ms before. */
export const FAILOVER: readonly ApiEvent[] = [
  lease('acquired', 1_000, ANA, 100),
  lease('acquired', 40_020, BOB, 101),
  taken(40_020, BOB, 101, {
    ...{ from: ANA, how: 'failover', unownedMs: 20, wakeMs: 12, grantMs: 8 },
  }),
];

/** ANA handed it to BOB. */
export const HANDOVER: readonly ApiEvent[] = [
  lease('acquired', 1_000, ANA, 100),
  lease('transferred', 9_000, ANA, 100, { successor: BOB, heldForMs: 8_000 }),
  lease('acquired', 9_015, BOB, 102),
  taken(9_015, BOB, 102, { from: ANA, how: 'handover', unownedMs: 15, wakeMs: 10, grantMs: 5 }),
];
