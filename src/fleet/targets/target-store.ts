/**
 * Adds, pauses, resumes, changes and removes targets. Every change is conditional on the revision
 * that was read, so that two operators never undo each other's changes. A signal announces each; it
 * may be lost.
 */
import type { Duration } from '../../core/duration.ts';
import { ConfigError, RevisionConflictError } from '../../core/errors.ts';
import { randomUuid } from '../../core/ids.ts';
import type { PutReply } from '../../store/port/record-store.ts';
import type { Runtime } from '../../store/runtime.ts';
import { SessionExistsError, SessionNotFoundError, SessionUnreadableError } from './errors.ts';
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
import { TargetWatch } from './target-watch.ts';

export interface NewTarget {
  /** Default: a random UUID. */
  id?: string;
  /** Default: `poll`. */
  kind?: TargetKind;
  /** The URL that the built-in poll requests. */
  url?: string;
  /** How often it is polled; default: the poller's `every`. */
  every?: Duration;
  everyMs?: number;
  /** How long one poll may take before it is told to stop; default: the poller's `timeout`. */
  timeout?: Duration;
  timeoutMs?: number;
  /** The name of a command of the runners, under `commands`, which runs for this target. */
  command?: string;
  isPaused?: boolean;
  /** Further plain JSON data for the poll handler. */
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

/** The fields of a target to change; `null` removes one. Other fields stay as they are. */
export interface TargetChange {
  url?: string | null;
  every?: Duration | null;
  timeout?: Duration | null;
  command?: string | null;
  isPaused?: boolean;
  [field: string]: unknown;
}

export interface ChangeTargetResult {
  readonly target: TargetRecord;
  /** @deprecated Use `target`. */
  readonly session: TargetRecord;
  /** False if there was nothing to change. */
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
  /** Finds what other programs have just written, too: that walks all keys of the store. */
  thorough?: boolean;
}

const CALL = { timeoutMs: 5_000 };
/** How many targets one request writes: it has one time limit. */
const ADD_BATCH = 1_000;
/** How often a change is tried while others change the same target. */
const MAX_TRIES = 20;
/** The message where more than one target has changed; it is no valid id. */
const MANY = '*';

type TargetEvent =
  | 'session.added'
  | 'session.changed'
  | 'session.paused'
  | 'session.resumed'
  | 'session.removed';

/** A target, and the stored value that it was read from. */
interface Found {
  readonly target: TargetRecord;
  readonly value: unknown;
}

export class TargetStore {
  readonly #rt: Runtime;
  readonly #ids: TargetIds;

  /** `ids`: which ids a target may have. */
  constructor(rt: Runtime, ids: TargetIds = 'any') {
    if (ids !== 'any' && ids !== 'uuid')
      throw new ConfigError({ field: 'ids', value: ids, rule: "it must be 'any' or 'uuid'" });
    this.#rt = rt;
    this.#ids = ids;
  }

  async add(target: NewTarget): Promise<TargetRecord> {
    const [result] = await this.addAll([target]);
    if (result?.ok !== true) throw result?.error ?? new Error('the store gave no reply');
    return result.target;
  }

  /**
   * Adds many targets in few requests. Returns one result for each, in order. An invalid target is
   * refused before any is written. One that exists stays as it is, and the others are added. If the
   * store fails on the way, this throws, and some have been added: adding all again does no harm.
   */
  async addAll(targets: readonly NewTarget[]): Promise<AddTargetResult[]> {
    const drafts = targets.map((target) => this.#draft(target));
    const results: AddTargetResult[] = [];
    for (let at = 0; at < drafts.length; at += ADD_BATCH) {
      const batch = drafts.slice(at, at + ADD_BATCH);
      const writes = batch.map((draft) => ({
        id: draft.id,
        value: recordOf(draft),
        ifRevision: 0,
      }));
      const replies = await this.#rt.store.records.put(TARGET_COLLECTION, writes, CALL);
      const added = batch.map((draft, i) => addResult(draft, replies[i]));
      await this.#announce(
        'session.added',
        added.flatMap((result) => (result.ok ? [result.target.id] : [])),
      );
      for (const result of added) results.push(result);
    }
    return results;
  }

  /** Null where there is none. Throws `SESSION_UNREADABLE` where the record is invalid. */
  async get(id: string): Promise<TargetRecord | null> {
    this.#checkId(id);
    return (await this.#read(id))?.target ?? null;
  }

  async list({ thorough = false }: ListTargetsOptions = {}): Promise<TargetList> {
    // Without events: the caller gets the unreadable records as part of the result.
    const watch = new TargetWatch(this.#rt.store, this.#ids);
    if (thorough) await watch.discover();
    await watch.refresh();
    const unreadable = [...watch.unreadable].map(([id, { why }]) => ({ id, why }));
    for (const [id, { message }] of watch.unread) unreadable.push({ id, why: message });
    const targets = [...watch.records.values()].sort(byId);
    return { targets, sessions: targets, unreadable: unreadable.sort(byId) };
  }

  pause(id: string): Promise<ChangeTargetResult> {
    return this.#change(id, 'session.paused', ({ target, value }) =>
      target.isPaused ? null : withPaused(value, true),
    );
  }

  resume(id: string): Promise<ChangeTargetResult> {
    return this.#change(id, 'session.resumed', ({ target, value }) =>
      target.isPaused ? withPaused(value, false) : null,
    );
  }

