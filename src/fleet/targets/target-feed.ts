/**
 * What all sessions are now, as far as the last `refresh` could see. A refresh asks only for what has changed since the
 * one before. Losing sight of a record is never taken for its removal: one that makes no sense, or could not be read,
 * stays what it was, because to stop polling a target for somebody's typing error would be worse.
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
/** A look for what others wrote walks all keys of the store. */
const DISCOVERY_CALL = { timeoutMs: 30_000 };

export interface SessionWatchParts {
  readonly store: Store;
  readonly events: Emitter;
  readonly ids?: TargetIds;
}

interface Misread {
  /** Null where the store could tell none. */
  readonly revision: number | null;
  readonly why: string;
}

export class TargetFeed {
  readonly #store: Store;
  readonly #events: Emitter;
  readonly #ids: TargetIds;
  readonly #sessions = new Map<string, TargetRecord>();
  readonly #unreadable = new Map<string, Misread>();
  /** Could not be read, though not for what they are: asked for again with the next refresh. */
  readonly #unread = new Map<string, Error>();
  /** Changed, and not told to anybody yet: a refresh that fails half way loses none. */
  #changed = new Set<string>();
  readonly #reader: ChangeReader;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #unsubscribe: () => void;

  constructor({ store, events, ids = 'any' }: SessionWatchParts) {
    this.#store = store;
    this.#events = events;
    this.#ids = ids;
    this.#reader = new ChangeReader(store, TARGET_COLLECTION, {
      read: (changed) => this.#read(changed),
      drop: (id) => this.#drop(id),
      known: () => [...this.#sessions.keys(), ...this.#unreadable.keys()],
    });
    // Versions go on growing after a loss of data, so what is written then looks like any change: nothing else would
    // tell that the rest is gone.
    this.#unsubscribe = events.on('store.forgot', () => this.#reader.beginAgain());
  }

  /** By id, in no order; also those that are paused, and of every kind. */
  get sessions(): ReadonlyMap<string, TargetRecord> {
    return this.#sessions;
  }

  /** Why the latest version of a record can not be read, by id. */
  get unreadable(): ReadonlyMap<string, { readonly why: string }> {
    return this.#unreadable;
  }

  /** What the last refresh could not read, and will be asked for again. */
  get unread(): ReadonlyMap<string, Error> {
    return this.#unread;
  }

  /** Looks for changes; gives the ids that were added, changed or removed since the last refresh that succeeded. */
  refresh(): Promise<ReadonlySet<string>> {
    // One after the other: one that is under way may have looked before what the caller has heard of.
    const turn = this.#turn.then(() => this.#refresh());
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /** Looks for what other programs have written; the next refresh shows it. Says how many there were. */
  discover(): Promise<number> {
    return this.#store.records.discover(TARGET_COLLECTION, DISCOVERY_CALL);
  }

  /** Calls when a refresh may find something. Hints may be lost, so refresh from time to time without. */
  listen(onHint: () => void): Promise<() => void> {
    return this.#store.signals.subscribe(TARGET_TOPIC, { onMessage: onHint, onGap: onHint });
  }

  close(): void {
    this.#unsubscribe();
  }

  async #refresh(): Promise<ReadonlySet<string>> {
    if (this.#unread.size > 0) await this.#read([...this.#unread.keys()]);
    await this.#reader.refresh(CALL);
    return this.#takeChanged();
  }

  async #read(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const replies = await this.#store.records.get(TARGET_COLLECTION, ids, CALL);
    for (const [i, id] of ids.entries()) this.#take(id, replies[i]);
  }

  #take(id: string, reply: GetReply | undefined): void {
    this.#unread.delete(id);
    if (reply?.kind === 'absent') {
      this.#drop(id);
    } else if (reply?.kind === 'found') {
      this.#found(id, reply.value, reply.revision);
    } else if (reply?.error instanceof KeyForeignError) {
      this.#misread(id, { revision: null, why: `session: it is ${reply.error.found}` });
    } else {
      this.#unread.set(id, reply?.error ?? new Error('the store gave no reply'));
    }
  }

  #found(id: string, value: unknown, revision: number): void {
    // After a loss of data revisions count from 1 again, and the same number may be another record.
    const isKnown = !this.#reader.isListing && this.#sessions.get(id)?.revision === revision;
    if (isKnown && !this.#unreadable.has(id)) return;
    const session = readTargetRecord(id, value, revision, this.#ids);
    if (session instanceof InvalidRecord) {
      this.#misread(id, { revision, why: session.why });
      return;
    }
    this.#unreadable.delete(id);
    this.#sessions.set(id, session);
    this.#changed.add(id);
  }

  /** What was readable before stays: it is not known to be gone. */
  #misread(id: string, misread: Misread): void {
    const before = this.#unreadable.get(id);
    if (before?.revision === misread.revision && before.why === misread.why) return;
    this.#unreadable.set(id, misread);
    this.#events.emit('session.unreadable', { session: id, why: misread.why });
  }

  #drop(id: string): void {
    this.#unread.delete(id);
    this.#unreadable.delete(id);
    if (this.#sessions.delete(id)) this.#changed.add(id);
  }

  #takeChanged(): ReadonlySet<string> {
    const changed = this.#changed;
    this.#changed = new Set();
    return changed;
  }
}
