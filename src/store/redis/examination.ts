import type { ClockOffset, Finding } from '../port/examination.ts';

/** The oldest Redis whose commands and script rules we rely on. */
const OLDEST = [6, 2] as const;
/** A clock further off than this is worth a word. */
const CLOCK_OFFSET_MS = 1_000;

/** What one Redis says about itself. */
export interface ServerFacts {
  readonly version: string;
  readonly runId: string;
  readonly replicationId: string;
  readonly upMs: number;
  readonly role: string;
  readonly primary: string;
  readonly replicas: number;
  readonly writesNeedReplicas: boolean;
  readonly evictionPolicy: string;
  readonly appendOnly: boolean;
  /**
   * It is reading its data from disk. Until that is done it says that the append-only file is off,
   * even if it is on.
   */
  readonly isLoading: boolean;
  readonly cluster: boolean;
  /** Server clock minus ours. */
  readonly clock: ClockOffset;
}

/** For a caller that does not need the offset. */
export const SAME_CLOCK: ClockOffset = { offsetMs: 0, uncertaintyMs: 0 };

/** Reads the text of `INFO`. Valkey reports itself as a Redis 7.2 that it is compatible with. */
export function readInfo(info: string, clock: ClockOffset): ServerFacts {
  const fields = new Map<string, string>();
  for (const line of info.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0 && !line.startsWith('#')) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  const field = (name: string) => fields.get(name) ?? '';
  return {
    version: field('redis_version'),
    runId: field('run_id'),
    replicationId: field('master_replid'),
    // Counted in whole seconds of the wall clock: the last one may have begun a moment ago.
    upMs: Math.max(0, Number(field('uptime_in_seconds')) - 1) * 1_000,
    role: field('role'),
    primary: `${field('master_host')}:${field('master_port')}`,
    replicas: Number(field('connected_slaves')),
    writesNeedReplicas: fields.has('min_slaves_good_slaves'),
    evictionPolicy: field('maxmemory_policy'),
    appendOnly: field('aof_enabled') === '1',
    isLoading: field('loading') === '1',
    cluster: field('cluster_enabled') === '1',
    clock,
  };
}

/** What those facts mean for leases. */
export function judge(facts: ServerFacts, expected: 'single' | 'cluster'): Finding[] {
  return [
    version(facts),
    topology(facts, expected),
    role(facts),
    eviction(facts),
    persistence(facts),
    replication(facts),
    clock(facts),
  ];
}

function version({ version }: ServerFacts): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const fact = `Redis ${version}.`;
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]))
    return { level: 'ok', subject: 'version', fact };
  return {
    level: 'refuse',
    subject: 'version',
    fact,
    advice: `Holdfast needs Redis ${OLDEST.join('.')} or later, or Valkey.`,
  };
}

function topology({ cluster }: ServerFacts, expected: 'single' | 'cluster'): Finding {
  const subject = 'topology';
  const fact = cluster ? 'A primary of a Redis Cluster.' : 'A single server.';
  if (cluster === (expected === 'cluster')) return { level: 'ok', subject, fact };
  const advice = cluster
    ? 'Open it as redis+cluster://host:port, so that keys are sought where they are.'
    : 'It is not a Cluster: open it as redis://host:port.';
  return { level: 'refuse', subject, fact, advice };
}

function role(facts: ServerFacts): Finding {
  if (facts.role === 'master') return { level: 'ok', subject: 'role', fact: 'A primary.' };
  const advice = `Leases need the primary: connect to ${facts.primary}.`;
  return { level: 'refuse', subject: 'role', fact: 'This server is a replica.', advice };
}

function eviction({ evictionPolicy }: ServerFacts): Finding {
  const fact = `maxmemory-policy is ${evictionPolicy}.`;
  if (evictionPolicy === 'noeviction') return { level: 'ok', subject: 'eviction', fact };
  const advice =
    'A Redis that evicts may evict a lease that is held: set maxmemory-policy to noeviction, or use another Redis.';
  return { level: 'refuse', subject: 'eviction', fact, advice };
}

function persistence({ appendOnly, isLoading }: ServerFacts): Finding {
  const subject = 'persistence';
  if (isLoading) return { level: 'ok', subject, fact: 'Redis is loading its data.' };
  if (appendOnly) return { level: 'ok', subject, fact: 'The append-only file is on.' };
  const advice =
    'After a restart no new lease is granted for one TTL; with appendonly yes the leases themselves survive.';
  return {
    level: 'warn',
    subject,
    fact: 'The append-only file is off: a restart forgets leases.',
    advice,
  };
}

function replication({ replicas, writesNeedReplicas }: ServerFacts): Finding {
  if (replicas === 0) return { level: 'ok', subject: 'replication', fact: 'No replicas.' };
  const fact = `${replicas} ${replicas === 1 ? 'replica' : 'replicas'}.`;
  if (writesNeedReplicas) return { level: 'ok', subject: 'replication', fact };
  const advice =
    'Set min-replicas-to-write 1 and min-replicas-max-lag 1, or a primary cut off from them may continue to grant.';
  return { level: 'warn', subject: 'replication', fact, advice };
}

function clock({ clock }: ServerFacts): Finding {
  const { offsetMs } = clock;
  const fact = `Its clock is ${Math.abs(Math.round(offsetMs))} ms ${offsetMs < 0 ? 'behind' : 'ahead of'} ours.`;
  const about = { subject: 'clock', fact, clock } as const;
  if (Math.abs(offsetMs) <= CLOCK_OFFSET_MS) return { level: 'ok', ...about };
  const advice =
    'Leases stand this, but a clock that is being set right expires them early: run NTP on both hosts.';
  return { level: 'warn', ...about, advice };
}
