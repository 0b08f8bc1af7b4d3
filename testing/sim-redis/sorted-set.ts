import { compareTexts } from './value.ts';

export interface Scored {
  readonly score: number;
  readonly member: string;
}

/** Members by score, those of the same score by name. */
export class SortedSet {
  readonly #scores = new Map<string, number>();
  readonly #sorted: Scored[] = [];

  get size(): number {
    return this.#sorted.length;
  }

  copy(): SortedSet {
    const copy = new SortedSet();
    for (const { member, score } of this.#sorted) copy.set(member, score);
    return copy;
  }

  score(member: string): number | undefined {
    return this.#scores.get(member);
  }

  set(member: string, score: number): void {
    this.delete(member);
    this.#scores.set(member, score);
    const entry = { score, member };
    this.#sorted.splice(this.#place(entry), 0, entry);
  }

  delete(member: string): void {
    const score = this.#scores.get(member);
    if (score === undefined) return;
    this.#scores.delete(member);
    this.#sorted.splice(this.#place({ score, member }), 1);
  }

  /** From the place of the first to behind that of the last. */
  slice(from: number, to: number): Scored[] {
    return this.#sorted.slice(from, to);
  }

  /** How many have a lower score than this, or the same where `isAfter`. */
  rankOf(score: number, isAfter: boolean): number {
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const found = this.#sorted[middle]?.score ?? 0;
      if (found < score || (isAfter && found === score)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #place({ score, member }: Scored): number {
    const last = this.#sorted.at(-1);
    // Nearly always at the end: versions and times grow.
    if (last === undefined || last.score < score) return this.#sorted.length;
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const found = this.#sorted[middle] ?? last;
      const isBefore =
        found.score < score || (found.score === score && compareTexts(found.member, member) < 0);
      if (isBefore) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
