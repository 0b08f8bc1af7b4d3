import { asEntries, pageOf, pageSize } from '../../log-pages.ts';
import {
  LOG_KEPT,
  type LogPage,
  type LogReadCall,
  type LogRecallCall,
  type LogStore,
  type LogTrimCall,
} from '../../port/log-store.ts';
import type { Call } from '../../port/store.ts';
import { keyFailure } from '../client/replies.ts';
import type { Keys } from '../keys.ts';
import { type Script, scripts } from '../scripts.ts';
import { onlyReply, type Servers } from '../topology/servers.ts';

/** The form of a position. Others are not sent to Redis. */
const POSITION = /^\d{1,15}-\d{1,16}$/;

/** An id, and the fields of the entry: ours have one. */
type Entry = [id: string, fields: string[]];

/** The log is one Redis Stream. On a Cluster it lies on one server. */
export class RedisLog implements LogStore {
  readonly #keys: Keys;
  readonly #servers: Servers;

  constructor(keys: Keys, servers: Servers) {
    this.#keys = keys;
    this.#servers = servers;
  }

  async append(values: readonly unknown[], call: Call): Promise<void> {
    if (values.length === 0) return;
    const args = [String(LOG_KEPT), ...asEntries(values)];
    await this.#run(scripts['log/append'], args, call);
  }

  async read(call: LogReadCall): Promise<LogPage> {
    const { after } = call;
    if (after === undefined || POSITION.test(after))
      return this.#page(scripts['log/read'], after ?? '', call);
    return { ...(await this.#page(scripts['log/read'], '', call)), gap: true };
  }

  async recall(call: LogRecallCall): Promise<LogPage> {
    const { before } = call;
    if (before === undefined || POSITION.test(before))
      return this.#page(scripts['log/recall'], before ?? '', call);
    return { entries: [], more: false, gap: true };
  }

  async trim({ keptMs, ...call }: LogTrimCall): Promise<number> {
    return Number(await this.#run(scripts['log/trim'], [String(Math.round(keptMs))], call));
  }

  async #page(
    script: Script,
    position: string,
    { most, timeoutMs }: LogReadCall | LogRecallCall,
  ): Promise<LogPage> {
    const size = pageSize(most);
    const args = [position, String(size + 1)];
    const reply = await this.#run(script, args, { timeoutMs });
    const [gap, found] = reply as [number, Entry[]];
    return pageOf(
      found.map(([id, [, json = '']]) => [id, json]),
      size,
      gap === 1,
    );
  }

  async #run(script: Script, args: string[], { timeoutMs }: Call): Promise<unknown> {
    const key = this.#keys.log;
    const work = { script, keys: [key], perKey: [args] };
    const reply = onlyReply(await this.#servers.run(work, timeoutMs));
    if (typeof reply === 'string')
      throw keyFailure(reply, key, { store: this.#servers.name, operation: script.operation });
    return reply;
  }
}
