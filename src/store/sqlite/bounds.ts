import { KEYSPACE_NAMES, type MaxTtls } from '../keyspaces.ts';
import type { BoundStore, Call } from '../store.ts';
import type { Marker } from './marker.ts';
import type { Turns } from './turns.ts';

/** The bounds that the file records. */
export class SqliteBounds implements BoundStore {
  readonly #turns: Turns;
  readonly #marker: Marker;

  constructor(turns: Turns, marker: Marker) {
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
