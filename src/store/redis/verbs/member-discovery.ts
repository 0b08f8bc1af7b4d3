/**
 * Finds records whose last change the index has not heard of: another program has written, changed or removed them, or a client
 * died before it could tell. All names of a collection are walked over, and then what its index lists besides; a script compares
 * each value with the digest of the one that was last known, and its revision with the one that the index was told.
 *
 * On a single server the script tells the index in the same step. A Cluster cannot: there the index is told before that is
 * noted, so that a change may be told twice but is never lost. It is told of a removal only where it has heard nothing of the
 * record since, so that a record on its way is not taken for gone.
 */
import type { Clock } from '../../../core/clock.ts';
import type { Call } from '../../port/store.ts';
import type { Keys } from '../keys.ts';
import { scripts } from '../scripts.ts';
import type { Servers } from '../topology/servers.ts';
import { inChunks } from './chunks.ts';
import type { RecordIndex, Told } from './record-index.ts';
import { timeForSteps, walk } from './walk.ts';

/** What the script says of a record; an error text stands in a list. */
type Found = number | string | null | [string];

interface DiscoveryParts {
  readonly keys: Keys;
  readonly servers: Servers;
  readonly clock: Clock;
  readonly index: RecordIndex;
}

export class MemberDiscovery {
  readonly #parts: DiscoveryParts;
  /** Records and their index lie on different servers. */
  readonly #isApart: boolean;

  constructor(parts: DiscoveryParts) {
    this.#parts = parts;
    this.#isApart = parts.servers.lane !== undefined;
  }

  /** Looks for them all, and says how many there were. */
  async discover(collection: string, { timeoutMs }: Call): Promise<number> {
    const { keys, servers, clock, index } = this.#parts;
    const where = { store: servers.name, operation: 'discover' };
    const leftMs = timeForSteps(clock, timeoutMs, where);
    const there = new Set<string>();
    let count = 0;
    for await (const ids of walk(servers, keys.record(collection, ''), leftMs)) {
      const fresh = ids.filter((id) => !there.has(id));
      for (const id of fresh) there.add(id);
      count += await this.#look(collection, fresh, 0, leftMs);
    }
    let page = await index.changes(collection, { since: 0, timeoutMs: leftMs() });
    for (;;) {
      const { written, version: since, began } = page;
      // What is listed and was not met: gone, or come since.
      const unmet = written.filter((id) => !there.delete(id));
      count += await this.#look(collection, unmet, since, leftMs);
      if (!page.more) break;
      page = await index.changes(collection, { since, began, timeoutMs: leftMs() });
    }
    return this.#isApart ? count + (await this.#list(collection, [...there], leftMs)) : count;
  }

  /** Finds what is new about these; gone are only those that the index had at this version. */
  async #look(
    collection: string,
    ids: readonly string[],
    version: number,
    leftMs: () => number,
  ): Promise<number> {
    const { index } = this.#parts;
    const asked = ids.map((id): Told => [id, '']);
    const found = await this.#examine(collection, asked, leftMs);
    if (!this.#isApart) return found.filter((reply) => reply === 1).length;
    const changed = ids.flatMap((id, i): Told[] => {
      const reply = found[i];
      return typeof reply === 'string' ? [[id, reply]] : [];
    });
    const gone = version === 0 ? [] : ids.filter((_, i) => found[i] === null);
    await index.announce(collection, changed, leftMs());
    const retired = await index.retire(collection, gone, version, leftMs());
    const told = [...changed, ...retired.map((id): Told => [id, '-'])];
    await this.#confirm(collection, told, leftMs);
    return told.length;
  }

  /**
   * On a Cluster: tells the index what has become of records, and looks whether that is so once it has been told. Another client
   * may have changed a record meanwhile, and have told the index before this one did: then the index is told again. So the
   * last that it hears of a record is true.
   */
  async tell(collection: string, told: readonly Told[], leftMs: () => number): Promise<void> {
    await this.#parts.index.announce(collection, told, leftMs());
    await this.#confirm(collection, told, leftMs);
  }

  async #confirm(collection: string, told: readonly Told[], leftMs: () => number): Promise<void> {
    const found = await this.#examine(collection, told, leftMs);
    const otherwise = told.flatMap(([id, what], i): Told[] => {
      const reply = found[i];
      if (typeof reply === 'string') return [[id, reply]];
      return reply === null && what !== '-' ? [[id, '-']] : [];
    });
    if (otherwise.length > 0) await this.tell(collection, otherwise, leftMs);
  }

  /** What is there, and known, but not in the index: an index that was lost, or a client that died before it told again. */
  async #list(collection: string, ids: readonly string[], leftMs: () => number): Promise<number> {
    const asked = ids.map((id): Told => [id, '']);
    const found = await this.#examine(collection, asked, leftMs);
    const unlisted = ids.filter((_, i) => found[i] === 0);
    const told = unlisted.map((id): Told => [id, '+']);
    await this.tell(collection, told, leftMs);
    return unlisted.length;
  }

  /** One that fails by itself is left for others to find; a server that fails, fails the search. */
  async #examine(
    collection: string,
    records: readonly Told[],
    leftMs: () => number,
  ): Promise<Found[]> {
    const { keys, servers, index } = this.#parts;
    const work = {
      script: scripts['record/discover'],
      keys: records.map(([id]) => keys.record(collection, id)),
      perKey: records,
      before: keys.index(collection),
      head: () => [this.#isApart ? '' : index.kept],
    };
    const replies = await inChunks(servers, work, leftMs);
    const failed = replies.find((reply) => reply instanceof Error);
    if (failed !== undefined) throw failed;
    return replies as Found[];
  }
}
