import type { Tx } from './session.ts';

/** How many rows of each table one step looks at. */
const STEP_ROWS = 32;
/** How long after a step the next one comes, at the earliest: cleaning up never takes more than a hundredth of the time. */
const EVERY_MS = 50;

/** What has expired counts as absent; so its rows may go when there is time. Walks through the tables, a few rows at a time. */
export class Sweep {
  #lastMs = Number.NEGATIVE_INFINITY;
  #lease = '';
  #fence = '';
  #line = ['', ''] as [string, string];
  #removal = ['', 0] as [string, number];

  /** Goes along with a transaction that writes anyway. */
  step(tx: Tx): void {
    // Time that went back is another file's.
    if (tx.nowMs >= this.#lastMs && tx.nowMs - this.#lastMs < EVERY_MS) return;
    this.#lastMs = tx.nowMs;
    this.#lease = sweepKeys(tx, 'leases', this.#lease);
    this.#fence = sweepKeys(tx, 'fences', this.#fence);
    this.#line = sweepLines(tx, this.#line);
    this.#removal = sweepRemovals(tx, this.#removal);
  }
}

/** Gives where to go on: behind the last row looked at, or from the beginning. */
function sweepKeys({ session, nowMs }: Tx, table: 'leases' | 'fences', from: string): string {
  const rows = session.rows<[string, number]>(
    `SELECT key, expires FROM ${table} WHERE key > ? ORDER BY key LIMIT ${STEP_ROWS}`,
    from,
  );
  for (const [key, expires] of rows)
    if (expires <= nowMs) session.run(`DELETE FROM ${table} WHERE key = ?`, key);
  return rows.length < STEP_ROWS ? '' : (rows.at(-1)?.[0] ?? '');
}

function sweepLines({ session, nowMs }: Tx, from: [string, string]): [string, string] {
  const rows = session.rows<[string, string, number]>(
    `SELECT key, inbox, expires FROM lines WHERE (key, inbox) > (?, ?) ORDER BY key, inbox LIMIT ${STEP_ROWS}`,
    ...from,
  );
  for (const [key, inbox, expires] of rows)
    if (expires <= nowMs) session.run('DELETE FROM lines WHERE key = ? AND inbox = ?', key, inbox);
  const [key = '', inbox = ''] = rows.length < STEP_ROWS ? [] : (rows.at(-1) ?? []);
  return [key, inbox];
}

/** Who asks for changes since before what is dropped here has to begin again. */
function sweepRemovals({ session, nowMs }: Tx, from: [string, number]): [string, number] {
  const rows = session.rows<[string, number, string, number]>(
    `SELECT collection, version, id, expires FROM records
     WHERE json IS NULL AND (collection, version) > (?, ?) ORDER BY collection, version LIMIT ${STEP_ROWS}`,
    ...from,
  );
  for (const [collection, version, id, expires] of rows) {
    if (expires > nowMs) continue;
    session.run('DELETE FROM records WHERE collection = ? AND id = ?', collection, id);
    session.run(
      'UPDATE collections SET forgotten = max(forgotten, ?) WHERE name = ?',
      version,
      collection,
    );
  }
  const [collection = '', version = 0] = rows.length < STEP_ROWS ? [] : (rows.at(-1) ?? []);
  return [collection, version];
}
