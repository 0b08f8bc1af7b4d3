import type { BoundStore } from '../../port/bound-store.ts';
import { KEYSPACE_NAMES } from '../../port/keyspaces.ts';
import type { LockQueue } from '../file/lock-queue.ts';
import type { StoreClock } from '../file/store-clock.ts';

/** The bounds of lease TTLs that the file records. */
export function sqliteBounds(queue: LockQueue, storeClock: StoreClock): BoundStore {
  return {
    read: (call) =>
      queue.readOne('examine', call, ({ connection }) =>
        Object.fromEntries(connection.rows<[string, number]>('SELECT name, ttl FROM bounds')),
      ),
    change: (to, call) =>
      queue.writeOne('bound', call, ({ connection, nowMs }) => {
        for (const name of KEYSPACE_NAMES)
          connection.run('INSERT OR REPLACE INTO bounds VALUES (?, ?)', name, to[name]);
        storeClock.beginEra(connection, 'its maxTtl was changed', nowMs);
      }),
  };
}
