/**
 * One poll: when it ended, in milliseconds since 1970, how long it took, and whether it succeeded.
 */
export type RecentPoll = readonly [at: number, tookMs: number, ok: 0 | 1];

/** Kept for each target; beyond this the oldest goes. */
const MAX_POLLS = 30;

/**
 * A poll is kept as one whole number: the time since the one before, how long it took in tenths of
 * a millisecond, and whether it succeeded.
 */
const TOOK_BITS = 24;
const TENTHS = 10;
const MAX_TOOK = 2 ** TOOK_BITS - 1;
/** Three days: nothing is polled more rarely than once a day. */
const MAX_BETWEEN = 2 ** (52 - TOOK_BITS) - 1;

/**
 * The last polls of one target by its owner. An instance has one of these for every target that it
 * owns, up to tens of thousands, so they are kept small.
 */
export class PollHistory {
  readonly #polls: number[] = [];
  /** Where the next one goes. */
  #next = 0;
  #lastAt = 0;

  add(at: number, tookMs: number, isOk: boolean): void {
    const between = Math.min(Math.max(0, Math.round(at - this.#lastAt)), MAX_BETWEEN);
    const took = Math.min(Math.round(tookMs * TENTHS), MAX_TOOK);
    this.#polls[this.#next] = (between * (MAX_TOOK + 1) + took) * 2 + (isOk ? 1 : 0);
    this.#next = (this.#next + 1) % MAX_POLLS;
    this.#lastAt = at;
  }

  /** The oldest first. */
  list(): RecentPoll[] {
    const { length } = this.#polls;
    const list: RecentPoll[] = [];
    let at = this.#lastAt;
    for (let age = 1; age <= length; age++) {
      const poll = this.#polls[(this.#next - age + length) % length] as number;
      const times = Math.floor(poll / 2);
      list.push([at, (times % (MAX_TOOK + 1)) / TENTHS, poll % 2 === 1 ? 1 : 0]);
      at -= Math.floor(times / (MAX_TOOK + 1));
    }
    return list.reverse();
  }
}

/** The polls in a stored result, the oldest first; empty where invalid: others write there too. */
export function readRecent(value: unknown): RecentPoll[] {
  return Array.isArray(value) && value.every(isPoll) ? value.slice(-MAX_POLLS) : [];
}

function isPoll(value: unknown): value is RecentPoll {
  if (!Array.isArray(value) || value.length !== 3) return false;
  const [at, tookMs, ok] = value as unknown[];
  return Number.isFinite(at) && Number.isFinite(tookMs) && (ok === 0 || ok === 1);
}
