import type { BoundStore } from '../../port/bound-store.ts';
import { KEYSPACE_NAMES, type MaxTtls } from '../../port/keyspaces.ts';
import type { Call } from '../../port/store.ts';
import { scripts } from '../scripts.ts';
import type { Servers } from '../topology/servers.ts';

/** The bounds in the store's marker. */
export class RedisBounds implements BoundStore {
  readonly #servers: Servers;
  readonly #marker: string;

  constructor(servers: Servers, marker: string) {
    this.#servers = servers;
    this.#marker = marker;
  }

  async read({ timeoutMs }: Call): Promise<Partial<MaxTtls>> {
    const fields = KEYSPACE_NAMES.map((name) => `maxttl:${name}`);
    const command = ['HMGET', this.#marker, ...fields];
    const reply = await this.#servers.send('examine', this.#marker, command, timeoutMs);
    const recorded = (reply as (string | null)[]).flatMap((ms, i) =>
      ms === null ? [] : [[KEYSPACE_NAMES[i], Number(ms)] as const],
    );
    return Object.fromEntries(recorded);
  }

  async change(to: MaxTtls, { timeoutMs }: Call): Promise<void> {
    const bounds = KEYSPACE_NAMES.map((name) => String(to[name]));
    const command = ['EVAL', scripts['server/change-bounds'].source, '1', this.#marker, ...bounds];
    await this.#servers.send('bound', this.#marker, command, timeoutMs);
    // On a Cluster, scripts read the era from the witnesses, which an examination places again. A
    // client with other bounds cannot examine.
    const { primaries } = this.#servers;
    await Promise.all(primaries.map((each) => each.reexamine('', timeoutMs).catch(() => {})));
  }
}
