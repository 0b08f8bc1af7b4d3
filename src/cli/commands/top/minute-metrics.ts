const SECONDS = 60;

/** Counts events of the last minute: one number per second, so its size is bounded. */
export class MinuteMetrics {
  readonly #counts: Map<number, number>;

  constructor(counts: ReadonlyMap<number, number> = new Map()) {
    this.#counts = new Map(counts);
  }

  /** Counts one event, by the wall clock. A time in the future, by another clock, counts as now. */
  add(atMs: number, nowMs: number): void {
    const second = secondOf(Math.min(atMs, nowMs));
    const first = secondOf(nowMs) - SECONDS;
    if (second <= first) return;
    this.#counts.set(second, (this.#counts.get(second) ?? 0) + 1);
    for (const old of this.#counts.keys()) if (old <= first) this.#counts.delete(old);
  }

  count(nowMs: number): number {
    const first = secondOf(nowMs) - SECONDS;
    let count = 0;
    for (const [second, of] of this.#counts) if (second > first) count += of;
    return count;
  }

  perSecond(nowMs: number): number {
    return this.count(nowMs) / SECONDS;
  }

  copy(): MinuteMetrics {
    return new MinuteMetrics(this.#counts);
  }
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1_000);
}
