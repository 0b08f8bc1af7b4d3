import type { Clock } from '../../core/clock.ts';
import { asEntries, pageOf, pageSize } from '../log-pages.ts';
import { LOG_KEPT, type LogStore } from '../port/log-store.ts';

/**
 * The number of an entry is its position. Numbers have no gaps. The first number is made from the
 * time: a position in the log of an earlier process is no position in this one.
 */
export function memoryLog(clock: Clock): LogStore {
  const rows: { readonly json: string; readonly atMs: number }[] = [];
  /** The number before the first row. */
  let dropped = Math.floor(clock.wallMs() * 1_000);
  const numbered = (from: number, until: number) =>
    rows.slice(from, until).map(({ json }, i) => [String(dropped + from + i + 1), json] as const);
  const drop = (count: number) => {
    rows.splice(0, count);
    dropped += count;
    return count;
  };
  return {
    async append(values) {
      const atMs = clock.monotonicMs();
      for (const json of asEntries(values)) rows.push({ json, atMs });
      drop(Math.max(0, rows.length - LOG_KEPT));
    },
    async read({ after, most }) {
      const size = pageSize(most);
      const last = after === undefined ? dropped : numberOf(after);
      const isGap = !(last >= dropped && last <= dropped + rows.length);
      const from = isGap ? 0 : last - dropped;
      return pageOf(numbered(from, from + size + 1), size, isGap);
    },
    async recall({ before, most }) {
      const size = pageSize(most);
      const end = before === undefined ? rows.length : numberOf(before) - dropped - 1;
      if (Number.isNaN(end)) return pageOf([], size, true);
      const until = Math.min(Math.max(0, end), rows.length);
      return pageOf(numbered(Math.max(0, until - size - 1), until).reverse(), size, false);
    },
    async trim({ keptMs }) {
      const oldestMs = clock.monotonicMs() - keptMs;
      const young = rows.findIndex(({ atMs }) => atMs > oldestMs);
      return drop(young === -1 ? rows.length : young);
    },
  };
}

/** NaN if the position is malformed. */
function numberOf(position: string): number {
  return /^\d{1,16}$/.test(position) ? Number(position) : Number.NaN;
}
