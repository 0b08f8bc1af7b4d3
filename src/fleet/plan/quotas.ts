import { before, type Hashed } from './hash.ts';

interface WeightedMember extends Hashed {
  readonly weight: number;
  readonly isDraining: boolean;
  readonly isForeign: boolean;
}

export interface Shares {
  /** Per member; draining and foreign members have 0. */
  readonly quotas: number[];
  /** No member could take a target over: every owner keeps its targets. */
  readonly isStuck: boolean;
}

/**
 * Shares out `count` targets by weight. Each member gets the whole part of its share. The rest goes
 * to the largest fractions; among equal ones to the members that own more already, then by hash.
 */
export function quotas(
  members: readonly WeightedMember[],
  held: readonly number[],
  count: number,
): Shares {
  const weights = members.map(({ weight, isDraining, isForeign }) =>
    isDraining || isForeign ? 0 : weight,
  );
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return { quotas: members.map(() => 0), isStuck: true };
  // Whole numbers only: two instances must not round differently.
  const shares = weights.map((weight) => Math.floor((count * weight) / total));
  const odd = count - shares.reduce((sum, share) => sum + share, 0);
  const fractions = weights.map((weight) => (count * weight) % total);
  const order = members
    .map((_, m) => m)
    .filter((m) => (weights[m] ?? 0) > 0)
    .sort((a, b) => {
      const byFraction = (fractions[b] ?? 0) - (fractions[a] ?? 0);
      if (byFraction !== 0) return byFraction;
      const byHeld = (held[b] ?? 0) - (held[a] ?? 0);
      if (byHeld !== 0) return byHeld;
      return before(members[a] as Hashed, members[b] as Hashed) ? -1 : 1;
    });
  for (const m of order.slice(0, odd)) shares[m] = (shares[m] ?? 0) + 1;
  return { quotas: shares, isStuck: false };
}
