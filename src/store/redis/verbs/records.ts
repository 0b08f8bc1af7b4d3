import { type Clock, timeLeft } from '../../../core/clock.ts';
import { KeyForeignError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import { sized } from '../../port/limits.ts';
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
} from '../../port/record-store.ts';
import type { Call } from '../../port/store.ts';
import { keyFailure } from '../client/replies.ts';
import type { Keys } from '../keys.ts';
import { type Script, scripts } from '../scripts.ts';
import { onlyReply, type Part, type Servers, type Work } from '../topology/servers.ts';
import { timeForSteps, walk } from './walk.ts';

/** How long writing a record may take after its index was told of it. */
const WRITE_MS = 1_000;
/** Records in one request: while a script works on them, Redis serves no other request. */
const CHUNK = 200;

/** A change to announce: the id of a record, and its revision, or `-` if it is gone. */
type Change = readonly [id: string, what: string];

/** What `record/discover` says of a record. An error text stands in a list. */
type Found = number | string | null | [string];

type Changing = 'put' | 'remove';
type ScriptReply = [string] | [number] | [number, number];

/**
 * Records, and the index of each collection: the ids of its records, by the version of their last
 * change.
 *
 * `discover` finds records whose last change the index does not have: another program has written,
 * changed or removed them, or a client died before it could announce the change. It walks over all
 * names of a collection, and then over what its index lists besides. A script compares each value
 * with the digest of the last known one, and its revision with the one announced.
 *
 * On a single server the script updates the index in the same step. On a Cluster, records and their
 * index lie apart: the index is updated before the record notes it, so that a change may be
 * announced twice but is never lost. A removal is announced only if the index has received nothing
 * about the record since, so that a record being written is not taken for gone.
 */
export class RedisRecords implements RecordStore {
  readonly #keys: Keys;
  readonly #servers: Servers;
  readonly #clock: Clock;
  /** An argument of every script that updates an index: how many removals it remembers. */
  readonly #removalsKept: string;
  /** Records and their index lie on different servers. */
  readonly #isApart: boolean;

  constructor({ clock }: BaseRuntime, keys: Keys, servers: Servers, removalsKept: number) {
    this.#keys = keys;
    this.#servers = servers;
    this.#clock = clock;
    this.#removalsKept = String(removalsKept);
    this.#isApart = servers.shardOf !== undefined;
  }

