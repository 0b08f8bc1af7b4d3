/**
 * What a target server's record of polls says about the fleet that made them. Pure functions over the record: nothing
 * here waits or asks anybody. All times are in ms on the one clock that the processes of a host share.
 */
export interface Poll {
  readonly target: string;
  readonly instance: string;
  /** Null from a program that knows no fences. */
  readonly fence: number | null;
  /** When the poller began, by its own word. */
  readonly startMs: number;
  /** When its request was read here. */
  readonly arrivedMs: number;
  /** When it was answered, or its connection ended before that; Infinity while it goes on. */
  readonly endMs: number;
}

export interface Overlap {
  readonly target: string;
  readonly first: Poll;
  readonly second: Poll;
  readonly forMs: number;
}

/** Two polls of one target by different instances at the same time: what must never be. */
export function overlaps(polls: readonly Poll[]): Overlap[] {
  const found: Overlap[] = [];
  for (const [target, own] of byTarget(polls)) {
    /** Of each instance, the poll that ends last among those begun so far. */
    const latest = new Map<string, Poll>();
    for (const second of own) {
      for (const [instance, first] of latest) {
        const forMs = Math.min(first.endMs, second.endMs) - second.startMs;
        if (instance !== second.instance && forMs > 0) found.push({ target, first, second, forMs });
      }
      const before = latest.get(second.instance);
      if (before === undefined || before.endMs < second.endMs) latest.set(second.instance, second);
    }
  }
  return found;
}

export interface GapQuery {
  readonly fromMs: number;
  readonly toMs: number;
  readonly targets: readonly string[];
  readonly boundMs: number;
}

export interface Gap {
  readonly target: string;
  readonly fromMs: number;
  readonly lastedMs: number;
}

/** Where a target had no poll for longer than the bound, the edges of the time in question included. */
export function gaps(polls: readonly Poll[], query: GapQuery): Gap[] {
  const { fromMs, toMs, targets, boundMs } = query;
  const known = byTarget(polls);
  const found: Gap[] = [];
  for (const target of targets) {
    let polledUntilMs = fromMs;
    const close = (atMs: number) => {
      const lastedMs = Math.min(atMs, toMs) - polledUntilMs;
      if (lastedMs > boundMs) found.push({ target, fromMs: polledUntilMs, lastedMs });
    };
    for (const poll of known.get(target) ?? []) {
      if (poll.startMs > toMs) break;
      close(poll.startMs);
      polledUntilMs = Math.max(polledUntilMs, poll.endMs);
    }
    close(toMs);
  }
  return found;
}

export interface FenceRegression {
  readonly target: string;
  readonly seen: number;
  readonly poll: Poll;
}

/** Polls with a lower fence than their target had seen when they arrived. */
export function fenceRegressions(polls: readonly Poll[]): FenceRegression[] {
  const seen = new Map<string, number>();
  const found: FenceRegression[] = [];
  for (const poll of [...polls].sort((a, b) => a.arrivedMs - b.arrivedMs)) {
    if (poll.fence === null) continue;
    const highest = seen.get(poll.target) ?? 0;
    if (poll.fence < highest) found.push({ target: poll.target, seen: highest, poll });
    else seen.set(poll.target, poll.fence);
  }
  return found;
}

export interface Share {
  readonly id: string;
  readonly weight: number;
}

export interface Imbalance {
  /** A member; somebody who is none; or null for what nobody owns. */
  readonly member: string | null;
  readonly owned: number;
  readonly least: number;
  readonly most: number;
}

/** Who has fewer targets than the floor of its share, or more than its ceiling. */
export function imbalance(
  owners: ReadonlyMap<string, string | null>,
  members: readonly Share[],
): Imbalance[] {
  const owned = new Map<string | null, number>(members.map(({ id }) => [id, 0]));
  for (const owner of owners.values()) owned.set(owner, (owned.get(owner) ?? 0) + 1);
  const totalWeight = members.reduce((sum, { weight }) => sum + weight, 0);
  const weights = new Map(members.map(({ id, weight }) => [id, weight]));
  return [...owned]
    .map(([member, count]) => {
      const weight = (member === null ? 0 : weights.get(member)) ?? 0;
      const ideal = totalWeight === 0 ? 0 : (owners.size * weight) / totalWeight;
      return { member, owned: count, least: Math.floor(ideal), most: Math.ceil(ideal) };
    })
    .filter(({ owned: count, least, most }) => count < least || count > most);
}

/** A time in which a process stood still, and could know nothing of it. */
export interface Standstill {
  readonly instance: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Begun before its process was stopped, and sent after it woke. No lease can keep that from happening, since the process
 * was stopped between its check and its act; its fence shows the target that it is late.
 */
export function isLate(poll: Poll, standstills: readonly Standstill[]): boolean {
  return standstills.some(
    ({ instance, fromMs, toMs }) =>
      instance === poll.instance && poll.startMs <= fromMs && poll.arrivedMs >= toMs,
  );
}

/** For each target, its first poll that began at that moment or later, by anybody but `except`. */
export function firstPolls(
  polls: readonly Poll[],
  { fromMs, except }: { fromMs: number; except?: string },
): Map<string, Poll> {
  const first = new Map<string, Poll>();
  for (const [target, own] of byTarget(polls)) {
    const poll = own.find(({ startMs, instance }) => startMs >= fromMs && instance !== except);
    if (poll !== undefined) first.set(target, poll);
  }
  return first;
}

/** How often a target went from one instance to another, over all targets. */
export function moves(polls: readonly Poll[]): number {
  let count = 0;
  for (const own of byTarget(polls).values())
    for (const [i, { instance }] of own.entries())
      if (i > 0 && own[i - 1]?.instance !== instance) count += 1;
  return count;
}

/** Each target's polls in the order in which they began. */
export function byTarget(polls: readonly Poll[]): Map<string, Poll[]> {
  const found = new Map<string, Poll[]>();
  for (const poll of polls) {
    const own = found.get(poll.target);
    if (own === undefined) found.set(poll.target, [poll]);
    else own.push(poll);
  }
  for (const own of found.values()) own.sort((a, b) => a.startMs - b.startMs);
  return found;
}
