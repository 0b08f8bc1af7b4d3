import {
  CHANGES_PAGE,
  type ChangesCall,
  type ChangesPage,
  type GetReply,
  type PutReply,
  type RecordStore,
  type RemoveReply,
} from '../../port/record-store.ts';
import type { Call } from '../../port/store.ts';
import { recordJson } from '../../values.ts';
import type { FunctionConnection } from './function-connection.ts';

interface Changes {
  readonly newest: number;
  readonly forgotten: number;
  readonly rows: readonly [id: string, version: number, isRemoved: boolean][];
}
type WriteReply = [revision: number] | ['absent'] | ['stale' | 'conflict', number];

export function postgresRecords(functions: FunctionConnection): RecordStore {
  const write = async (
    operation: string,
    collection: string,
    writes: readonly object[],
    call: Call,
  ): Promise<WriteReply[]> => {
    if (writes.length === 0) return [];
    return functions.call(operation, 'record_write', { collection, writes }, call);
  };
  return {
    async get(collection, ids, call) {
      type Row = [json: string, revision: number, fence: number] | null;
      const request = { collection, ids };
      const rows = await functions.call<Row[]>('get', 'record_get', request, call);
      return rows.map((row): GetReply => {
        if (row === null) return { kind: 'absent' };
        const [json, revision, fence] = row;
        return { kind: 'found', value: JSON.parse(json), revision, fence };
      });
    },
    async put(collection, writes, call) {
      const texts = writes.map(({ id, value }) => recordJson(`${collection}:${id}`, value));
      const valid = writes.flatMap(({ id, fence, ifRevision }, i) => {
        const json = texts[i] as string | Error;
        return typeof json === 'string' ? [{ id, fence, revision: ifRevision, json }] : [];
      });
      const replies = await write('put', collection, valid, call);
      let next = 0;
      return texts.map((json): PutReply => {
        if (typeof json !== 'string') return { kind: 'failed', error: json };
        return written(replies[next++] as WriteReply);
      });
    },
    async remove(collection, removals, call) {
      const writes = removals.map(({ id, fence, ifRevision: revision }) => {
        return { id, fence, revision, json: null };
      });
      const replies = await write('remove', collection, writes, call);
      return replies.map((reply): RemoveReply => {
        const answer = reply[0] === 'absent' ? null : written(reply);
        if (answer === null) return { kind: 'absent' };
        return answer.kind === 'written' ? { kind: 'removed' } : answer;
      });
    },
    async changes(collection, call) {
      const { since, began } = call;
      const most = Math.min(call.most ?? CHANGES_PAGE, CHANGES_PAGE);
      const request = { collection, since, began, most };
      const reply = await functions.call<Changes>('changes', 'record_changes', request, call);
      return changesPage(reply, call, most);
    },
    /** Every record of the database is in its table, so there is nothing to discover. */
    async discover() {
      return 0;
    },
  };
}

function written([first, second = 0]: WriteReply): PutReply {
  if (first === 'stale') return { kind: 'stale', seen: second };
  if (first === 'conflict') return { kind: 'conflict', revision: second };
  return { kind: 'written', revision: Number(first) };
}

function changesPage(
  { newest, forgotten, rows }: Changes,
  call: ChangesCall,
  most: number,
): ChangesPage {
  const { since } = call;
  const began = since === 0 ? newest : (call.began ?? 0);
  const known = Math.max(since, began);
  const page = rows.slice(0, most);
  const ids = (wanted: boolean) =>
    page.filter(([, , isRemoved]) => isRemoved === wanted).map(([id]) => id);
  const reset = since > 0 && (known < forgotten || known > newest);
  const [changed, removed] = [ids(false), ids(true)];
  if (rows.length === page.length)
    return { written: changed, removed, reset, version: Math.max(since, newest), more: false };
  const version = page.at(-1)?.[1] ?? since;
  return { written: changed, removed, reset, version, more: true, began };
}