  async get(collection: string, ids: readonly string[], call: Call): Promise<GetReply[]> {
    const keys = ids.map((id) => this.#keys.record(collection, id));
    const work = { script: scripts['record/get'], keys, perKey: keys.map(() => []) };
    const replies = await inChunks(this.#servers, work, timeLeft(this.#clock, call.timeoutMs));
    return replies.map((reply, i) => {
      if (reply instanceof Error) return { kind: 'failed', error: reply };
      if (reply === null) return { kind: 'absent' };
      const found = reply as [string] | [string, number, number];
      if (found.length === 1) return this.#failed('get', keys[i] ?? '', found[0]);
      const [json, revision, fence] = found;
      try {
        return { kind: 'found', value: JSON.parse(json), revision, fence };
      } catch {
        return {
          kind: 'failed',
          error: new KeyForeignError({ key: keys[i] ?? '', found: 'text that is no JSON' }),
        };
      }
    });
  }

  async put(collection: string, writes: readonly RecordWrite[], call: Call): Promise<PutReply[]> {
    const args = ({ id, value, ...conditions }: RecordWrite) => [
      id,
      sized('record', `${collection}:${id}`, JSON.stringify(value)),
      ...conditionArgs(conditions),
    ];
    const replies = await this.#change('put', collection, writes, args, call);
    return replies.map((reply) =>
      Array.isArray(reply) ? { kind: 'written', revision: reply[1] ?? 0 } : reply,
    );
  }

  async remove(
    collection: string,
    removals: readonly RecordRef[],
    call: Call,
  ): Promise<RemoveReply[]> {
    const args = ({ id, ...conditions }: RecordRef) => [id, ...conditionArgs(conditions)];
    const replies = await this.#change('remove', collection, removals, args, call);
    return replies.map((reply) =>
      Array.isArray(reply) ? { kind: reply[0] === 1 ? 'removed' : 'absent' } : reply,
    );
  }

  async changes(collection: string, call: ChangesCall): Promise<ChangesPage> {
    const { since, began = 0, most = CHANGES_PAGE, timeoutMs } = call;
    const args = [since, began, Math.min(most, CHANGES_PAGE)].map(String);
    const reply = await this.#run(scripts['record/changes'], collection, args, timeoutMs);
    const [version, from, more, reset, written, removed] = reply as [
      version: string,
      began: string,
      more: number,
      reset: number,
      written: string[],
      removed: string[],
    ];
    const page = { version: Number(version), more: more === 1, reset: reset === 1 };
    return { ...page, written, removed, ...(page.more && { began: Number(from) }) };
  }

  /** Finds all changes that the index does not have, enters them, and returns their number. */
  async discover(collection: string, { timeoutMs }: Call): Promise<number> {
    const where = { store: this.#servers.name, operation: 'discover' };
    const leftMs = timeForSteps(this.#clock, timeoutMs, where);
    const present = new Set<string>();
    let count = 0;
    for await (const ids of walk(this.#servers, this.#keys.record(collection, ''), leftMs)) {
      const fresh = ids.filter((id) => !present.has(id));
      for (const id of fresh) present.add(id);
      count += await this.#enter(collection, fresh, 0, leftMs);
    }
    let page = await this.changes(collection, { since: 0, timeoutMs: leftMs() });
    for (;;) {
      const { written, version: since, began } = page;
      // Listed, but not found by the walk: removed, or written since.
      const unmet = written.filter((id) => !present.delete(id));
      count += await this.#enter(collection, unmet, since, leftMs);
      if (!page.more) break;
      page = await this.changes(collection, { since, began, timeoutMs: leftMs() });
    }
    return this.#isApart
      ? count + (await this.#enterUnlisted(collection, [...present], leftMs))
      : count;
  }

  /** Changes records and updates their index: in one step on a single server. */
  async #change<T extends RecordRef>(
    verb: Changing,
    collection: string,
    changes: readonly T[],
    argsOf: (change: T) => string[],
    call: Call,
  ): Promise<(number[] | RefusedWrite)[]> {
    const leftMs = timeLeft(this.#clock, call.timeoutMs);
    const ids = changes.map(({ id }) => id);
    // Before the first request: this throws for a value that may not be written.
    const perKey = changes.map(argsOf);
    // A Cluster cannot do both at once. The index goes first, so that no record is unlisted. It is
    // told again afterwards, for readers that read the record before it was written.
    const coming = ids.map((id): Change => [id, '+']);
    if (this.#isApart && verb === 'put') await this.#announce(collection, coming, leftMs());
    const keys = ids.map((id) => this.#keys.record(collection, id));
    const work = {
      script: scripts[`record/${verb}`],
      keys,
      perKey,
      before: this.#keys.index(collection),
      head: () => [this.#isApart ? '' : this.#removalsKept],
    };
    const replies = (await inChunks(this.#servers, work, leftMs)) as (Error | ScriptReply)[];
    if (this.#isApart)
      await this.#announceChecked(collection, outcomes(verb, ids, replies), leftMs);
    return replies.map((reply, i) => this.#replyOf(verb, keys[i] ?? '', reply));
  }

  #replyOf(verb: Changing, key: string, reply: Error | ScriptReply): number[] | RefusedWrite {
    if (reply instanceof Error) return { kind: 'failed', error: reply };
    const [code, fact = 0] = reply;
    if (typeof code === 'string') return this.#failed(verb, key, code);
    if (code === 2) return { kind: 'stale', seen: fact };
    return code === 3 ? { kind: 'conflict', revision: fact } : [code, fact];
  }

  #failed(operation: string, key: string, reply: string): { kind: 'failed'; error: Error } {
    return {
      kind: 'failed',
      error: keyFailure(reply, key, { store: this.#servers.name, operation }),
    };
  }

  /** Enters records that have been written or removed. */
  async #announce(
    collection: string,
    changes: readonly Change[],
    timeoutMs: number,
  ): Promise<void> {
    if (changes.length === 0) return;
    const args = changes.flatMap(([id, what]) => [what === '-' ? '-' : '+', id]);
    const all = [this.#removalsKept, ...args];
    await this.#run(scripts['record/announce'], collection, all, timeoutMs);
  }

  /**
   * On a Cluster: announces changes, and then checks that they are still true. Another client may
   * have changed a record meanwhile, and announced that before this one did: then the index is told
   * again. So the last thing that it is told of a record is true.
   */
  async #announceChecked(
    collection: string,
    changes: readonly Change[],
    leftMs: () => number,
  ): Promise<void> {
    await this.#announce(collection, changes, leftMs());
    await this.#check(collection, changes, leftMs);
  }

  /**
   * Enters the changes of these records. Only those that the index had at this version can be gone.
   */
  async #enter(
    collection: string,
    ids: readonly string[],
    version: number,
    leftMs: () => number,
  ): Promise<number> {
    const unknown = ids.map((id): Change => [id, '']);
    const found = await this.#compare(collection, unknown, leftMs);
    if (!this.#isApart) return found.filter((reply) => reply === 1).length;
    const changed = ids.flatMap((id, i): Change[] => {
      const reply = found[i];
      return typeof reply === 'string' ? [[id, reply]] : [];
    });
    const gone = version === 0 ? [] : ids.filter((_, i) => found[i] === null);
    await this.#announce(collection, changed, leftMs());
    const retired = await this.#retire(collection, gone, version, leftMs());
    const announced = [...changed, ...retired.map((id): Change => [id, '-'])];
    await this.#check(collection, announced, leftMs);
    return announced.length;
  }

  /**
   * Enters records that exist and are known, but not listed: the index was lost, or a client died
   * before its announcement.
   */
  async #enterUnlisted(
    collection: string,
    ids: readonly string[],
    leftMs: () => number,
  ): Promise<number> {
    const unknown = ids.map((id): Change => [id, '']);
    const found = await this.#compare(collection, unknown, leftMs);
    const unlisted = ids.filter((_, i) => found[i] === 0);
    const changes = unlisted.map((id): Change => [id, '+']);
    await this.#announceChecked(collection, changes, leftMs);
    return unlisted.length;
  }

  async #check(
    collection: string,
    changes: readonly Change[],
    leftMs: () => number,
  ): Promise<void> {
    const found = await this.#compare(collection, changes, leftMs);
    const otherwise = changes.flatMap(([id, what], i): Change[] => {
      const reply = found[i];
      if (typeof reply === 'string') return [[id, reply]];
      return reply === null && what !== '-' ? [[id, '-']] : [];
    });
    if (otherwise.length > 0) await this.#announceChecked(collection, otherwise, leftMs);
  }

  /**
   * Enters that records are gone, unless they have changed since this version. Returns the ids
   * entered.
   */
  async #retire(
    collection: string,
    ids: readonly string[],
    version: number,
    timeoutMs: number,
  ): Promise<string[]> {
    if (ids.length === 0) return [];
    const args = [this.#removalsKept, String(version), String(WRITE_MS), ...ids];
    return (await this.#run(scripts['record/retire'], collection, args, timeoutMs)) as string[];
  }

  /**
   * A record that fails alone is left to a later discovery. A server that fails, fails the call.
   */
  async #compare(
    collection: string,
    changes: readonly Change[],
    leftMs: () => number,
  ): Promise<Found[]> {
    const work = {
      script: scripts['record/discover'],
      keys: changes.map(([id]) => this.#keys.record(collection, id)),
      perKey: changes,
      before: this.#keys.index(collection),
      head: () => [this.#isApart ? '' : this.#removalsKept],
    };
    const replies = await inChunks(this.#servers, work, leftMs);
    const failed = replies.find((reply) => reply instanceof Error);
    if (failed !== undefined) throw failed;
    return replies as Found[];
  }

  async #run(
    script: Script,
    collection: string,
    args: string[],
    timeoutMs: number,
  ): Promise<unknown> {
    const work = { script, keys: [this.#keys.index(collection)], perKey: [args] };
    return onlyReply(await this.#servers.run(work, timeoutMs));
  }
}

/** The records that were changed. */
function outcomes(
  verb: Changing,
  ids: readonly string[],
  replies: (Error | ScriptReply)[],
): Change[] {
  return ids.flatMap((id, i): Change[] => {
    const reply = replies[i];
    if (!Array.isArray(reply) || reply[0] !== 1) return [];
    return [[id, verb === 'put' ? String(reply[1]) : '-']];
  });
}

function conditionArgs({ fence, ifRevision }: Omit<RecordRef, 'id'>): string[] {
  return [
    fence === undefined ? '' : String(fence),
    ifRevision === undefined ? '' : String(ifRevision),
  ];
}

/** Runs a verb in chunks. Returns the reply for each key, or the error that came instead. */
async function inChunks(servers: Servers, work: Work, leftMs: () => number): Promise<unknown[]> {
  const replies: unknown[] = [];
  for (let at = 0; at < work.keys.length; at += CHUNK) {
    for (const part of await servers.run(chunkOf(work, at), leftMs())) {
      const given = repliesOf(part, work);
      for (let i = 0; i < part.count; i++) replies[at + part.from + i] = given[i];
    }
  }
  return replies;
}

function repliesOf(part: Part, { script }: Work): unknown[] {
  if (part.kind === 'reply') return part.reply as unknown[];
  const error = part.kind === 'failed' ? part.error : new Error(`${script.operation}: no reply`);
  return new Array(part.count).fill(error);
}

function chunkOf(work: Work, at: number): Work {
  if (work.keys.length <= CHUNK) return work;
  const keys = work.keys.slice(at, at + CHUNK);
  const perKey = work.perKey.slice(at, at + CHUNK);
  return { ...work, keys, perKey };
}
