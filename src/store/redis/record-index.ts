import { CHANGES_PAGE, type ChangesPage, REMOVALS_KEPT } from '../store.ts';
import type { Keys } from './keys.ts';
import { type Script, scripts } from './scripts.ts';
import type { Servers } from './servers.ts';

export const KEPT = String(REMOVALS_KEPT);
/** For how long a record may be on its way after its index was told of it: writing it takes a moment. */
const ON_ITS_WAY_MS = 1_000;

/** What each collection of records has, by the version of the last change. */
export class RecordIndex {
  readonly #keys: Keys;
  readonly #servers: Servers;

  constructor(parts: { keys: Keys; servers: Servers }) {
    this.#keys = parts.keys;
    this.#servers = parts.servers;
  }

  async changes(collection: string, since: number, timeoutMs: number): Promise<ChangesPage> {
    const args = [String(since), String(CHANGES_PAGE), KEPT];
    const reply = await this.#run(scripts.changes, collection, args, timeoutMs);
    const [version, more, reset, written, removed] = reply as [
      string,
      number,
      number,
      string[],
      string[],
    ];
    return { version: Number(version), more: more === 1, reset: reset === 1, written, removed };
  }

  /** Says that records have been written or removed. */
  async announce(
    collection: string,
    ids: readonly string[],
    mark: '+' | '-',
    timeoutMs: number,
  ): Promise<void> {
    if (ids.length === 0) return;
    const args = [KEPT, ...ids.flatMap((id) => [mark, id])];
    await this.#run(scripts.announce, collection, args, timeoutMs);
  }

  /** Says that records are gone, unless there is news of them since this version; gives those it has said it of. */
  async retire(
    collection: string,
    ids: readonly string[],
    version: number,
    timeoutMs: number,
  ): Promise<string[]> {
    if (ids.length === 0) return [];
    const args = [KEPT, String(version), String(ON_ITS_WAY_MS), ...ids];
    return (await this.#run(scripts.retire, collection, args, timeoutMs)) as string[];
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
