import { before, cost, type Hashed } from './hash.ts';

/**
 * Plans every unplanned target for a member that has room, as a walk over all pairs in ascending
 * cost would: cheapest first, without targets that have a place and members that are full.
 *
 * That walk would sort millions of pairs. Instead, each target goes to the member that it prefers
 * of those that would have it: a member with room, or one whose worst guest costs more. That guest
 * then looks for another place (deferred acceptance). A member that refuses a target now always
 * will, since its guests only get better; so this ends. Both sides of a pair have the same cost, so
 * it ends at the one arrangement that the walk comes to.
 */
export function place(
  members: readonly Hashed[],
  targets: readonly Hashed[],
  planned: Int32Array,
  room: readonly number[],
): void {
  const hosts = members.flatMap((member, m) => {
    const seats = room[m] ?? 0;
    return seats > 0 ? [{ m, member, guests: new GuestHeap(targets, seats) }] : [];
  });
  // In the order that decides between equal costs: then the first one found is the right one.
  hosts.sort((a, b) => (before(a.member, b.member) ? -1 : 1));
  const his = Int32Array.from(hosts, ({ member }) => member.hi);
  const los = Int32Array.from(hosts, ({ member }) => member.lo);
  /** The cost of the worst guest of each full member. */
  const worst = new Float64Array(hosts.length).fill(Number.POSITIVE_INFINITY);

  for (let first = 0; first < planned.length; first++) {
    if (planned[first] !== -1) continue;
    for (let t = first; t >= 0; ) {
      const { hi, lo } = targets[t] as Hashed;
      let best = -1;
      let bestCost = Number.POSITIVE_INFINITY;
      for (let h = 0; h < his.length; h++) {
        const c = cost(his[h] as number, los[h] as number, hi, lo);
        const limit = worst[h] as number;
        if (c >= bestCost || c > limit) continue;
        if (c === limit && !hosts[h]?.guests.wouldTake(t)) continue;
        best = h;
        bestCost = c;
      }
      const host = hosts[best];
      if (host === undefined) break;
      planned[t] = host.m;
      const turnedOut = host.guests.take(t, bestCost);
      if (turnedOut >= 0) planned[turnedOut] = -1;
      worst[best] = host.guests.worstCost;
      t = turnedOut;
    }
  }
}

/** The targets placed with one member so far: a heap with the worst on top. */
class GuestHeap {
  readonly #targets: readonly Hashed[];
  readonly #seats: number;
  readonly #guests: number[] = [];
  readonly #costs: number[] = [];

  constructor(targets: readonly Hashed[], seats: number) {
    this.#targets = targets;
    this.#seats = seats;
  }

  /** Infinity while there is room. */
  get worstCost(): number {
    if (this.#guests.length < this.#seats) return Number.POSITIVE_INFINITY;
    return this.#costs[0] ?? Number.POSITIVE_INFINITY;
  }

  /** Whether a target that costs as much as the worst guest would take its place. */
  wouldTake(target: number): boolean {
    const worst = this.#targets[this.#guests[0] ?? -1];
    return worst === undefined || before(this.#targets[target] as Hashed, worst);
  }

  /** Takes the target. Returns the one that has to leave for it, or -1. */
  take(target: number, cost: number): number {
    if (this.#guests.length < this.#seats) {
      this.#guests.push(target);
      this.#costs.push(cost);
      this.#up(this.#guests.length - 1);
      return -1;
    }
    const turnedOut = this.#guests[0] ?? -1;
    this.#guests[0] = target;
    this.#costs[0] = cost;
    this.#down();
    return turnedOut;
  }

  #isWorse(a: number, b: number): boolean {
    const difference = (this.#costs[a] as number) - (this.#costs[b] as number);
    if (difference !== 0) return difference > 0;
    const [guestA, guestB] = [this.#guests[a] as number, this.#guests[b] as number];
    return before(this.#targets[guestB] as Hashed, this.#targets[guestA] as Hashed);
  }

  #up(from: number): void {
    for (let slot = from; slot > 0; ) {
      const parent = (slot - 1) >> 1;
      if (!this.#isWorse(slot, parent)) return;
      this.#swap(slot, parent);
      slot = parent;
    }
  }

  #down(): void {
    for (let slot = 0; ; ) {
      const left = 2 * slot + 1;
      if (left >= this.#guests.length) return;
      const right = left + 1;
      const child = right < this.#guests.length && this.#isWorse(right, left) ? right : left;
      if (!this.#isWorse(child, slot)) return;
      this.#swap(slot, child);
      slot = child;
    }
  }

  #swap(a: number, b: number): void {
    const [guest, cost] = [this.#guests[a] as number, this.#costs[a] as number];
    this.#guests[a] = this.#guests[b] as number;
    this.#costs[a] = this.#costs[b] as number;
    this.#guests[b] = guest;
    this.#costs[b] = cost;
  }
}
