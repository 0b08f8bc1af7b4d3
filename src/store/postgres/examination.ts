import type { Finding } from '../port/examination.ts';
import type { PostgresLink } from './dialer.ts';
import { type Health, judgeHealth } from './health.ts';
import { within } from './statement.ts';

const FACTS_MS = 5_000;
const MIN_VERSION = 130_000;
/** Any fence is lower for years to come. A clock that is further off gives fences that are not. */
const MAX_OFFSET_MS = 5_000;

/** What the server says of itself, to any role. */
export interface ServerFacts {
  readonly version: number;
  readonly versionText: string;
  readonly recovery: boolean;
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  readonly encoding: string;
  readonly synchronous: boolean;
  readonly clockMs: number;
  /** In milliseconds; 0: none. */
  readonly idleTimeoutMs: number;
  readonly keepAlives: boolean;
  /** The oldest open transaction that this role can see. */
  readonly oldestTransactionS: number;
}

const FACTS = `SELECT json_build_object(
  'version', current_setting('server_version_num')::int, 'versionText', current_setting('server_version'),
  'recovery', pg_is_in_recovery(), 'fsync', current_setting('fsync') = 'on',
  'fullPageWrites', current_setting('full_page_writes') = 'on', 'encoding', current_setting('server_encoding'),
  'synchronous', current_setting('synchronous_standby_names') <> '',
  'clockMs', extract(epoch FROM clock_timestamp()) * 1000,
  'idleTimeoutMs', (SELECT setting::bigint FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'),
  'keepAlives', coalesce(nullif(current_setting('tcp_keepalives_idle'), ''), '0') <> '0',
  'oldestTransactionS', coalesce((SELECT max(extract(epoch FROM clock_timestamp() - xact_start)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()), 0)
)::text`;

export async function readFacts(link: Pick<PostgresLink, 'query'>): Promise<ServerFacts> {
  return JSON.parse((await link.query(within(FACTS_MS, FACTS))) ?? '{}') as ServerFacts;
}

/** What is wrong with the server for leases, as sentences; empty if nothing. */
export function problemsOf(facts: ServerFacts, isEmbedded: boolean): string[] {
  return judge(facts, { isEmbedded, offset: null, hints: null, health: null })
    .filter(({ level }) => level === 'refuse')
    .map(({ fact, advice = '' }) => `${fact} ${advice}`);
}

export interface Circumstances {
  readonly isEmbedded: boolean;
  /** Null: not measured. */
  readonly offset: { readonly offsetMs: number; readonly uncertaintyMs: number } | null;
  /** How hints arrive; null: not known yet. */
  readonly hints: 'listens' | 'polls' | null;
  /** Null: not read, as while a connection is opened. */
  readonly health: Health | null;
}

/** Judges the facts: whether leases are safe on this server. */
export function judge(facts: ServerFacts, around: Circumstances): Finding[] {
  const found = [version(facts), role(facts), encoding(facts)];
  if (!around.isEmbedded) found.push(persistence(facts), replication(facts), timeouts(facts));
  found.push(transactions(facts));
  if (around.hints !== null) found.push(hints(around.hints));
  if (around.offset !== null) found.push(clock(around.offset));
  if (around.health !== null) found.push(...judgeHealth(around.health));
  return found;
}

function version({ version, versionText }: ServerFacts): Finding {
  const fact = `PostgreSQL ${versionText}.`;
  if (version >= MIN_VERSION) return { level: 'ok', subject: 'version', fact };
  const advice = 'Use PostgreSQL 13 or later.';
  return { level: 'refuse', subject: 'version', fact, advice };
}

function role({ recovery }: ServerFacts): Finding {
  if (!recovery) return { level: 'ok', subject: 'role', fact: 'The server is a primary.' };
  const advice =
    'Use the address of the primary, or one that follows it: several hosts and target_session_attrs=read-write.';
  return { level: 'refuse', subject: 'role', fact: 'The server is a standby in recovery.', advice };
}

function encoding({ encoding }: ServerFacts): Finding {
  const fact = `The encoding of the database is ${encoding}.`;
  if (encoding === 'UTF8') return { level: 'ok', subject: 'format', fact };
  return { level: 'refuse', subject: 'format', fact, advice: 'Use a database with UTF8.' };
}

function persistence({ fsync, fullPageWrites }: ServerFacts): Finding {
  const subject = 'persistence';
  if (!fsync) {
    const advice = 'A crash may lose leases that are held. Set fsync = on and restart the server.';
    return { level: 'refuse', subject, fact: 'fsync is off.', advice };
  }
  if (!fullPageWrites) {
    const advice = 'A crash may tear pages. Set full_page_writes = on and reload the server.';
    return { level: 'refuse', subject, fact: 'full_page_writes is off.', advice };
  }
  return { level: 'ok', subject, fact: 'Every commit is on the disk before it is answered.' };
}

function replication({ synchronous }: ServerFacts): Finding {
  const fact = synchronous
    ? 'Commits wait for a synchronous standby.'
    : 'Commits wait for no standby: after a failover the store is in quarantine for the longest TTL.';
  return { level: 'ok', subject: 'replication', fact };
}

function timeouts({ idleTimeoutMs, keepAlives }: ServerFacts): Finding {
  const fact = `idle_in_transaction_session_timeout is ${idleTimeoutMs === 0 ? 'off' : `${idleTimeoutMs} ms`}.`;
  if (idleTimeoutMs > 0 && keepAlives) return { level: 'ok', subject: 'rights', fact };
  const advice =
    'A guarded transaction that hangs delays the takeover of its lease. Set the timeout, for example to 60s, and tcp_keepalives_idle.';
  return { level: 'warn', subject: 'rights', fact, advice };
}

const LONG_TRANSACTION_S = 300;

function transactions({ oldestTransactionS }: ServerFacts): Finding {
  const fact = `The oldest open transaction that this role sees is ${Math.round(oldestTransactionS)} s old.`;
  if (oldestTransactionS < LONG_TRANSACTION_S) return { level: 'ok', subject: 'eviction', fact };
  const advice =
    'While it is open, dead rows of leases stay and every verb gets slower. End it; holdfast doctor names it.';
  return { level: 'warn', subject: 'eviction', fact, advice };
}

function hints(how: 'listens' | 'polls'): Finding {
  if (how === 'listens')
    return { level: 'ok', subject: 'topology', fact: 'Hints arrive by LISTEN.' };
  const advice =
    'The address leads to a pooler. Add ?listen=postgres://… with an address of the server itself.';
  const fact = 'LISTEN is swallowed: hints are looked for every 100 ms.';
  return { level: 'warn', subject: 'topology', fact, advice };
}

function clock(offset: { offsetMs: number; uncertaintyMs: number }): Finding {
  const ms = Math.round(offset.offsetMs);
  const fact = `The server's clock is ${Math.abs(ms)} ms ${ms < 0 ? 'behind' : 'ahead of'} this host's (± ${Math.round(offset.uncertaintyMs)} ms).`;
  const isFar = Math.abs(offset.offsetMs) - offset.uncertaintyMs > MAX_OFFSET_MS;
  if (!isFar) return { level: 'ok', subject: 'clock', fact, clock: offset };
  const advice = 'Leases end by the server’s clock. Synchronise both with NTP.';
  return { level: 'warn', subject: 'clock', fact, advice, clock: offset };
}
