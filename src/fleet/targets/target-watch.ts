/**
 * The records of all targets, as the last `refresh` read them. A refresh reads only the records
 * that changed. A record that is invalid or could not be read does not count as removed: its target
 * stays as it was, because one typing error must not stop the polls.
 */
import { KeyForeignError } from '../../core/errors.ts';
import type { Emitter } from '../../core/events.ts';
import { ChangeReader } from '../../store/change-reader.ts';
import type { GetReply } from '../../store/port/record-store.ts';
import type { Store } from '../../store/port/store.ts';
import {
  InvalidRecord,
  readTargetRecord,
  TARGET_COLLECTION,
  TARGET_TOPIC,
  type TargetIds,
  type TargetRecord,
} from './target-record.ts';

const CALL = { timeoutMs: 5_000 };
/** A discovery walks all keys of the store. */
const DISCOVERY_CALL = { timeoutMs: 30_000 };

interface Unreadable {
  /** Null where the store has none. */
  readonly revision: number | null;
  readonly why: string;
}

export class TargetWatch {
  readonly #store: Store;
  readonly #events: Emitter | null;
  readonly #ids: TargetIds;
  readonly #records = new Map<string, TargetRecord>();
  readonly #unreadable = new Map<string, Unreadable>();
  /** The store failed to read these: the next refresh reads them again. */
  readonly #unread = new Map<string, Error>();
  /** Changed and not returned yet: a refresh that fails half way loses none. */
  #changed = new Set<string>();
  readonly #reader: ChangeReader;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #unlisten: () => void;

  /**
   * With `events`, the watch reports unreadable records and resets itself after data loss. Without,
   * it reports nothing, and its user calls `reset`.
   */
  constructor(store: Store, ids: TargetIds = 'any', events: Emitter | null = null) {
    this.#store = store;
    this.#events = events;
    this.#ids = ids;
    this.#reader = new ChangeReader(store, TARGET_COLLECTION, {
      read: (changed) => this.#read(changed),
      drop: (id) => this.#drop(id),
      known: () => [...this.#records.keys(), ...this.#unreadable.keys()],
    });
    this.#unlisten = events?.on('store.forgot', () => this.reset()) ?? (() => {});
  }

  /** By id, in no order; those that are paused too, and of every kind. */
  get records(): ReadonlyMap<string, TargetRecord> {
    return this.#records;
  }

  /** Why the latest version of a record is invalid, by id. */
  get unreadable(): ReadonlyMap<string, { readonly why: string }> {
    return this.#unreadable;
  }

  /** The records that the last refresh could not read; the next one reads them again. */
  get unread(): ReadonlyMap<string, Error> {
    return this.#unread;
  }

  /**
   * After data loss: the next refresh lists all records. Versions continue to grow after it, so a
   * new record looks like any change, and nothing else would show that the others are gone.
   */
  reset(): void {
    this.#reader.beginAgain();
  }

  /** Returns the ids that were added, changed or removed since the last successful refresh. */
  refresh(): Promise<ReadonlySet<string>> {
    // In turn: the one under way may have read before the change that the caller knows of.
    const turn = this.#turn.then(() => this.#refresh());
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /** Finds records that other programs wrote; the next refresh reads them. Returns how many. */
  discover(): Promise<number> {
    return this.#store.records.discover(TARGET_COLLECTION, DISCOVERY_CALL);
  }

  /** Calls back when a refresh may find a change. Hints may be lost: refresh now and then, too. */
  listen(onHint: () => void): Promise<() => void> {
    return this.#store.signals.subscribe(TARGET_TOPIC, { onMessage: onHint, onGap: onHint });
  }

  close(): void {
    this.#unlisten();
  }

  async #refresh(): Promise<ReadonlySet<string>> {
    if (this.#unread.size > 0) await this.#read([...this.#unread.keys()]);
    await this.#reader.refresh(CALL);
    const changed = this.#changed;
    this.#changed = new Set();
    return changed;
  }

  async #read(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const replies = await this.#store.records.get(TARGET_COLLECTION, ids, CALL);
    for (const [i, id] of ids.entries()) this.#onReply(id, replies[i]);
  }

  #onReply(id: string, reply: GetReply | undefined): void {
    this.#unread.delete(id);
    if (reply?.kind === 'absent') {
      this.#drop(id);
    } else if (reply?.kind === 'found') {
      this.#set(id, reply.value, reply.revision);
    } else if (reply?.error instanceof KeyForeignError) {
      this.#setUnreadable(id, { revision: null, why: `session: it is ${reply.error.found}` });
    } else {
      this.#unread.set(id, reply?.error ?? new Error('the store gave no reply'));
    }
  }

  #set(id: string, value: unknown, revision: number): void {
    // After data loss revisions count from 1 again: the same number may be another record.
    const isKnown = !this.#reader.isListing && this.#records.get(id)?.revision === revision;
    if (isKnown && !this.#unreadable.has(id)) return;
    const record = readTargetRecord(id, value, revision, this.#ids);
    if (record instanceof InvalidRecord) {
      this.#setUnreadable(id, { revision, why: record.why });
      return;
    }
    this.#unreadable.delete(id);
    this.#records.set(id, record);
    this.#changed.add(id);
  }

  /** A version that was readable before stays. */
  #setUnreadable(id: string, unreadable: Unreadable): void {
    const before = this.#unreadable.get(id);
    if (before?.revision === unreadable.revision && before.why === unreadable.why) return;
    this.#unreadable.set(id, unreadable);
    this.#events?.emit('session.unreadable', { session: id, why: unreadable.why });
  }

  #drop(id: string): void {
    this.#unread.delete(id);
    this.#unreadable.delete(id);
    if (this.#records.delete(id)) this.#changed.add(id);
  }
}
