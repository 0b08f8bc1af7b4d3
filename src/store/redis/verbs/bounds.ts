import type { BoundStore } from '../../port/bound-store.ts';
import { KEYSPACE_NAMES } from '../../port/keyspaces.ts';
import { scripts } from '../scripts.ts';
import type { Servers } from '../topology/servers.ts';

/** The bounds in the store's marker. */
export function redisBounds(servers: Servers, marker: string): BoundStore {
  return {
    async read({ timeoutMs }) {
      const fields = KEYSPACE_NAMES.map((name) => `maxttl:${name}`);
      const reply = await servers.send('examine', marker, ['HMGET', marker, ...fields], timeoutMs);
      const recorded = (reply as (string | null)[]).flatMap((ms, i) =>
        ms === null ? [] : [[KEYSPACE_NAMES[i], Number(ms)] as const],
      );
      return Object.fromEntries(recorded);
    },
    async change(to, { timeoutMs }) {
      const bounds = KEYSPACE_NAMES.map((name) => String(to[name]));
      const command = ['EVAL', scripts['server/change-bounds'].source, '1', marker, ...bounds];
      await servers.send('bound', marker, command, timeoutMs);
      // On a Cluster, scripts read the era from the witnesses, which an examination places again. A
      // client with other bounds cannot examine.
      const { primaries } = servers;
      await Promise.all(primaries.map((each) => each.reexamine('', timeoutMs).catch(() => {})));
    },
  };
}
