/**
 * The judge of a soak: what real processes wrote down, on the one monotonic clock that all processes of a host share.
 * It knows nothing of Holdfast. Each belief is a time in which a process passed `assertHeld()` at its beginning and at
 * its end, so it would have passed at every moment in between.
 */

/** What a process writes down for each lease that it held. Times are in microseconds. */
export interface Belief {
  readonly key: string;
  /** Which process, and which of its leases. */
  readonly by: string;
  readonly holder: string;
  readonly fence: number;
  /** After the first check that passed. */
  readonly from: number;
  /** Before the last check that passed. */
  readonly until: number;
}

export interface SoakViolation {
  readonly kind: 'two believers' | 'fence granted twice' | 'fence did not grow';
  readonly key: string;
  readonly text: string;
}

/** Everything in a history that must not be. */
export function judgeBeliefs(beliefs: readonly Belief[]): SoakViolation[] {
  return [...grouped(beliefs)].flatMap(([key, of]) => judgeKey(key, of));
}

function judgeKey(key: string, beliefs: readonly Belief[]): SoakViolation[] {
  const sorted = [...beliefs].sort((a, b) => a.from - b.from);
  const violations: SoakViolation[] = [];
  const holders = new Map<number, Belief>();
  let last: Belief | null = null;
  let highest: Belief | null = null;
  for (const belief of sorted) {
    const twin = holders.get(belief.fence);
    if (twin !== undefined && twin.by !== belief.by)
      violations.push({ kind: 'fence granted twice', key, text: pairOf(twin, belief) });
    holders.set(belief.fence, belief);
    if (last !== null && last.by !== belief.by && belief.from < last.until) {
      const ms = (Math.min(last.until, belief.until) - belief.from) / 1_000;
      const text = `${pairOf(last, belief)} for ${ms.toFixed(1)} ms`;
      violations.push({ kind: 'two believers', key, text });
    }
    if (highest !== null && highest.by !== belief.by && belief.fence < highest.fence)
      violations.push({ kind: 'fence did not grow', key, text: pairOf(highest, belief) });
    if (last === null || belief.until > last.until) last = belief;
    if (highest === null || belief.fence > highest.fence) highest = belief;
  }
  return violations;
}

function pairOf(a: Belief, b: Belief): string {
  return `${a.by} (${a.holder}, fence ${a.fence}) and ${b.by} (${b.holder}, fence ${b.fence})`;
}

function grouped(beliefs: readonly Belief[]): Map<string, Belief[]> {
  const byKey = new Map<string, Belief[]>();
  for (const belief of beliefs) {
    const of = byKey.get(belief.key) ?? [];
    byKey.set(belief.key, of);
    of.push(belief);
  }
  return byKey;
}
