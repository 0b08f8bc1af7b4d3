import { ConfigError, FenceStaleError, RevisionConflictError } from './core/errors.ts';
import { checkKey } from './core/ids.ts';
import { checkKnown } from './core/options.ts';
import { checkFence } from './lease/fence.ts';
import type { RecordStore, RefusedWrite, StoredRecord } from './store/port/record-store.ts';

export interface WriteOptions {
  /** The write is refused with `FENCE_STALE` where the record has seen a higher one. */
  fence?: number;
  /** The write is refused with `REVISION_CONFLICT` where the record has another revision; 0: where there is one. */
  ifRevision?: number;
}

const KNOWN = new Set(['fence', 'ifRevision']);
const COLLECTION = 'record';
const CALL = { timeoutMs: 5_000 };

/** Small JSON documents in the store that refuse writes with an older fence than they have seen. */
export class Records {
  readonly #store: RecordStore;

  constructor(store: RecordStore) {
    this.#store = store;
  }

  async get(key: string): Promise<StoredRecord | null> {
    checkKey(key);
    const [reply] = await this.#store.get(COLLECTION, [key], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    if (reply?.kind !== 'found') return null;
    const { value, revision, fence } = reply;
    return { value, revision, fence };
  }

  async put(
    key: string,
    value: unknown,
    options: WriteOptions = {},
  ): Promise<{ revision: number }> {
    checkKey(key);
    checkWriteOptions(options);
    if (JSON.stringify(value) === undefined)
      throw new ConfigError({ field: 'value', value, rule: 'a record is a JSON value' });
    const [reply] = await this.#store.put(COLLECTION, [{ id: key, value, ...options }], CALL);
    if (reply?.kind === 'written') return { revision: reply.revision };
    throw refusedWrite(key, options, reply);
  }

  /** Whether there was one to remove. */
  async remove(key: string, options: WriteOptions = {}): Promise<{ removed: boolean }> {
    checkKey(key);
    checkWriteOptions(options);
    const [reply] = await this.#store.remove(COLLECTION, [{ id: key, ...options }], CALL);
    if (reply?.kind === 'removed' || reply?.kind === 'absent')
      return { removed: reply.kind === 'removed' };
    throw refusedWrite(key, options, reply);
  }

  /** The keys of all records, those written last at the end. */
  async *keys(): AsyncGenerator<string, void, undefined> {
    let at: { since: number; began?: number | undefined } = { since: 0 };
    for (;;) {
      const page = await this.#store.changes(COLLECTION, { ...CALL, ...at });
      yield* page.written;
      if (!page.more) return;
      at = { since: page.version, began: page.began };
    }
  }
}

function checkWriteOptions(options: WriteOptions): void {
  checkKnown(options, KNOWN);
  const { fence, ifRevision } = options;
  if (fence !== undefined) checkFence(fence);
  if (ifRevision !== undefined && !(Number.isSafeInteger(ifRevision) && ifRevision >= 0)) {
    const rule = 'a revision is a whole number, 0 for a record that is not there';
    throw new ConfigError({ field: 'ifRevision', value: ifRevision, rule });
  }
}

function refusedWrite(
  key: string,
  { fence = 0, ifRevision = 0 }: WriteOptions,
  reply?: RefusedWrite,
) {
  if (reply?.kind === 'stale')
    return new FenceStaleError({ resource: key, fence, seen: reply.seen });
  if (reply?.kind === 'conflict')
    return new RevisionConflictError({
      resource: key,
      expected: ifRevision,
      found: reply.revision,
    });
  return reply?.error ?? new Error('the store gave no reply');
}
