/** What slows a server down or fills its disk over time: for `holdfast doctor`. */
import type { Finding } from '../port/examination.ts';
import type { PostgresLink } from './dialer.ts';
import { literal, within } from './statement.ts';

const HEALTH_MS = 5_000;
/** A transaction that is open for longer holds back the cleaning of dead rows. */
const LONG_TRANSACTION_S = 300;
/** A standby that is further behind loses as much in a failover, unless it is synchronous. */
const LAG_BYTES = 64 * 1_024 ** 2;
const RETAINED_BYTES = 1_024 ** 3;
/** A table with more dead rows than live ones, and more than these. */
const DEAD_ROWS = 100_000;
/** The setting came with PostgreSQL 17. */
const TRANSACTION_TIMEOUT_VERSION = 170_000;

export interface Health {
  readonly version: number;
  /** False: this role sees its own connections only, and neither standbys nor their lag. */
  readonly seesAll: boolean;
  /** As the defaults of this role and database have it: what its own transactions use. */
  readonly synchronousCommit: string;
  /** In milliseconds; 0: none. */
  readonly transactionTimeoutMs: number;
  /** The oldest first. */
  readonly transactions: readonly OpenTransaction[];
  readonly standbys: readonly { readonly name: string; readonly behindBytes: number }[];
  readonly slots: readonly RetainingSlot[];
  readonly tables: readonly TableRows[];
}

interface OpenTransaction {
  readonly pid: number;
  readonly ageS: number;
  readonly application: string;
  /** Of the connection, such as 'idle in transaction'. */
  readonly state: string;
}

interface RetainingSlot {
  readonly name: string;
  readonly isActive: boolean;
  readonly retainedBytes: number;
}

interface TableRows {
  readonly name: string;
  readonly live: number;
  readonly dead: number;
  readonly bytes: number;
}

function query(schema: string): string {
  return `SELECT json_build_object(
  'version', current_setting('server_version_num')::int,
  'seesAll', pg_has_role('pg_read_all_stats', 'USAGE'),
  'synchronousCommit', (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
  'transactionTimeoutMs', coalesce((SELECT setting::bigint FROM pg_settings WHERE name = 'transaction_timeout'), 0),
  'transactions', (SELECT coalesce(json_agg(t ORDER BY t."ageS" DESC), '[]') FROM (
    SELECT pid, extract(epoch FROM clock_timestamp() - xact_start) AS "ageS", application_name AS application,
      coalesce(state, '') AS state FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
      AND backend_type = 'client backend' ORDER BY xact_start LIMIT 3) t),
  'standbys', (SELECT coalesce(json_agg(json_build_object('name', coalesce(nullif(application_name, ''), 'standby'), 'behindBytes',
    greatest(0, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)))), '[]') FROM pg_stat_replication WHERE replay_lsn IS NOT NULL),
  'slots', (SELECT coalesce(json_agg(json_build_object('name', slot_name, 'isActive', active, 'retainedBytes',
    pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn))), '[]') FROM pg_replication_slots WHERE restart_lsn IS NOT NULL),
  'tables', (SELECT coalesce(json_agg(json_build_object('name', relname, 'live', n_live_tup, 'dead', n_dead_tup, 'bytes',
    pg_total_relation_size(relid)) ORDER BY n_dead_tup DESC), '[]') FROM pg_stat_all_tables WHERE schemaname = ${literal(schema)})
)::text`;
}

export async function readHealth(
  link: Pick<PostgresLink, 'query'>,
  schema: string,
): Promise<Health> {
  return JSON.parse((await link.query(within(HEALTH_MS, query(schema)))) ?? '{}') as Health;
}

export function judgeHealth(health: Health): Finding[] {
  return [
    ...sight(health),
    ...transactions(health),
    ...transactionTimeout(health),
    ...durability(health),
    ...standbys(health),
    ...slots(health),
    bloat(health),
  ];
}

