import type { Clock } from '../../base/clock.ts';
import {
  CHANGES_PAGE,
  type ChangesCall,
  type ChangesPage,
  type GetReply,
  type PutReply,
  REMOVALS_KEPT,
  type RecordRef,
  type RecordStore,
  type RecordWrite,
  type RefusedWrite,
  type RemoveReply,
} from '../store.ts';

interface Row {
  /** Null once removed: the row stays, for the fence it has seen and for those who ask what has changed. */
  json: string | null;
  revision: number;
  fence: number;
  version: number;
}

export class MemoryRecords implements RecordStore {
  readonly #clock: Clock;
  /** Rows in the order of their versions: one that changes goes to the end. */
  readonly #collections = new Map<string, Map<string, Row>>();
  #version = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async get(collection: string, ids: readonly string[]): Promise<GetReply[]> {
    return ids.map((id) => {
      const row = this.#rows(collection).get(id);
      if (row === undefined || row.json === null) return { kind: 'absent' };
      const { revision, fence } = row;
      return { kind: 'found', value: JSON.parse(row.json), revision, fence };
    });
  }

  async put(collection: string, writes: readonly RecordWrite[]): Promise<PutReply[]> {
    return writes.map((write) => {
      const row = this.#rows(collection).get(write.id);
      const refused = refusal(row, write);
      if (refused !== null) return refused;
      const revision = this.#change(collection, write, JSON.stringify(write.value));
      return { kind: 'written', revision };
    });
  }

  async remove(collection: string, removals: readonly RecordRef[]): Promise<RemoveReply[]> {
    return removals.map((removal) => {
      const row = this.#rows(collection).get(removal.id);
      const refused = refusal(row, removal);
      if (refused !== null) return refused;
      if (row === undefined || row.json === null) return { kind: 'absent' };
      this.#change(collection, removal, null);
      this.#forgetOldRemovals(collection);
      return { kind: 'removed' };
    });
  }

  async changes(collection: string, { since }: ChangesCall): Promise<ChangesPage> {
    const rows = [...this.#rows(collection)];
    const removals = rows.filter(([, { json }]) => json === null);
    const oldest = removals[0]?.[1].version ?? 0;
    const isForgotten = since > 0 && since < oldest && removals.length >= REMOVALS_KEPT;
    const changed = rows.filter(([, { version }]) => version > since);
    const page = changed.slice(0, CHANGES_PAGE);
    const ids = (isRemoved: boolean) =>
      page.filter(([, { json }]) => (json === null) === isRemoved).map(([id]) => id);
    return {
      written: ids(false),
      removed: since === 0 ? [] : ids(true),
      version: page.at(-1)?.[1].version ?? since,
      more: changed.length > page.length,
      reset: isForgotten || since > this.#version,
    };
  }

  /** Nobody else can write here. */
  async discover(): Promise<number> {
    return 0;
  }

  #change(collection: string, { id, fence }: RecordRef, json: string | null): number {
    const rows = this.#rows(collection);
    const before = rows.get(id);
    rows.delete(id);
    this.#version = Math.max(this.#version + 1, Math.floor(this.#clock.wallMs() * 1_000));
    const revision = (before?.revision ?? 0) + 1;
    rows.set(id, { json, revision, fence: fence ?? before?.fence ?? 0, version: this.#version });
    return revision;
  }

  #forgetOldRemovals(collection: string): void {
    const rows = this.#rows(collection);
    const removals = [...rows].filter(([, { json }]) => json === null);
    for (const [id] of removals.slice(0, -REMOVALS_KEPT)) rows.delete(id);
  }

  #rows(collection: string): Map<string, Row> {
    const rows = this.#collections.get(collection) ?? new Map<string, Row>();
    this.#collections.set(collection, rows);
    return rows;
  }
}

/** Why a change of a record may not be made, or null. Fences go first: who is too late need not know more. */
function refusal(row: Row | undefined, { fence, ifRevision }: RecordRef): RefusedWrite | null {
  if (fence !== undefined && row !== undefined && fence < row.fence)
    return { kind: 'stale', seen: row.fence };
  const revision = row === undefined || row.json === null ? 0 : row.revision;
  if (ifRevision !== undefined && ifRevision !== revision) return { kind: 'conflict', revision };
  return null;
}
