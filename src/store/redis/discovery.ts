/**
 * Records that another program has written, changed or removed without telling anybody. All names of a collection are walked
 * over, and then what its index lists besides; a script compares each value with the digest of the one that was last known.
 *
 * On a single server it does so, notes the new digest and tells the index in one step. A Cluster can not: there the index is told
 * before the digest is noted, so that a change may be told twice but is never lost; and told of a removal only
 * where it has heard nothing of the record since, so that one that somebody just writes is not taken for gone.
 */
import type { Clock } from '../../base/clock.ts';
import type { Call } from '../store.ts';
import { inChunks } from './chunks.ts';
import type { Keys } from './keys.ts';
import { KEPT, type RecordIndex } from './record-index.ts';
import { scripts } from './scripts.ts';
import type { Servers } from './servers.ts';
import { timeForSteps, walk } from './walk.ts';

/** A record, and what its index has been told of it: nothing, the digest of its value, or `-`, that it is gone. */
type Told = readonly [id: string, told: string];
/** What the script says of a record; an error text stands in a list. */
type Found = number | string | null | [string];

interface DiscoveryParts {
  readonly keys: Keys;
  readonly servers: Servers;
  readonly clock: Clock;
  readonly index: RecordIndex;
}

export class Discovery {
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
    let page = await index.changes(collection, 0, leftMs());
    for (;;) {
      const { written, version } = page;
      // What is listed and was not met: gone, or come since.
      const unmet = written.filter((id) => !there.delete(id));
      count += await this.#look(collection, unmet, version, leftMs);
      if (!page.more) break;
      page = await index.changes(collection, version, leftMs());
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
    const changedIds = changed.map(([id]) => id);
    await index.announce(collection, changedIds, '+', leftMs());
    const retired = await index.retire(collection, gone, version, leftMs());
    const told = [...changed, ...retired.map((id): Told => [id, '-'])];
    await this.#examine(collection, told, leftMs);
    return told.length;
  }

  /** What is there, and known, but not in the index: an index that was lost, or a removal that was told too late. */
  async #list(collection: string, ids: readonly string[], leftMs: () => number): Promise<number> {
    const asked = ids.map((id): Told => [id, '']);
    const found = await this.#examine(collection, asked, leftMs);
    const unlisted = ids.filter((_, i) => found[i] === 0);
    await this.#parts.index.announce(collection, unlisted, '+', leftMs());
    return unlisted.length;
  }

  /** One that fails by itself is left for others to find; a server that fails, fails the search. */
  async #examine(
    collection: string,
    records: readonly Told[],
    leftMs: () => number,
  ): Promise<Found[]> {
    const { keys, servers } = this.#parts;
    const work = {
      script: scripts.discover,
      keys: records.map(([id]) => keys.record(collection, id)),
      perKey: records,
      before: keys.index(collection),
      head: () => [this.#isApart ? '' : KEPT],
    };
    const replies = await inChunks(servers, work, leftMs);
    const failed = replies.find((reply) => reply instanceof Error);
    if (failed !== undefined) throw failed;
    return replies as Found[];
  }
}
