/** Entries of the shared log as the page gets them, written down by hand. */

import type { ApiEvent } from '../../src/client/messages.ts';
import { readGap } from '../../src/core/gap.ts';

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
  const about = { target: 't', fence: String(fence), from: null };
  return entry('target.taken', at, by, { ...about, ...facts, ...readGap(facts) });
}

/** ANA had it, renewed it last at 10,000, and was killed. BOB took it when the lease had expired: at 40,000, 20 ms before. */
export const FAILOVER: readonly ApiEvent[] = [
  lease('acquired', 1_000, ANA, 100),
  lease('acquired', 40_020, BOB, 101),
  taken(40_020, BOB, 101, {
    ...{ from: ANA, how: 'failover', silentMs: 30_000, wakeMs: 12, grantMs: 8 },
  }),
];

/** ANA handed it to BOB. */
export const HANDOVER: readonly ApiEvent[] = [
  lease('acquired', 1_000, ANA, 100),
  lease('transferred', 9_000, ANA, 100, { successor: BOB, heldForMs: 8_000 }),
  lease('acquired', 9_015, BOB, 102),
  taken(9_015, BOB, 102, { from: ANA, how: 'handover', wakeMs: 10, grantMs: 5 }),
];

/** The same, but ANA was frozen: it woke up at 43,629, and saw that its own deadline had been at 38,500. */
export const FREEZE: readonly ApiEvent[] = [
  ...FAILOVER,
  lease('lost', 43_629, ANA, 100, { reason: 'expired', heldForMs: 42_629, lateMs: 5_129 }),
];
