import type { Clock } from '../../core/clock.ts';
import { asEntries, pageOf, pageSize } from '../log-pages.ts';
import {
  LOG_KEPT,
  type LogPage,
  type LogReadCall,
  type LogRecallCall,
  type LogStore,
  type LogTrimCall,
} from '../port/log-store.ts';

interface Row {
  readonly json: string;
  readonly atMs: number;
}

/**
 * The number of an entry is its position. Numbers have no gaps. The first number is made from the
 * time: a position in the log of an earlier process is no position in this one.
 */
export class MemoryLog implements LogStore {
  readonly #clock: Clock;
  readonly #rows: Row[] = [];
  /** The number before the first row. */
  #dropped: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#dropped = Math.floor(clock.wallMs() * 1_000);
  }

  async append(values: readonly unknown[]): Promise<void> {
    const atMs = this.#clock.monotonicMs();
    for (const json of asEntries(values)) this.#rows.push({ json, atMs });
    this.#drop(Math.max(0, this.#rows.length - LOG_KEPT));
  }

  async read({ after, most }: LogReadCall): Promise<LogPage> {
    const size = pageSize(most);
    const last = after === undefined ? this.#dropped : numberOf(after);
    const isGap = !(last >= this.#dropped && last <= this.#dropped + this.#rows.length);
    const from = isGap ? 0 : last - this.#dropped;
    return pageOf(this.#numbered(from, from + size + 1), size, isGap);
  }

  async recall({ before, most }: LogRecallCall): Promise<LogPage> {
    const size = pageSize(most);
    const end = before === undefined ? this.#rows.length : numberOf(before) - this.#dropped - 1;
    if (Number.isNaN(end)) return pageOf([], size, true);
    const until = Math.min(Math.max(0, end), this.#rows.length);
    return pageOf(this.#numbered(Math.max(0, until - size - 1), until).reverse(), size, false);
  }

  async trim({ keptMs }: LogTrimCall): Promise<number> {
    const oldestMs = this.#clock.monotonicMs() - keptMs;
    const young = this.#rows.findIndex(({ atMs }) => atMs > oldestMs);
    return this.#drop(young === -1 ? this.#rows.length : young);
  }

  #numbered(from: number, until: number): [string, string][] {
    return this.#rows
      .slice(from, until)
      .map(({ json }, i) => [String(this.#dropped + from + i + 1), json]);
  }

  #drop(count: number): number {
    if (count > 0) this.#rows.splice(0, count);
    this.#dropped += count;
    return count;
  }
}

/** NaN if the position is malformed. */
function numberOf(position: string): number {
  return /^\d{1,16}$/.test(position) ? Number(position) : Number.NaN;
}
