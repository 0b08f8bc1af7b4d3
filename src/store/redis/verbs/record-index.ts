import { CHANGES_PAGE, type ChangesCall, type ChangesPage } from '../../port/record-store.ts';
import type { Keys } from '../keys.ts';
import { type Script, scripts } from '../scripts.ts';
import type { Servers } from '../topology/servers.ts';

/** For how long a record may be on its way after its index was told of it: writing it takes a moment. */
const ON_ITS_WAY_MS = 1_000;

/** What has become of a record: its revision, or `-`, that it is gone. */
export type Told = readonly [id: string, what: string];

/** What each collection of records has, by the version of the last change. */
export class RecordIndex {
  readonly #keys: Keys;
  readonly #servers: Servers;

  /** How many removals a collection remembers, as every script is told it that tells the index something. */
  readonly kept: string;

  constructor(parts: { keys: Keys; servers: Servers; removalsKept: number }) {
    this.#keys = parts.keys;
    this.#servers = parts.servers;
    this.kept = String(parts.removalsKept);
  }

  async changes(collection: string, call: ChangesCall): Promise<ChangesPage> {
    const { since, began = 0, most = CHANGES_PAGE, timeoutMs } = call;
    const args = [since, began, Math.min(most, CHANGES_PAGE)].map(String);
    const reply = await this.#run(scripts['record/changes'], collection, args, timeoutMs);
    const [version, from, more, reset, written, removed] = reply as [
      ...[version: string, began: string, more: number, reset: number],
      ...[written: string[], removed: string[]],
    ];
    const page = { version: Number(version), more: more === 1, reset: reset === 1 };
    return { ...page, written, removed, ...(page.more && { began: Number(from) }) };
  }

  /** Says that records have been written or removed. */
  async announce(collection: string, told: readonly Told[], timeoutMs: number): Promise<void> {
    if (told.length === 0) return;
    const args = told.flatMap(([id, what]) => [what === '-' ? '-' : '+', id]);
    await this.#run(scripts['record/announce'], collection, [this.kept, ...args], timeoutMs);
  }

  /** Says that records are gone, unless there is news of them since this version; gives those it has said it of. */
  async retire(
    collection: string,
    ids: readonly string[],
    version: number,
    timeoutMs: number,
  ): Promise<string[]> {
    if (ids.length === 0) return [];
    const args = [this.kept, String(version), String(ON_ITS_WAY_MS), ...ids];
    return (await this.#run(scripts['record/retire'], collection, args, timeoutMs)) as string[];
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
