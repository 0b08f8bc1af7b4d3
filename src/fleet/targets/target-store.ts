/**
 * Sessions as people and programs handle them: added, paused, resumed, removed. Every change is conditional on what was
 * read, so that two operators never undo each other's; each is hinted at on a signal, which may be lost.
 */
import type { Duration } from '../../core/duration.ts';
import { ConfigError, RevisionConflictError } from '../../core/errors.ts';
import { Emitter } from '../../core/events.ts';
import { randomUuid } from '../../core/ids.ts';
import type { Random } from '../../core/random.ts';
import type { PutReply } from '../../store/port/record-store.ts';
import type { Store } from '../../store/port/store.ts';
import { SessionExistsError, SessionNotFoundError, SessionUnreadableError } from './errors.ts';
import { TargetFeed } from './target-feed.ts';
import {
  InvalidRecord,
  idProblem,
  RESULT_COLLECTION,
  readTargetRecord,
  recordOf,
  TARGET_COLLECTION,
  TARGET_TOPIC,
  type TargetIds,
  type TargetKind,
  type TargetRecord,
  withFields,
  withPaused,
} from './target-record.ts';
import { shownUrl, urlProblem } from './target-url.ts';

export interface NewTarget {
  /** Default: a random UUID. */
  id?: string;
  /** Default: `poll`. */
  kind?: TargetKind;
  /** What is polled, unless the poller has a handler of its own that knows. */
  url?: string;
  /** How often; default: as the poller says. */
  every?: Duration;
  everyMs?: number;
  isPaused?: boolean;
  /** Whatever else a handler wants to know: plain JSON data. */
  [field: string]: unknown;
}

export type AddTargetResult =
  | {
      readonly ok: true;
      readonly target: TargetRecord;
      /** @deprecated Use `target`. */
      readonly session: TargetRecord;
    }
  | { readonly ok: false; readonly id: string; readonly error: Error };

/** The fields of a target to change. Other fields stay as they are. */
export interface TargetChange {
  url?: string;
  every?: Duration;
  [field: string]: unknown;
}

export interface ChangeTargetResult {
  readonly target: TargetRecord;
  /** @deprecated Use `target`. */
  readonly session: TargetRecord;
  /** False: it was so already. */
  readonly changed: boolean;
}

export interface TargetList {
  /** In order of id. */
  readonly targets: readonly TargetRecord[];
  /** @deprecated Use `targets`. */
  readonly sessions: readonly TargetRecord[];
  readonly unreadable: readonly { readonly id: string; readonly why: string }[];
}

export interface ListTargetsOptions {
  /** Also what other programs have just written: that walks all keys of the store. */
  thorough?: boolean;
}

export interface SessionStoreParts {
  readonly store: Store;
  readonly random: Random;
  readonly events: Emitter;
  /** Which ids there may be; default `any` that is safe. */
  readonly ids?: TargetIds;
}

const CALL = { timeoutMs: 5_000 };
/** Sessions written in one call of the store, which has a time limit for all of them. */
const ADD_BATCH = 1_000;
/** How often a change is tried against others who change the same session. */
const MOST_TRIES = 20;
/** Said on the signal where more than one session changed; it is no id. */
const MANY = '*';

type SessionEvent =
  | 'session.added'
  | 'session.changed'
  | 'session.paused'
  | 'session.resumed'
  | 'session.removed';

/** A session, and the record it was read from. */
interface Found {
  readonly session: TargetRecord;
  readonly value: unknown;
}

export class TargetStore {
  readonly #store: Store;
  readonly #random: Random;
  readonly #events: Emitter;
  readonly #ids: TargetIds;

  constructor({ store, random, events, ids = 'any' }: SessionStoreParts) {
    if (ids !== 'any' && ids !== 'uuid')
      throw new ConfigError({ field: 'ids', value: ids, rule: "it is 'any' or 'uuid'" });
    this.#store = store;
    this.#random = random;
    this.#events = events;
    this.#ids = ids;
  }

  async add(session: NewTarget): Promise<TargetRecord> {
    const [result] = await this.addAll([session]);
    if (result?.ok !== true) throw result?.error ?? new Error('the store gave no reply');
    return result.target;
  }

  /**
   * Many in few requests, with one result for each, in order. One that can not be is refused before any is written; one
   * that exists already is left as it is, and the others are added. If the store fails on the way, this throws, and the
   * first so many have been added: to add all of them again does no harm.
   */
  async addAll(sessions: readonly NewTarget[]): Promise<AddTargetResult[]> {
    const drafts = sessions.map((session) => this.#draft(session));
    const results: AddTargetResult[] = [];
    for (let at = 0; at < drafts.length; at += ADD_BATCH) {
      const batch = drafts.slice(at, at + ADD_BATCH);
      const writes = batch.map((draft) => ({
        id: draft.id,
        value: recordOf(draft),
        ifRevision: 0,
      }));
      const replies = await this.#store.records.put(TARGET_COLLECTION, writes, CALL);
      const added = batch.map((draft, i) => addResult(draft, replies[i]));
      await this.#tell(
        'session.added',
        added.flatMap((result) => (result.ok ? [result.target.id] : [])),
      );
      for (const result of added) results.push(result);
    }
    return results;
  }

