import pg from 'pg';
import { PAIR_TTL_MS } from './keeping.mjs';

const HOLDER = 'bench-1700000000000000000-0123abcd';
const TABLE = `CREATE TABLE IF NOT EXISTS lock_by_hand (
  key text PRIMARY KEY, holder text NOT NULL, until timestamptz NOT NULL
)`;
const LOCK = `INSERT INTO lock_by_hand VALUES ($1, $2, now() + $3 * interval '1 ms')
  ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, until = excluded.until WHERE lock_by_hand.until < now()
  RETURNING key`;
const UNLOCK = 'DELETE FROM lock_by_hand WHERE key = $1 AND holder = $2';

/** What people write by hand: a table of locks, and one statement for each of them, which is a transaction. */
export async function openContender(url) {
  // Ten connections, unless told otherwise. One caller at a time uses one of them.
  const pool = new pg.Pool({ connectionString: url });
  await pool.query(TABLE).catch(ignoreRace);
  // Prepared: named statements are parsed once for each connection.
  const run = (name, text, values) => pool.query({ name, text, values });
  return {
    async pair(key) {
      const { rowCount } = await run('lock', LOCK, [key, HOLDER, PAIR_TTL_MS]);
      if (rowCount !== 1) throw new Error(`${key} is held`);
      const unlocked = await run('unlock', UNLOCK, [key, HOLDER]);
      if (unlocked.rowCount !== 1) throw new Error(`${key} was not unlocked`);
    },
  };
}

/** Another process makes the table at the same moment. */
function ignoreRace(error) {
  if (error.code !== '23505') throw error;
}
