import type { BoundStore } from '../../port/bound-store.ts';
import { KEYSPACE_NAMES, type MaxTtls } from '../../port/keyspaces.ts';
import type { Call } from '../../port/store.ts';
import type { LockQueue } from '../file/lock-queue.ts';
import type { StoreClock } from '../file/store-clock.ts';

/** The bounds that the file records. */
export class SqliteBounds implements BoundStore {
  readonly #turns: LockQueue;
  readonly #marker: StoreClock;

  constructor(turns: LockQueue, marker: StoreClock) {
    this.#turns = turns;
    this.#marker = marker;
  }

  read(call: Call): Promise<Partial<MaxTtls>> {
    return this.#turns.readOne('examine', call, ({ session }) =>
      Object.fromEntries(session.rows<[string, number]>('SELECT name, ttl FROM bounds')),
    );
  }

  change(to: MaxTtls, call: Call): Promise<void> {
    return this.#turns.writeOne('bound', call, ({ session, nowMs }) => {
      for (const name of KEYSPACE_NAMES)
        session.run('INSERT OR REPLACE INTO bounds VALUES (?, ?)', name, to[name]);
      this.#marker.beginEra(session, 'its maxTtl was changed', nowMs);
    });
  }
}
