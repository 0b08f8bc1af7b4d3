import type { Clock } from '../../../core/clock.ts';
import type { SqliteConnection, Tx, Value } from '../file/sqlite-connection.ts';

/** How many rows of a table one look takes. */
const LOOK_ROWS = 128;
/** How long after a step the next one comes, at the earliest, */
const EVERY_MS = 10;
/** and how long it takes at most, give or take one look: cleaning up has a tenth of the time. */
const STEP_MS = 1;
/** A table that has more garbage than this among the rows just looked at is looked at again in the same step. */
const MUCH_GARBAGE = LOOK_ROWS / 8;

/** Where a walk through a table stands: behind the row with this key. */
type Place = readonly Value[];

interface Look {
  /** Behind the last row looked at; from the beginning again at the end of the table. */
  readonly next: Place;
  readonly removed: number;
}

interface Walk {
  readonly start: Place;
  look(tx: Tx, from: Place): Look;
}

/**
 * What has expired counts as absent; so its rows may go when there is time. Walks through the tables, a few rows at a
 * time where there is little to remove, and for as long as a step may take where there is much: so it keeps up with
 * whatever is written.
 */
export class ExpiredRows {
  readonly #clock: Clock;
  readonly #walks = [keys('leases'), keys('fences'), keys('offers'), LINES, REMOVALS];
  readonly #places = this.#walks.map(({ start }) => start);
  #lastMs = Number.NEGATIVE_INFINITY;
  /** Another table is the first of each step, in case there is no time for all. */
  #first = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Goes along with a transaction that writes anyway. */
  step(tx: Tx): void {
    // Time that went back is another file's.
    if (tx.nowMs >= this.#lastMs && tx.nowMs - this.#lastMs < EVERY_MS) return;
    this.#lastMs = tx.nowMs;
    const overMs = this.#clock.monotonicMs() + STEP_MS;
    this.#first = (this.#first + 1) % this.#walks.length;
    for (let n = 0; n < this.#walks.length; n++)
      this.#walk(tx, (this.#first + n) % this.#walks.length, overMs);
  }

  #walk(tx: Tx, n: number, overMs: number): void {
    const walk = this.#walks[n] as Walk;
    let removed = LOOK_ROWS;
    while (removed > MUCH_GARBAGE && this.#clock.monotonicMs() < overMs) {
      const look = walk.look(tx, this.#places[n] ?? walk.start);
      this.#places[n] = look.next;
      removed = look.removed;
    }
  }
}

/** The key of the last row of a look; undefined where fewer rows are left than a look takes. */
function lastOf<Row extends Value[]>(
  session: SqliteConnection,
  sql: string,
  from: Place,
): Row | undefined {
  return session.row<Row>(`${sql} LIMIT 1 OFFSET ${LOOK_ROWS - 1}`, ...from);
}

function keys(table: 'leases' | 'fences' | 'offers'): Walk {
  const start = [''];
  return {
    start,
    look({ session, nowMs }, from) {
      const sql = `SELECT key FROM ${table} WHERE key > ? ORDER BY key`;
      const last = lastOf<[string]>(session, sql, from);
      const removed =
        last === undefined
          ? session.run(`DELETE FROM ${table} WHERE key > ? AND expires <= ?`, ...from, nowMs)
          : session.run(
              `DELETE FROM ${table} WHERE key > ? AND key <= ? AND expires <= ?`,
              ...[...from, ...last, nowMs],
            );
      return { next: last ?? start, removed };
    },
  };
}

const LINES: Walk = {
  start: ['', ''],
  look({ session, nowMs }, from) {
    const rows = session.rows<[string, string, number]>(
      `SELECT key, inbox, expires FROM lines WHERE (key, inbox) > (?, ?) ORDER BY key, inbox LIMIT ${LOOK_ROWS}`,
      ...from,
    );
    const old = rows.filter(([, , expires]) => expires <= nowMs);
    for (const [key, inbox] of old)
      session.run('DELETE FROM lines WHERE key = ? AND inbox = ?', key, inbox);
    return { next: placeOf(rows, LINES.start), removed: old.length };
  },
};

/** Who asks for changes since before what is dropped here has to begin again. */
const REMOVALS: Walk = {
  start: ['', 0],
  look({ session, nowMs }, from) {
    const rows = session.rows<[string, number, string, number]>(
      `SELECT collection, version, id, expires FROM records
       WHERE json IS NULL AND (collection, version) > (?, ?) ORDER BY collection, version LIMIT ${LOOK_ROWS}`,
      ...from,
    );
    const old = rows.filter(([, , , expires]) => expires <= nowMs);
    for (const [collection, version, id] of old) {
      session.run('DELETE FROM records WHERE collection = ? AND id = ?', collection, id);
      session.run(
        'UPDATE collections SET forgotten = max(forgotten, ?) WHERE name = ?',
        version,
        collection,
      );
    }
    return { next: placeOf(rows, REMOVALS.start), removed: old.length };
  },
};

function placeOf(rows: readonly Value[][], start: Place): Place {
  return rows.length < LOOK_ROWS ? start : (rows.at(-1)?.slice(0, start.length) ?? start);
}
