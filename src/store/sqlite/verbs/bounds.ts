import type { BoundStore } from '../../port/bound-store.ts';
import { KEYSPACE_NAMES, type MaxTtls } from '../../port/keyspaces.ts';
import type { Call } from '../../port/store.ts';
import type { LockQueue } from '../file/lock-queue.ts';
import type { StoreClock } from '../file/store-clock.ts';

/** The bounds of lease TTLs that the file records. */
export class SqliteBounds implements BoundStore {
  readonly #queue: LockQueue;
  readonly #storeClock: StoreClock;

  constructor(queue: LockQueue, storeClock: StoreClock) {
    this.#queue = queue;
    this.#storeClock = storeClock;
  }

  read(call: Call): Promise<Partial<MaxTtls>> {
    return this.#queue.readOne('examine', call, ({ connection }) =>
      Object.fromEntries(connection.rows<[string, number]>('SELECT name, ttl FROM bounds')),
    );
  }

  change(to: MaxTtls, call: Call): Promise<void> {
    return this.#queue.writeOne('bound', call, ({ connection, nowMs }) => {
      for (const name of KEYSPACE_NAMES)
        connection.run('INSERT OR REPLACE INTO bounds VALUES (?, ?)', name, to[name]);
      this.#storeClock.beginEra(connection, 'its maxTtl was changed', nowMs);
    });
  }
}
