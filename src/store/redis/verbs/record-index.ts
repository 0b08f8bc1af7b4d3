import type { Clock } from '../../../core/clock.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import { CHANGES_PAGE, type ChangesCall, type ChangesPage } from '../../port/record-store.ts';
import type { Call } from '../../port/store.ts';
import type { Keys } from '../keys.ts';
import { type Script, scripts } from '../scripts.ts';
import type { Servers } from '../topology/servers.ts';
import { inChunks } from './chunks.ts';
import { timeForSteps, walk } from './walk.ts';

/** How long writing a record may take after its index was told of it. */
const WRITE_MS = 1_000;

/** A change to announce: the id of a record, and its revision, or `-` if it is gone. */
export type Change = readonly [id: string, what: string];

/** What `record/discover` says of a record. An error text stands in a list. */
type Found = number | string | null | [string];

/**
 * The index of each collection: the ids of its records, by the version of their last change.
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
export class RecordIndex {
  readonly #clock: Clock;
  readonly #keys: Keys;
  readonly #servers: Servers;
  /**
   * How many removals a collection remembers: an argument of every script that updates the index.
   */
  readonly removalsKept: string;
  /** Records and their index lie on different servers. */
  readonly isApart: boolean;

  constructor({ clock }: BaseRuntime, keys: Keys, servers: Servers, removalsKept: number) {
    this.#clock = clock;
    this.#keys = keys;
    this.#servers = servers;
    this.removalsKept = String(removalsKept);
    this.isApart = servers.shardOf !== undefined;
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

  /** Enters records that have been written or removed. */
  async announce(collection: string, changes: readonly Change[], timeoutMs: number): Promise<void> {
    if (changes.length === 0) return;
    const args = changes.flatMap(([id, what]) => [what === '-' ? '-' : '+', id]);
    const all = [this.removalsKept, ...args];
    await this.#run(scripts['record/announce'], collection, all, timeoutMs);
  }

  /**
   * On a Cluster: announces changes, and then checks that they are still true. Another client may
   * have changed a record meanwhile, and announced that before this one did: then the index is told
   * again. So the last thing that it is told of a record is true.
   */
  async announceChecked(
    collection: string,
    changes: readonly Change[],
    leftMs: () => number,
  ): Promise<void> {
    await this.announce(collection, changes, leftMs());
    await this.#check(collection, changes, leftMs);
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
    return this.isApart
      ? count + (await this.#enterUnlisted(collection, [...present], leftMs))
      : count;
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
    if (!this.isApart) return found.filter((reply) => reply === 1).length;
    const changed = ids.flatMap((id, i): Change[] => {
      const reply = found[i];
      return typeof reply === 'string' ? [[id, reply]] : [];
    });
    const gone = version === 0 ? [] : ids.filter((_, i) => found[i] === null);
    await this.announce(collection, changed, leftMs());
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
    await this.announceChecked(collection, changes, leftMs);
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
    if (otherwise.length > 0) await this.announceChecked(collection, otherwise, leftMs);
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
    const args = [this.removalsKept, String(version), String(WRITE_MS), ...ids];
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
      head: () => [this.isApart ? '' : this.removalsKept],
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
    const [part] = await this.#servers.run(work, timeoutMs);
    if (part?.kind === 'failed') throw part.error;
    return part?.kind === 'reply' ? part.reply : null;
  }
}
