import type { Clock } from '../../core/clock.ts';
import { FENCE_RECORD_MS } from '../port/lease-store.ts';
import { sized } from '../port/limits.ts';
import {
  CHANGES_PAGE,
  type ChangesCall,
  type ChangesPage,
  type GetReply,
  type PutReply,
  type RecordRef,
  type RecordStore,
  type RecordWrite,
  type RefusedWrite,
  type RemoveReply,
} from '../port/record-store.ts';

interface Row {
  /** Null once removed: the row stays for a day, for its fence and for `changes`. */
  json: string | null;
  revision: number;
  fence: number;
  version: number;
  /** Infinity unless the record was removed. */
  expiresAtMs: number;
}

/** Rows in the order of their versions: a change moves a row to the end of its map. */
interface Collection {
  readonly live: Map<string, Row>;
  readonly removed: Map<string, Row>;
  /** The version of the last change. */
  version: number;
  /** The version of the newest removal that was dropped. */
  forgotten: number;
}

export class MemoryRecords implements RecordStore {
  readonly #clock: Clock;
  readonly #collections = new Map<string, Collection>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async get(collection: string, ids: readonly string[]): Promise<GetReply[]> {
    const { live } = this.#collection(collection);
    return ids.map((id) => {
      const row = live.get(id);
      if (row === undefined || row.json === null) return { kind: 'absent' };
      const { revision, fence } = row;
      return { kind: 'found', value: JSON.parse(row.json), revision, fence };
    });
  }

  async put(collection: string, writes: readonly RecordWrite[]): Promise<PutReply[]> {
    const texts = writes.map(({ id, value }) =>
      sized('record', `${collection}:${id}`, JSON.stringify(value)),
    );
    const rows = this.#collection(collection);
    return writes.map((write, i) => {
      const refused = refusal(rowOf(rows, write.id), write);
      if (refused !== null) return refused;
      const revision = this.#change(rows, write, texts[i] as string);
      return { kind: 'written', revision };
    });
  }

  async remove(collection: string, removals: readonly RecordRef[]): Promise<RemoveReply[]> {
    const rows = this.#collection(collection);
    return removals.map((removal) => {
      const refused = refusal(rowOf(rows, removal.id), removal);
      if (refused !== null) return refused;
      if (!rows.live.has(removal.id)) return { kind: 'absent' };
      this.#change(rows, removal, null);
      return { kind: 'removed' };
    });
  }

  async changes(collection: string, call: ChangesCall): Promise<ChangesPage> {
    const { since, most = CHANGES_PAGE } = call;
    const { live, removed, version, forgotten } = this.#collection(collection);
    // Most callers have read every change already.
    if (since === version) return { written: [], removed: [], version, more: false, reset: false };
    const began = since === 0 ? version : (call.began ?? 0);
    // A listing shows no record that was removed before it began, so it skips those removals.
    const known = Math.max(since, began);
    const reset = since > 0 && (known < forgotten || known > version);
    const changed = [...after(live, since), ...after(removed, known)];
    changed.sort(([, a], [, b]) => a.version - b.version);
    const page = changed.slice(0, Math.min(most, CHANGES_PAGE));
    const ids = (isRemoved: boolean) =>
      page.filter(([, { json }]) => (json === null) === isRemoved).map(([id]) => id);
    const facts = { written: ids(false), removed: ids(true), reset };
    if (changed.length === page.length)
      return { ...facts, version: Math.max(since, version), more: false };
    return { ...facts, version: page.at(-1)?.[1].version ?? since, more: true, began };
  }

  /** Only this process writes here, so there is nothing to discover. */
  async discover(): Promise<number> {
    return 0;
  }

  #change(rows: Collection, { id, fence }: RecordRef, json: string | null): number {
    const before = rowOf(rows, id);
    rows.live.delete(id);
    rows.removed.delete(id);
    rows.version = Math.max(rows.version + 1, Math.floor(this.#clock.wallMs() * 1_000));
    const isRemoval = json === null;
    const revision = (before?.revision ?? 0) + 1;
    const expiresAtMs = isRemoval ? this.#clock.monotonicMs() + FENCE_RECORD_MS : Infinity;
    const { version } = rows;
    const row = { json, revision, fence: fence ?? before?.fence ?? 0, version, expiresAtMs };
    (isRemoval ? rows.removed : rows.live).set(id, row);
    return revision;
  }

  #collection(name: string): Collection {
    const found = this.#collections.get(name);
    const rows = found ?? { live: new Map(), removed: new Map(), version: 0, forgotten: 0 };
    this.#collections.set(name, rows);
    this.#dropExpired(rows);
    return rows;
  }

  /** Removals expire in the order of their versions. */
  #dropExpired(rows: Collection): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, { version, expiresAtMs }] of rows.removed) {
      if (expiresAtMs > nowMs) return;
      rows.removed.delete(id);
      rows.forgotten = version;
    }
  }
}

function rowOf({ live, removed }: Collection, id: string): Row | undefined {
  return live.get(id) ?? removed.get(id);
}

function after(rows: ReadonlyMap<string, Row>, version: number): [string, Row][] {
  return [...rows].filter(([, row]) => row.version > version);
}

/** Returns why a write is refused, or null. The fence is checked before the revision. */
function refusal(row: Row | undefined, { fence, ifRevision }: RecordRef): RefusedWrite | null {
  if (fence !== undefined && row !== undefined && fence < row.fence)
    return { kind: 'stale', seen: row.fence };
  const revision = row === undefined || row.json === null ? 0 : row.revision;
  if (ifRevision !== undefined && ifRevision !== revision) return { kind: 'conflict', revision };
  return null;
}
