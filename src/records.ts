import { ConfigError, FenceStaleError, RevisionConflictError } from './core/errors.ts';
import { checkKey } from './core/ids.ts';
import { checkKnown } from './core/options.ts';
import { checkFence } from './lease/fence.ts';
import type { RecordStore, RefusedWrite, StoredRecord } from './store/port/record-store.ts';

export interface WriteOptions {
  /** Refuses the write with `FENCE_STALE` if the record has seen a higher fence. */
  fence?: number | undefined;
  /**
   * Refuses the write with `REVISION_CONFLICT` if the record has another revision. 0: if the record
   * exists.
   */
  ifRevision?: number | undefined;
}

/** A record as `get` returns it. `Value` is the type that its writer stored; it is not checked. */
export type ReadRecord<Value> = Omit<StoredRecord, 'value'> & { readonly value: Value };

const KNOWN = new Set(['fence', 'ifRevision']);
const COLLECTION = 'record';
const CALL = { timeoutMs: 5_000 };

/** Small JSON documents in the store. Each refuses a write with an older fence than it has seen. */
export class Records {
  readonly #store: RecordStore;

  constructor(store: RecordStore) {
    this.#store = store;
  }

  /** The record; null if it does not exist. */
  async get<Value = unknown>(key: string): Promise<ReadRecord<Value> | null> {
    checkKey(key);
    const [reply] = await this.#store.get(COLLECTION, [key], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    if (reply?.kind !== 'found') return null;
    const { value, revision, fence } = reply;
    return { value: value as Value, revision, fence };
  }

  async put(
    key: string,
    value: unknown,
    options: WriteOptions = {},
  ): Promise<{ revision: number }> {
    checkKey(key);
    checkWriteOptions(options);
    if (JSON.stringify(value) === undefined)
      throw new ConfigError({ field: 'value', value, rule: 'it must be a JSON value' });
    const [reply] = await this.#store.put(COLLECTION, [{ id: key, value, ...options }], CALL);
    if (reply?.kind === 'written') return { revision: reply.revision };
    throw refusedWrite(key, options, reply);
  }

  /** Removes a record. `removed`: whether it existed. */
  async remove(key: string, options: WriteOptions = {}): Promise<{ removed: boolean }> {
    checkKey(key);
    checkWriteOptions(options);
    const [reply] = await this.#store.remove(COLLECTION, [{ id: key, ...options }], CALL);
    if (reply?.kind === 'removed' || reply?.kind === 'absent')
      return { removed: reply.kind === 'removed' };
    throw refusedWrite(key, options, reply);
  }

  /** The keys of all records, the last written ones at the end. */
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
    const rule = 'it must be a whole number, or 0 for a record that does not exist';
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
