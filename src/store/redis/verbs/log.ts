import { asEntries, pageOf, pageSize } from '../../log-pages.ts';
import { LOG_KEPT, type LogPage, type LogStore } from '../../port/log-store.ts';
import { keyFailure } from '../client/replies.ts';
import type { Keys } from '../keys.ts';
import { type Script, scripts } from '../scripts.ts';
import { onlyReply, type Servers } from '../topology/servers.ts';

/** The form of a position. Others are not sent to Redis. */
const POSITION = /^\d{1,15}-\d{1,16}$/;

/** An id, and the fields of the entry: ours have one. */
type Entry = [id: string, fields: string[]];

/** The log is one Redis Stream. On a Cluster it lies on one server. */
export function redisLog({ log: key }: Keys, servers: Servers): LogStore {
  const run = async (script: Script, args: string[], timeoutMs: number): Promise<unknown> => {
    const work = { script, keys: [key], perKey: [args] };
    const reply = onlyReply(await servers.run(work, timeoutMs));
    if (typeof reply === 'string')
      throw keyFailure(reply, key, { store: servers.name, operation: script.operation });
    return reply;
  };
  const page = async (
    script: Script,
    position: string,
    { most, timeoutMs }: { most?: number | undefined; timeoutMs: number },
  ): Promise<LogPage> => {
    const size = pageSize(most);
    const reply = await run(script, [position, String(size + 1)], timeoutMs);
    const [gap, found] = reply as [number, Entry[]];
    return pageOf(
      found.map(([id, [, json = '']]) => [id, json]),
      size,
      gap === 1,
    );
  };
  return {
    async append(values, { timeoutMs }) {
      if (values.length === 0) return;
      await run(scripts['log/append'], [String(LOG_KEPT), ...asEntries(values)], timeoutMs);
    },
    async read(call) {
      const { after } = call;
      if (after === undefined || POSITION.test(after))
        return page(scripts['log/read'], after ?? '', call);
      return { ...(await page(scripts['log/read'], '', call)), gap: true };
    },
    async recall(call) {
      const { before } = call;
      if (before === undefined || POSITION.test(before))
        return page(scripts['log/recall'], before ?? '', call);
      return { entries: [], more: false, gap: true };
    },
    async trim({ keptMs, timeoutMs }) {
      return Number(await run(scripts['log/trim'], [String(Math.round(keptMs))], timeoutMs));
    },
  };
}
