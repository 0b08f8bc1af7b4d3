/**
 * One PostgreSQL server, which half of the instances reach through pgbouncer in transaction mode. Each poll ends with a
 * transaction that `guard` lets pass. The server's log of changes says in which order these and the grants committed.
 */
import pg from 'pg';
import { installStore } from '../src/store/postgres/administration.ts';
import { lastingPort } from '../test/support/lasting-port.ts';
import { startPgbouncer } from '../test/support/pgbouncer.ts';
import { advanceBy, MOVABLE_CLOCK } from '../test/support/postgres-clock.ts';
import {
  freezeAll,
  type PostgresServer,
  startPostgres,
  thawAll,
} from '../test/support/postgres-server.ts';
import { until } from '../test/support/until.ts';
import { decodedCommits, SLOT, WRITES } from './commit-order.ts';
import { type Scene, type StoreFault, storeFault } from './faults.ts';
import { requirePostgres } from './postgres-programs.ts';
import { RECOVERY_MS, TTL_MS } from './timings.ts';
import { oneOf, type Topology } from './topology.ts';

/**
 * Longer than any fault: a frozen instance may keep its transaction open, and one that is cut off.
 * The test of the naive way needs that.
 */
const IDLE_TIMEOUT = 'idle_in_transaction_session_timeout=15s';
const SETTINGS = ['wal_level=logical', 'max_connections=300', 'tcp_keepalives_idle=10'];
const POOL_SIZE = 40;
/** After a restart there is none for a moment. */
const BACKEND_DEADLINE_MS = 5_000;
const BACK_DEADLINE_MS = 30_000;

export async function postgres(): Promise<Topology> {
  const { programs } = requirePostgres(['pgbouncer']);
  const settings = [...SETTINGS, IDLE_TIMEOUT];
  const server = await startPostgres(programs, {
    settings,
    isDurable: true,
    pickPort: lastingPort,
  });
  const pooler = await startPgbouncer(server.port, { poolSize: POOL_SIZE, pickPort: lastingPort });
  await installStore(server.url);
  await server.sql(`${MOVABLE_CLOCK()}; ${WRITES}`);
  await server.sql(SLOT);
  const direct = { url: server.url, databases: [server.url] };
  const pooled = { url: pooler.url, databases: [pooler.url] };
  const listen = `?listen=${encodeURIComponent(server.url)}`;
  return {
    ways: [direct, pooled, direct, { ...pooled, url: pooler.url + listen }],
    ports: [server.port, pooler.port],
    neverForgets: true,
    faults: [
      ...serverFaults(server),
      ...programFaults(server),
      storeFault('pgbouncer restarted', {
        lastsMs: [0, 3_000],
        recoveryMs: RECOVERY_MS.plain,
        inflict: ({ lastsMs, pause }) => pooler.restart(() => pause(lastsMs)),
      }),
      clockFault(server),
    ],
    commits: () => decodedCommits(server),
    stop: async () => {
      await pooler[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** It forgets nothing, so that there is no quarantine. */
function plainFault(
  name: string,
  inflict: StoreFault['inflict'],
  lastsMs?: readonly [number, number],
): StoreFault {
  const recoveryMs = RECOVERY_MS.plain;
  return storeFault(name, { inflict, recoveryMs, ...(lastsMs !== undefined && { lastsMs }) });
}

function serverFaults(server: PostgresServer): StoreFault[] {
  const whileDead = async ({ lastsMs, pause }: Scene) => {
    await server.kill();
    try {
      await pause(lastsMs);
    } finally {
      await server.restart();
    }
  };
  return [
    plainFault('PostgreSQL killed', whileDead, [500, 6_000]),
    plainFault('PostgreSQL killed and restarted at once', whileDead, [0, 0]),
    plainFault('PostgreSQL restarted', () => server.restart(), [0, 0]),
    plainFault('PostgreSQL frozen', async ({ lastsMs, pause }) => {
      await server.freeze();
      try {
        await pause(lastsMs);
      } finally {
        await server.thaw();
      }
    }),
    plainFault('backend frozen', async ({ lastsMs, pick, pause }) => {
      const pid = oneOf(await backends(server), pick);
      await freezeAll([pid]);
      try {
        await pause(lastsMs);
      } finally {
        await thawAll([pid]);
      }
    }),
    // The server ends all others, too, and recovers as after a crash.
    plainFault(
      'backend killed',
      async ({ pick }) => {
        process.kill(oneOf(await backends(server), pick), 'SIGKILL');
        const what = 'the server to recover';
        await until(() => server.sql('SELECT 1'), { what, deadlineMs: BACK_DEADLINE_MS });
      },
      [0, 0],
    ),
    plainFault('connections ended', async () => {
      await server.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`);
    }, [0, 0]),
  ];
}

/** Of other programs that use the same database. */
function programFaults(server: PostgresServer): StoreFault[] {
  const whileOpen = async ({ lastsMs, pause }: Scene, begin: string) => {
    const client = new pg.Client({ connectionString: server.url });
    client.on('error', () => {});
    await client.connect();
    try {
      await client.query(`SET idle_in_transaction_session_timeout = 0; ${begin}`);
      await pause(lastsMs);
    } finally {
      await client.end();
    }
  };
  const count = 'SELECT count(*) FROM holdfast.lease';
  return [
    plainFault('long transaction elsewhere', (scene) =>
      whileOpen(scene, `BEGIN ISOLATION LEVEL REPEATABLE READ; ${count}`),
    ),
    plainFault('leases locked by another program', (scene) =>
      whileOpen(
        scene,
        scene.pick < 0.5
          ? 'BEGIN; LOCK TABLE holdfast.lease IN SHARE MODE'
          : 'BEGIN; SELECT FROM holdfast.lease FOR UPDATE',
      ),
    ),
  ];
}

/**
 * Leases end by the server's clock. If it is set forward, one expires while its holder relies on it: two hold it, and only
 * fences and `guard` notice.
 */
function clockFault(server: PostgresServer): StoreFault {
  return storeFault('clock stepped', {
    recoveryMs: RECOVERY_MS.plain + TTL_MS,
    mayBreak: ['exclusion', 'two polls'],
    inflict: async ({ lastsMs, pick, pause }) => {
      const stepMs = (2 * pick - 1) * TTL_MS;
      await server.sql(advanceBy(stepMs));
      try {
        await pause(lastsMs);
      } finally {
        await server.sql(advanceBy(-stepMs));
      }
    },
  });
}

async function backends(server: PostgresServer): Promise<number[]> {
  const look = async () => {
    const rows = await server.sql<{ pid: number }>(`SELECT pid FROM pg_stat_activity
      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY pid`);
    return rows.length > 0 && rows.map(({ pid }) => pid);
  };
  return until(look, { what: 'a connection', deadlineMs: BACKEND_DEADLINE_MS });
}
