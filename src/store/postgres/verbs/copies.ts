import {
  COPIED_WORKFLOWS_PAGE,
  COPY_PAGE,
  isCollection,
  isLeaseKey,
  normalised,
} from '../../copied.ts';
import type { CopyEntries, CopyNoun, CopyStore } from '../../port/copy-store.ts';
import { type Call, UNFINISHED_FORMAT } from '../../port/store.ts';
import type { FunctionConnection } from './function-connection.ts';

interface State {
  readonly isUnfinished: boolean;
  readonly clock: number;
}
interface Page<N extends CopyNoun> {
  readonly entries: CopyEntries[N][];
  readonly after: readonly unknown[] | null;
  /** The highest fence that no entry has; absent after the first page. */
  readonly floor: number | null;
}

export function postgresCopies(functions: FunctionConnection): CopyStore {
  const state = (what: '' | 'begin' | 'finish', call: Call) =>
    functions.call<State>('copy', 'copy_state', { what, unfinished: UNFINISHED_FORMAT }, call);
  return {
    isUnfinished: async (call) => (await state('', call)).isUnfinished,
    async begin(call) {
      await state('begin', call);
    },
    async finish(call) {
      await state('finish', call);
    },
    async *export<N extends CopyNoun>(noun: N, call: Call) {
      const most = noun === 'workflows' ? COPIED_WORKFLOWS_PAGE : COPY_PAGE;
      let after: readonly unknown[] | null | undefined;
      while (after !== null) {
        const request = { noun, most, after };
        const page: Page<N> = await functions.call('copy', 'copy_export', request, call);
        const floor = page.floor === null ? [] : [{ key: null, fence: page.floor }];
        const all = [...floor, ...page.entries] as CopyEntries[N][];
        const entries = all.flatMap((entry) => READ[noun](entry) ?? []);
        if (entries.length > 0) yield entries;
        after = page.after;
      }
    },
    async import<N extends CopyNoun>(noun: N, entries: readonly CopyEntries[N][], call: Call) {
      await functions.call(
        'copy',
        'copy_import',
        { noun, entries: entries.map(WRITE[noun]) },
        call,
      );
    },
    fenceClock: async (call) => (await state('', call)).clock,
  };
}

/** What the database returns as entries; null for another prefix's. */
const READ: { readonly [N in CopyNoun]: (entry: CopyEntries[N]) => CopyEntries[N] | null } = {
  fences: (entry) => (entry.key === null || isLeaseKey(entry.key) ? entry : null),
  records: (entry) => (isCollection(entry.collection) ? entry : null),
  workflows: normalised,
  sessions: (entry) => ({ ...entry, label: JSON.parse(entry.label) }),
  streams: (entry) => entry,
  lanes: (entry) => entry,
  dead: (entry) => {
    // The functions write JSON with spaces.
    const json = JSON.stringify(JSON.parse(entry.json));
    return { ...entry, json, reason: JSON.parse(entry.reason), atMs: Math.floor(entry.atMs) };
  },
};

const same = <Entry>(entry: Entry): Entry => entry;
const WRITE: { readonly [N in CopyNoun]: (entry: CopyEntries[N]) => CopyEntries[N] } = {
  fences: same,
  records: same,
  workflows: same,
  sessions: (entry) => ({ ...entry, label: JSON.stringify(entry.label) }),
  streams: same,
  lanes: same,
  dead: (entry) => ({ ...entry, reason: JSON.stringify(entry.reason) }),
};
