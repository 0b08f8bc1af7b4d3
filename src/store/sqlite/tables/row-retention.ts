import type { Clock } from '../../../core/clock.ts';
import type { Value } from '../driver/driver.ts';
import type { SqliteConnection, Tx } from '../file/sqlite-connection.ts';

/** One chunk has so many rows of a table. */
const CHUNK_ROWS = 128;
/** `removeSome` works at most this often, */
const EVERY_MS = 10;
/** and at most for this long, plus one chunk: removing takes a tenth of the time. */
const MAX_MS = 1;
/** If a chunk had more expired rows than this, the next chunk of the table follows at once. */
const MANY_EXPIRED = CHUNK_ROWS / 8;

/** The key of a row. A walk through a table continues after it. */
type Position = readonly Value[];

interface Chunk {
  /** The key of the chunk's last row; the start of the table after its last chunk. */
  readonly next: Position;
  readonly removed: number;
}

interface Walk {
  readonly start: Position;
  removeChunk(tx: Tx, after: Position): Chunk;
}

/**
 * Removes expired rows. They count as absent, so they are removed when there is time. Each table is
 * walked one chunk at a time. A table with many expired rows gets more chunks, so removing keeps up
 * with writing.
 */
export class RowRetention {
  readonly #clock: Clock;
  readonly #walks = [
    keys('leases'),
    keys('keepalives'),
    keys('fences'),
    keys('offers'),
    LINES,
    REMOVALS,
  ];
  readonly #positions = this.#walks.map(({ start }) => start);
  #lastMs = Number.NEGATIVE_INFINITY;
  /** Each call begins with another table, in case the time is too short for all. */
  #first = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs within a transaction that writes anyway. */
  removeSome(tx: Tx): void {
    // A time before the last one belongs to another file.
    if (tx.nowMs >= this.#lastMs && tx.nowMs - this.#lastMs < EVERY_MS) return;
    this.#lastMs = tx.nowMs;
    const overMs = this.#clock.monotonicMs() + MAX_MS;
    this.#first = (this.#first + 1) % this.#walks.length;
    for (let n = 0; n < this.#walks.length; n++)
      this.#walk(tx, (this.#first + n) % this.#walks.length, overMs);
  }

  #walk(tx: Tx, n: number, overMs: number): void {
    const walk = this.#walks[n] as Walk;
    let removed = CHUNK_ROWS;
    while (removed > MANY_EXPIRED && this.#clock.monotonicMs() < overMs) {
      const chunk = walk.removeChunk(tx, this.#positions[n] ?? walk.start);
      this.#positions[n] = chunk.next;
      removed = chunk.removed;
    }
  }
}

/** Returns the key of a chunk's last row; undefined if fewer rows are left than a chunk has. */
function lastOf<Row extends Value[]>(
  connection: SqliteConnection,
  sql: string,
  from: Position,
): Row | undefined {
  return connection.row<Row>(`${sql} LIMIT 1 OFFSET ${CHUNK_ROWS - 1}`, ...from);
}

/** A lease lives longer than its own expiry if its keepalive does. */
const ATTACHED =
  ' AND NOT EXISTS (SELECT 1 FROM keepalives a WHERE a.key = leases.keepalive AND a.expires > ?)';

function keys(table: 'leases' | 'keepalives' | 'fences' | 'offers'): Walk {
  const start = [''];
  const more = table === 'leases' ? ATTACHED : '';
  return {
    start,
    removeChunk({ connection, nowMs }, from) {
      const now = more === '' ? [nowMs] : [nowMs, nowMs];
      const sql = `SELECT key FROM ${table} WHERE key > ? ORDER BY key`;
      const last = lastOf<[string]>(connection, sql, from);
      const removed =
        last === undefined
          ? connection.run(
              `DELETE FROM ${table} WHERE key > ? AND expires <= ?${more}`,
              ...from,
              ...now,
            )
          : connection.run(
              `DELETE FROM ${table} WHERE key > ? AND key <= ? AND expires <= ?${more}`,
              ...from,
              ...last,
              ...now,
            );
      return { next: last ?? start, removed };
    },
  };
}

const LINES: Walk = {
  start: ['', ''],
  removeChunk({ connection, nowMs }, from) {
    const sql = `SELECT key, inbox, expires FROM lines WHERE (key, inbox) > (?, ?) ORDER BY key, inbox LIMIT ${CHUNK_ROWS}`;
    const rows = connection.rows<[string, string, number]>(sql, ...from);
    const old = rows.filter(([, , expires]) => expires <= nowMs);
    for (const [key, inbox] of old)
      connection.run('DELETE FROM lines WHERE key = ? AND inbox = ?', key, inbox);
    return { next: positionAfter(rows, LINES.start), removed: old.length };
  },
};

/** A reader of changes that is behind a removal dropped here has to begin again. */
const REMOVALS: Walk = {
  start: ['', 0],
  removeChunk({ connection, nowMs }, from) {
    const sql = `SELECT collection, version, id, expires FROM records
       WHERE json IS NULL AND (collection, version) > (?, ?) ORDER BY collection, version LIMIT ${CHUNK_ROWS}`;
    const rows = connection.rows<[string, number, string, number]>(sql, ...from);
    const old = rows.filter(([, , , expires]) => expires <= nowMs);
    for (const [collection, version, id] of old) {
      connection.run('DELETE FROM records WHERE collection = ? AND id = ?', collection, id);
      const update = 'UPDATE collections SET forgotten = max(forgotten, ?) WHERE name = ?';
      connection.run(update, version, collection);
    }
    return { next: positionAfter(rows, REMOVALS.start), removed: old.length };
  },
};

function positionAfter(rows: readonly Value[][], start: Position): Position {
  return rows.length < CHUNK_ROWS ? start : (rows.at(-1)?.slice(0, start.length) ?? start);
}