  /** Null where there is none; throws `SESSION_UNREADABLE` where it makes no sense. */
  async get(id: string): Promise<TargetRecord | null> {
    this.#checkId(id);
    return (await this.#read(id))?.session ?? null;
  }

  async list({ thorough = false }: ListTargetsOptions = {}): Promise<TargetList> {
    // Events are for those who watch; who lists gets what is unreadable as a result.
    const parts = { store: this.#store, events: new Emitter(), ids: this.#ids };
    const watch = new TargetFeed(parts);
    if (thorough) await watch.discover();
    await watch.refresh();
    const unreadable = [...watch.unreadable].map(([id, { why }]) => ({ id, why }));
    for (const [id, { message }] of watch.unread) unreadable.push({ id, why: message });
    const targets = [...watch.sessions.values()].sort(byId);
    return { targets, sessions: targets, unreadable: unreadable.sort(byId) };
  }

  pause(id: string): Promise<ChangeTargetResult> {
    return this.#change(id, 'session.paused', ({ session, value }) =>
      session.isPaused ? null : withPaused(value, true),
    );
  }

  resume(id: string): Promise<ChangeTargetResult> {
    return this.#change(id, 'session.resumed', ({ session, value }) =>
      session.isPaused ? withPaused(value, false) : null,
    );
  }

  /** Changes the fields given, and leaves the others as they are; whoever owns it goes on owning it. */
  update(id: string, change: TargetChange): Promise<ChangeTargetResult> {
    return this.#change(id, 'session.changed', ({ value }) => {
      const changed = withFields(value, change);
      const flaw = readTargetRecord(id, changed, 0, this.#ids);
      if (flaw instanceof InvalidRecord) throw invalid(flaw, change);
      this.#draft({ ...changed, id });
      return changed;
    });
  }

  /** Removes it, also where it makes no sense. */
  async remove(id: string): Promise<void> {
    this.#checkId(id);
    const [reply] = await this.#store.records.remove(TARGET_COLLECTION, [{ id }], CALL);
    if (reply?.kind === 'absent') throw new SessionNotFoundError({ session: id });
    if (reply?.kind === 'failed') throw reply.error;
    // Nobody needs it any more; and where this fails, it does no harm.
    await this.#store.records.remove(RESULT_COLLECTION, [{ id }], CALL).catch(() => {});
    await this.#tell('session.removed', [id]);
  }

  /** Writes what `change` makes of the record, again if another was faster; null leaves it as it is. */
  async #change(
    id: string,
    event: SessionEvent,
    change: (found: Found) => Readonly<Record<string, unknown>> | null,
  ): Promise<ChangeTargetResult> {
    this.#checkId(id);
    let conflict = { expected: 0, found: 0 };
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const found = await this.#read(id);
      if (found === null) throw new SessionNotFoundError({ session: id });
      const { session } = found;
      const value = change(found);
      if (value === null) return { target: session, session, changed: false };
      const ifRevision = session.revision;
      const write = { id, value, ifRevision };
      const [reply] = await this.#store.records.put(TARGET_COLLECTION, [write], CALL);
      if (reply?.kind === 'failed') throw reply.error;
      if (reply?.kind === 'written') {
        await this.#tell(event, [id]);
        const read = readTargetRecord(id, value, reply.revision, this.#ids);
        const target = read instanceof InvalidRecord ? session : read;
        return { target, session: target, changed: true };
      }
      const other = reply?.kind === 'conflict' ? reply.revision : 0;
      conflict = { expected: ifRevision, found: other };
    }
    throw new RevisionConflictError({ resource: `session:${id}`, ...conflict });
  }

  async #read(id: string): Promise<Found | null> {
    const [reply] = await this.#store.records.get(TARGET_COLLECTION, [id], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    if (reply?.kind !== 'found') return null;
    const session = readTargetRecord(id, reply.value, reply.revision, this.#ids);
    if (session instanceof InvalidRecord)
      throw new SessionUnreadableError({ session: id, why: session.why });
    return { session, value: reply.value };
  }

  /** What will be stored, as it will be read; or `CONFIG_INVALID`. */
  #draft(session: NewTarget): TargetRecord {
    if (typeof session !== 'object' || session === null)
      throw new ConfigError({ field: 'session', value: session, rule: 'it is an object' });
    const { id = randomUuid(this.#random) } = session;
    this.#checkId(id);
    const given = readTargetRecord(id, session, 0, this.#ids);
    if (given instanceof InvalidRecord) throw invalid(given, session);
    const urlWhy = given.url === undefined ? null : urlProblem(given.url);
    if (urlWhy !== null) throw invalid(new InvalidRecord('url', urlWhy), session);
    // What JSON makes of the data is what everybody else will see of it.
    const draft = readTargetRecord(id, JSON.parse(JSON.stringify(recordOf(given))), 0, this.#ids);
    if (draft instanceof InvalidRecord) throw invalid(draft, session);
    return draft;
  }

  #checkId(id: unknown): asserts id is string {
    const rule = idProblem(id, this.#ids);
    if (rule !== null) throw new ConfigError({ field: 'id', value: id, rule });
  }

  /** Never fails: the change has been made, and who does not hear of it finds it a little later. */
  async #tell(event: SessionEvent, ids: readonly string[]): Promise<void> {
    const [first] = ids;
    if (first === undefined) return;
    for (const session of ids) this.#events.emit(event, { session });
    const { signals } = this.#store;
    await signals.publish(TARGET_TOPIC, ids.length === 1 ? first : MANY).catch(() => {});
  }
}

function addResult(draft: TargetRecord, reply: PutReply | undefined): AddTargetResult {
  const { id } = draft;
  if (reply?.kind === 'written') {
    const target = { ...draft, revision: reply.revision };
    return { ok: true, target, session: target };
  }
  if (reply?.kind === 'conflict')
    return { ok: false, id, error: new SessionExistsError({ session: id }) };
  const error = reply?.kind === 'failed' ? reply.error : new Error('the store gave no reply');
  return { ok: false, id, error };
}

function invalid({ field, rule }: InvalidRecord, session: NewTarget): ConfigError {
  const value = session[field];
  const isUrl = typeof value === 'string' && field.toLowerCase() === 'url';
  return new ConfigError({ field, value: isUrl ? shownUrl(value) : value, rule });
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}