  /**
   * Changes the given fields, removes those that are `null`, and leaves the others as they are. The
   * owner stays the same.
   */
  update(id: string, change: TargetChange): Promise<ChangeTargetResult> {
    return this.#change(id, 'session.changed', ({ value }) => {
      const changed = withFields(value, change);
      const read = readTargetRecord(id, changed, 0, this.#ids);
      if (read instanceof InvalidRecord) throw invalid(read, change);
      this.#draft({ ...changed, id });
      return changed;
    });
  }

  /** Removes the target, even if its record is invalid. */
  async remove(id: string): Promise<void> {
    this.#checkId(id);
    const [reply] = await this.#rt.store.records.remove(TARGET_COLLECTION, [{ id }], CALL);
    if (reply?.kind === 'absent') throw new SessionNotFoundError({ session: id });
    if (reply?.kind === 'failed') throw reply.error;
    // A result that is left over does no harm.
    await this.#rt.store.records.remove(RESULT_COLLECTION, [{ id }], CALL).catch(() => {});
    await this.#announce('session.removed', [id]);
  }

  /** Writes the value that `change` returns; null leaves it. Repeats if the record has changed. */
  async #change(
    id: string,
    event: TargetEvent,
    change: (found: Found) => Readonly<Record<string, unknown>> | null,
  ): Promise<ChangeTargetResult> {
    this.#checkId(id);
    let conflict = { expected: 0, found: 0 };
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const found = await this.#read(id);
      if (found === null) throw new SessionNotFoundError({ session: id });
      const { target: before } = found;
      const value = change(found);
      if (value === null) return { target: before, session: before, changed: false };
      const ifRevision = before.revision;
      const write = { id, value, ifRevision };
      const [reply] = await this.#rt.store.records.put(TARGET_COLLECTION, [write], CALL);
      if (reply?.kind === 'failed') throw reply.error;
      if (reply?.kind === 'written') {
        await this.#announce(event, [id]);
        const read = readTargetRecord(id, value, reply.revision, this.#ids);
        const target = read instanceof InvalidRecord ? before : read;
        return { target, session: target, changed: true };
      }
      const other = reply?.kind === 'conflict' ? reply.revision : 0;
      conflict = { expected: ifRevision, found: other };
    }
    throw new RevisionConflictError({ resource: `session:${id}`, ...conflict });
  }

  async #read(id: string): Promise<Found | null> {
    const [reply] = await this.#rt.store.records.get(TARGET_COLLECTION, [id], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    if (reply?.kind !== 'found') return null;
    const target = readTargetRecord(id, reply.value, reply.revision, this.#ids);
    if (target instanceof InvalidRecord)
      throw new SessionUnreadableError({ session: id, why: target.why });
    return { target, value: reply.value };
  }

  /** The target as it will be stored and read; throws `CONFIG_INVALID`. */
  #draft(target: NewTarget): TargetRecord {
    if (typeof target !== 'object' || target === null)
      throw new ConfigError({ field: 'session', value: target, rule: 'it must be an object' });
    const { id = randomUuid(this.#rt.random) } = target;
    this.#checkId(id);
    const given = readTargetRecord(id, target, 0, this.#ids);
    if (given instanceof InvalidRecord) throw invalid(given, target);
    const urlWhy = given.url === undefined ? null : urlProblem(given.url);
    if (urlWhy !== null) throw invalid(new InvalidRecord('url', urlWhy), target);
    // Every reader gets what JSON makes of the data.
    const draft = readTargetRecord(id, JSON.parse(JSON.stringify(recordOf(given))), 0, this.#ids);
    if (draft instanceof InvalidRecord) throw invalid(draft, target);
    return draft;
  }

  #checkId(id: unknown): asserts id is string {
    const rule = idProblem(id, this.#ids);
    if (rule !== null) throw new ConfigError({ field: 'id', value: id, rule });
  }

  /** Never fails: the change is made, and instances that miss the signal find it a little later. */
  async #announce(event: TargetEvent, ids: readonly string[]): Promise<void> {
    const [first] = ids;
    if (first === undefined) return;
    for (const session of ids) this.#rt.events.emit(event, { session });
    const { signals } = this.#rt.store;
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

function invalid(
  { field, rule }: InvalidRecord,
  target: Readonly<Record<string, unknown>>,
): ConfigError {
  const value = target[field];
  const isUrl = typeof value === 'string' && field.toLowerCase() === 'url';
  return new ConfigError({ field, value: isUrl ? shownUrl(value) : value, rule });
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}