function sight({ seesAll }: Health): Finding[] {
  if (seesAll) return [];
  const fact = 'This role sees neither the transactions of other roles nor standbys.';
  const advice = 'To have them checked here, GRANT pg_monitor to it, or use another role.';
  return [{ level: 'ok', subject: 'rights', fact, advice }];
}

function transactions({ transactions: open }: Health): Finding[] {
  const advice =
    'While it is open, dead rows of leases stay, and every verb gets slower. Let it end, or run SELECT pg_terminate_backend';
  return open
    .filter(({ ageS }) => ageS >= LONG_TRANSACTION_S)
    .map(({ pid, ageS, application, state }) => {
      const who = application === '' ? 'without application_name' : `of '${application}'`;
      const fact = `Connection ${pid} ${who} (${state}) has had a transaction open for ${Math.round(ageS)} s.`;
      return { level: 'warn', subject: 'eviction', fact, advice: `${advice}(${pid}).` };
    });
}

function transactionTimeout({ version, transactionTimeoutMs }: Health): Finding[] {
  if (version < TRANSACTION_TIMEOUT_VERSION) return [];
  const subject = 'rights';
  if (transactionTimeoutMs > 0) {
    const fact = `transaction_timeout is ${transactionTimeoutMs} ms.`;
    return [{ level: 'ok', subject, fact }];
  }
  const advice =
    'A guarded transaction that works for too long delays the takeover of its lease. Set the timeout for the role of your application, for example to 5min.';
  return [{ level: 'warn', subject, fact: 'transaction_timeout is off.', advice }];
}

/** Holdfast turns it on for what it writes itself. */
function durability({ synchronousCommit }: Health): Finding[] {
  if (synchronousCommit !== 'off') return [];
  const fact = 'synchronous_commit is off for this role.';
  const advice =
    'Leases do not use that setting. Your own transactions do: a crash may lose one that was committed under guard. Set it to on.';
  return [{ level: 'warn', subject: 'persistence', fact, advice }];
}

function standbys({ standbys: all }: Health): Finding[] {
  const advice =
    'A failover to it loses what it does not have. Check its disk and network, or make it synchronous.';
  return all.map(({ name, behindBytes }) => {
    const fact = `Standby '${name}' is ${sizeOf(behindBytes)} behind.`;
    if (behindBytes < LAG_BYTES) return { level: 'ok', subject: 'replication', fact };
    return { level: 'warn', subject: 'replication', fact, advice };
  });
}

function slots({ slots: all }: Health): Finding[] {
  return all
    .filter(({ retainedBytes }) => retainedBytes >= RETAINED_BYTES)
    .map(({ name, isActive, retainedBytes }) => {
      const fact = `Replication slot '${name}' (${isActive ? 'active' : 'not active'}) retains ${sizeOf(retainedBytes)} of WAL.`;
      const advice = `The disk fills until its reader catches up. If nothing reads it any more, run SELECT pg_drop_replication_slot('${name}').`;
      return { level: 'warn', subject: 'replication', fact, advice };
    });
}

function bloat({ tables }: Health): Finding {
  const subject = 'bloat';
  const bloated = tables.filter(({ live, dead }) => dead >= DEAD_ROWS && dead > live);
  const total = tables.reduce((sum, { bytes }) => sum + bytes, 0);
  if (bloated.length === 0)
    return { level: 'ok', subject, fact: `The tables of Holdfast have ${sizeOf(total)}.` };
  const list = bloated.map(({ name, live, dead }) => `${name} (${dead} dead, ${live} live)`);
  const fact = `Tables have more dead rows than live ones: ${list.join(', ')}.`;
  const advice =
    'End long transactions, and check that autovacuum is on. Then run VACUUM on these tables.';
  return { level: 'warn', subject, fact, advice };
}

function sizeOf(bytes: number): string {
  const [kib, mib] = [bytes / 1_024, bytes / 1_024 ** 2];
  if (mib >= 1_024) return `${(mib / 1_024).toFixed(1)} GiB`;
  return mib >= 1 ? `${Math.round(mib)} MiB` : `${Math.ceil(kib)} KiB`;
}
