import type { Clock } from '../../base/clock.ts';
import {
  LOG_KEPT,
  LOG_KEPT_MS,
  LOG_PAGE,
  type LogPage,
  type LogReadCall,
  type LogRecallCall,
  type LogStore,
} from '../store.ts';

interface Row {
  readonly number: number;
  readonly json: string;
  readonly atMs: number;
}

export class MemoryLog implements LogStore {
  readonly #clock: Clock;
  #rows: Row[] = [];
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async append(values: readonly unknown[]): Promise<void> {
    const atMs = this.#clock.monotonicMs();
    const rows = values.map((value) => ({
      number: ++this.#count,
      json: JSON.stringify(value),
      atMs,
    }));
    const kept = this.#rows.concat(rows).slice(-LOG_KEPT);
    this.#rows = kept.filter((row) => row.atMs > atMs - LOG_KEPT_MS);
  }

  async read({ after, most = LOG_PAGE }: LogReadCall): Promise<LogPage> {
    const afterNumber = after === undefined ? null : Number(after);
    const rows = this.#rows.filter(({ number }) => number > (afterNumber ?? 0));
    const oldest = this.#count - this.#rows.length;
    const isGap = afterNumber !== null && !(afterNumber >= oldest && afterNumber <= this.#count);
    return { ...page(rows, most), gap: isGap };
  }

  async recall({ before, most = LOG_PAGE }: LogRecallCall): Promise<LogPage> {
    const limit = before === undefined ? Number.POSITIVE_INFINITY : Number(before);
    const rows = this.#rows.filter(({ number }) => number < limit).reverse();
    return { ...page(rows, most), gap: false };
  }
}

function page(rows: readonly Row[], most: number): Pick<LogPage, 'entries' | 'more'> {
  const entries = rows
    .slice(0, Math.min(most, LOG_PAGE))
    .map(({ number, json }) => ({ position: String(number), value: JSON.parse(json) as unknown }));
  return { entries, more: rows.length > entries.length };
}
