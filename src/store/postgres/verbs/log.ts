import { asEntries, pageOf, pageSize } from '../../log-pages.ts';
import { LOG_KEPT, type LogStore } from '../../port/log-store.ts';
import type { Call } from '../../port/store.ts';
import type { FunctionConnection } from './function-connection.ts';

/** An append removes at most so many old entries per new one, */
const MAX_REMOVED_PER_ENTRY = 2;
/** and so many more per call, so that a log that is too long gets down to its size. */
const MAX_REMOVED_PER_CALL = 16;
/** `trim` removes at most so many entries in one transaction. */
const MAX_TRIMMED = 5_000;

type Rows = [number: string, json: string][];

export function postgresLog(functions: FunctionConnection): LogStore {
  /** Returns the last number, and the entries after one: one more than a page has. */
  const from = (after: string | null, most: number, call: Call): Promise<[string | null, Rows]> => {
    return functions.call('read log', 'log_read', { after, most }, call);
  };
  return {
    async append(values, call) {
      if (values.length === 0) return;
      const entries = asEntries(values);
      const most = values.length * MAX_REMOVED_PER_ENTRY + MAX_REMOVED_PER_CALL;
      await functions.call('append', 'log_append', { entries, kept: LOG_KEPT, most }, call);
    },
    async read(call) {
      const size = pageSize(call.most);
      if (call.after === undefined) return pageOf((await from(null, size, call))[1], size, false);
      const after = numberOf(call.after);
      if (after !== null) {
        const [last, found] = await from(after, size, call);
        const next = found[0] === undefined ? Number(last ?? Number.NaN) : Number(found[0][0]) - 1;
        if (next === Number(after)) return pageOf(found, size, false);
      }
      return pageOf((await from(null, size, call))[1], size, true);
    },
    async recall(call) {
      const size = pageSize(call.most);
      const before = call.before === undefined ? undefined : numberOf(call.before);
      if (before === null) return pageOf([], size, true);
      const request = { before, most: size };
      const rows = await functions.call<Rows>('recall', 'log_recall', request, call);
      return pageOf(rows, size, false);
    },
    trim({ keptMs, ...call }) {
      return functions.call('trim', 'log_trim', { kept: keptMs, most: MAX_TRIMMED }, call);
    },
  };
}

/** Null if the position is malformed. */
function numberOf(position: string): string | null {
  return /^\d{1,16}$/.test(position) ? position : null;
}
