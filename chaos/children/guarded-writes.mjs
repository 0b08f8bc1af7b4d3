// Transactions of a user's own in the database that has the leases: each asks `guard`, and writes a row with its fence. The
// naive way asks by a plain SELECT instead, which says nothing about the moment of the commit.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** A user waits this long for a connection, or for the answer to a statement. */
const PATIENCE_MS = 1_500;
/** A transaction is open for up to this long, so that faults find it under way. */
const MOST_OPEN_MS = 60;

const CHECKS = {
  guard: 'SELECT holdfast.guard($1, $2)',
  naive: `SELECT 1 / count(*) FROM holdfast.lease l LEFT JOIN holdfast.keepalive k ON k.id = l.keepalive
    WHERE l.key = $1 AND l.fence = $2 AND greatest(l.until, k.until) > holdfast.clock_us()`,
};

/** `databases`: the addresses of one database, of which the first that takes writes is used. */
export class GuardedWrites {
  #databases;
  #check;
  #idle = [];

  constructor(databases, check) {
    this.#databases = databases;
    this.#check = CHECKS[check];
  }

  /**
   * Resolves when the row is committed. `between` runs between the check and the write. It asks no AbortSignal: what is
   * under test is what stops a process that does not notice its loss.
   */
  async write({ target, fence, by }, between) {
    const client = this.#idle.pop() ?? (await this.#connect());
    try {
      await client.query('BEGIN');
      await client.query(this.#check, [`poll:lease:${target}`, fence]);
      await sleep(Math.random() * MOST_OPEN_MS);
      between();
      const row = 'INSERT INTO chaos_write (target, fence, by) VALUES ($1, $2, $3)';
      await client.query(row, [target, fence, by]);
      await client.query('COMMIT');
      this.#idle.push(client);
    } catch (error) {
      client.connection.stream.destroy();
      throw error;
    }
  }

  async #connect() {
    let last;
    for (const connectionString of this.#databases) {
      const client = new pg.Client({
        connectionString,
        connectionTimeoutMillis: PATIENCE_MS,
        query_timeout: PATIENCE_MS,
      });
      const forget = () => (this.#idle = this.#idle.filter((other) => other !== client));
      client.on('error', forget).on('end', forget);
      try {
        await client.connect();
        const { rows } = await client.query('SELECT pg_is_in_recovery() AS is_standby');
        if (!rows[0].is_standby) return client;
        last = new Error('a standby takes no writes');
      } catch (error) {
        last = error;
      }
      client.connection.stream.destroy();
    }
    throw last;
  }
}
