import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Holdfast, open } from '../../src/holdfast.ts';
import type { Store } from '../../src/store/port/store.ts';
import { workflowKey } from '../../src/store/port/workflow-store.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { FaultProxy } from '../../testing/fakes/fault-proxy.ts';
import { type Child, spawnChild } from '../support/child.ts';
import { advanceBy, MOVABLE_CLOCK } from '../support/postgres-clock.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { until } from '../support/until.ts';

// One process for each verb, in the middle of it. Then these processes, a process of the server, or
// all of the server are killed with -9, at each point of the way of a request. Afterwards
// the tables have what they had before, or all that the verb makes: never a part of it.

const CALL = { timeoutMs: 5_000 };
const TTL_MS = 60_000;
const ACQUIRE = { ...CALL, ttlMs: TTL_MS / 2, inbox: 'inbox' };
/** The lock that holds every transaction up which has done its work, before its COMMIT. */
const GATE = 42;
const GATED = ['lease', 'keepalive', 'workflow', 'session'];
const TABLES = [...GATED.map((table) => `holdfast.${table}`), 'public.written'];

type Deed =
  | { readonly part: string; readonly verb: string; readonly args: readonly unknown[] }
  | { readonly sql: string };

interface Case {
  readonly name: string;
  /** Makes what the verb is about, and returns the verb. */
  readonly prepare: (id: string) => Promise<Deed>;
  /** What is there, without times and fences: SQL. */
  readonly state: (id: string) => string;
  /** The lease that another process waits for. */
  readonly key?: (id: string) => string;
  /** A crash of the server may undo it: losing it costs time. */
  readonly isAsynchronous?: boolean;
}

let server: PostgresServer;
let store: Store;
let holdfast: Holdfast;
let gate: pg.Client;
let url: string;
let proxy: FaultProxy;

beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  store = await openPostgresStore(server.url);
  holdfast = await open(server.url, { name: 'waiter' });
  proxy = await FaultProxy.start({ target: { host: '127.0.0.1', port: server.port } });
  url = server.url.replace(String(server.port), String(proxy.port));
  await server.sql(`${MOVABLE_CLOCK()}; CREATE TABLE written (id text);
    CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(${GATE}); RETURN NULL; END $$;
    ${TABLES.map(
      (table) => `CREATE CONSTRAINT TRIGGER gate AFTER INSERT OR UPDATE ON ${table}
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.gate();`,
    ).join('\n')}`);
}, 60_000);
afterAll(async () => {
  await proxy.close();
  await holdfast.close();
  await store.close();
  await server[Symbol.asyncDispose]();
});

const leaseOf = (id: string) => `lease:${id}`;
const hold = async (key: string, holder = 'h') => {
  const [reply] = await store.leases.acquire([{ key, holder }], ACQUIRE);
  return { key, holder, fence: reply?.kind === 'granted' ? reply.fence : 0 };
};
const holderOf = (id: string) =>
  `SELECT CASE WHEN holder IN ('h', 's') THEN holder END FROM holdfast.lease WHERE key = '${leaseOf(id)}'`;
const begin = async (id: string) => {
  const { fence } = await hold(workflowKey(id), `tenure-${id}`);
  const request = { leaseId: `tenure-${id}`, fence, inbox: 'inbox', resume: false };
  await store.workflows.begin(id, request, CALL);
};
const emission = (id: string) => {
  const action = { id: `action-${id}`, target: id, priority: 5, body: '{}' };
  return { leaseId: `tenure-${id}`, epoch: 0, read: [], actions: [action] };
};
const workflowState = (id: string) => `
  SELECT json_build_array(w.epoch, w.unresolved, w.unread, (SELECT count(*) FROM holdfast.action a WHERE a.workflow = w.number),
    (SELECT count(*) FROM holdfast.result r WHERE r.workflow = w.number),
    (SELECT count(*) FROM holdfast.history h WHERE h.workflow = w.number),
    (SELECT count(*) FROM holdfast.lane l JOIN holdfast.stream s ON s.number = l.stream WHERE s.name = 'action:${id}'))
  FROM holdfast.workflow w WHERE id = '${id}'`;

const CASES: readonly Case[] = [
  {
    name: 'acquire',
    prepare: async (id) => {
      const asks = [{ key: leaseOf(id), holder: 'h' }];
      return { part: 'leases', verb: 'acquire', args: [asks, ACQUIRE] };
    },
    state: holderOf,
  },
  {
    name: 'renew',
    prepare: async (id) => {
      const held = await hold(leaseOf(id));
      return { part: 'leases', verb: 'renew', args: [[held], { ...CALL, ttlMs: TTL_MS }] };
    },
    state: (id) => `SELECT until > holdfast.clock_us() + ${TTL_MS * 0.6} * 1000
      FROM holdfast.lease WHERE key = '${leaseOf(id)}'`,
    key: leaseOf,
  },
  {
    name: 'release',
    prepare: async (id) => {
      const held = await hold(leaseOf(id));
      return { part: 'leases', verb: 'release', args: [[held], CALL] };
    },
    state: holderOf,
    key: leaseOf,
    isAsynchronous: true,
  },
  {
    name: 'transfer',
    prepare: async (id) => {
      const handovers = [{ ...(await hold(leaseOf(id))), successor: 's' }];
      const call = { ...CALL, windowMs: TTL_MS / 2 };
      return { part: 'leases', verb: 'transfer', args: [handovers, call] };
    },
    state: holderOf,
    key: leaseOf,
  },
  {
    name: 'keepAlive',
    prepare: async (id) => {
      const held = await hold(leaseOf(id));
      const attachTo = { id, isNew: true };
      await store.leases.renew([held], { ...CALL, ttlMs: TTL_MS / 2, attachTo });
      const call = { ...CALL, ttlMs: TTL_MS, version: 1, acknowledged: [] };
      return { part: 'leases', verb: 'keepAlive', args: [id, call] };
    },
    state: (id) => `SELECT until > holdfast.clock_us() + ${TTL_MS * 0.6} * 1000
      FROM holdfast.keepalive WHERE id = '${id}'`,
    key: leaseOf,
  },
  {
    name: 'guarded transaction',
    prepare: async (id) => {
      const { key, fence } = await hold(leaseOf(id));
      const insert = `INSERT INTO public.written VALUES ('${id}')`;
      return { sql: `BEGIN; ${store.guard?.sql(key, fence)}; ${insert}; COMMIT` };
    },
    state: (id) => `SELECT count(*) FROM public.written WHERE id = '${id}'`,
    key: leaseOf,
  },
  {
    name: 'emit',
    prepare: async (id) => {
      await begin(id);
      return { part: 'workflows', verb: 'emit', args: [id, emission(id), CALL] };
    },
    state: workflowState,
  },
  {
    name: 'settle',
    prepare: async (id) => {
      await begin(id);
      await store.workflows.emit(id, emission(id), CALL);
      const take = { ...CALL, consumer: 'c', most: 1, claimMs: TTL_MS };
      const [taken] = await store.workflows.take(id, take);
      const fence = taken?.kind === 'reserved' ? taken.fence : 0;
      const settled = { workflow: id, fence, outcome: 'succeeded', value: 1 };
      return { part: 'workflows', verb: 'settle', args: [id, [settled], CALL] };
    },
    state: workflowState,
  },
  {
    name: 'start of an intent',
    prepare: async (id) => {
      const facts = { tenant: 't', kind: 'live', label: id, client: 'c', priority: 5 };
      const request = { id, ...facts, keys: [id], body: '{}', status: '{}' };
      return { part: 'intents', verb: 'start', args: [request, CALL] };
    },
    state: (
      id,
    ) => `SELECT json_build_array(count(*), (SELECT count(*) FROM holdfast.session_key WHERE key = '${id}'),
      (SELECT count(*) FROM holdfast.session_client c JOIN holdfast.session s ON s.number = c.session WHERE s.id = '${id}'),
      (SELECT count(*) FROM holdfast.lane WHERE lane = '${id}')) FROM holdfast.session WHERE id = '${id}'`,
  },
];

const stateOf = async (one: Case, id: string): Promise<string> => {
  const [row] = await server.sql(one.state(id));
  return JSON.stringify(Object.values(row ?? {})[0] ?? null);
};
const isAnswering = () =>
  server.sql('SELECT 1').then(
    () => true,
    () => false,
  );
const untilAnswering = () =>
  until(isAnswering, { what: 'the server to answer', deadlineMs: 20_000, every: 50 });
const fenceOf = async (key: string) => {
  const [row] = await server.sql<{ fence: string }>(
    `SELECT fence FROM holdfast.lease WHERE key = '${key}'`,
  );
  return Number(row?.fence ?? 0);
};

/** Each of them once, without a fault: what they make. */
async function whatTheyMake(): Promise<Map<Case, { before: string; after: string }>> {
  const made = new Map<Case, { before: string; after: string }>();
  for (const one of CASES) {
    const id = `plain-${CASES.indexOf(one)}`;
    const deed = await one.prepare(id);
    const before = await stateOf(one, id);
    if ('sql' in deed) await server.sql(deed.sql);
    else {
      const verbs = store[deed.part as 'leases'] as unknown as Record<
        string,
        (...args: readonly unknown[]) => Promise<unknown>
      >;
      await verbs[deed.verb]?.(...deed.args);
    }
    const after = await stateOf(one, id);
    expect(after, one.name).not.toBe(before);
    made.set(one, { before, after });
  }
  return made;
}

type Point = 'before it arrives' | 'before its COMMIT' | 'before its answer';
type Victim = 'its process' | 'a process of the server' | 'the server';

describe('killed with -9 on PostgreSQL', () => {
  const points: readonly Point[] = ['before it arrives', 'before its COMMIT', 'before its answer'];
  const victims: readonly Victim[] = ['its process', 'a process of the server', 'the server'];
  const all = victims.flatMap((victim) => points.map((point) => ({ victim, point })));
  let made: Awaited<ReturnType<typeof whatTheyMake>>;
  let round = 0;

  it.each(all)(
    'B-21 B-22 B-25 every verb is whole when $victim is killed $point, fences rise, and waiters continue',
    async ({ victim, point }) => {
      made ??= await whatTheyMake();
      round++;
      await using children = new Children();
      const runs = await Promise.all(
        CASES.map(async (one, n) => {
          const id = `round-${round}-${n}`;
          const deed = await one.prepare(id);
          const child = children.add(spawnChild('postgres-host.mjs', { args: [url] }));
          await child.next('ready', 30_000);
          const fence = one.key === undefined ? 0 : await fenceOf(one.key(id));
          return { one, id, deed, child, fence };
        }),
      );
      const waiting = runs.flatMap(({ one, id, fence }) =>
        one.key === undefined ? [] : [{ fence, taken: holdfast.acquire(id, { wait: '60s' }) }],
      );

      await closeGate(point === 'before its COMMIT');
      if (point === 'before it arrives') await proxy.holdRequests();
      if (point === 'before its answer') await proxy.loseReplies();
      for (const { deed, child } of runs)
        child.send('sql' in deed ? { do: 'transaction', ...deed } : { do: 'call', ...deed });
      for (const { child } of runs) await child.next('begun');
      if (point === 'before its COMMIT') await untilAtGate(runs.length);
      if (point === 'before its answer')
        for (const { one, id } of runs)
          await until(async () => (await stateOf(one, id)) === made.get(one)?.after, {
            what: `${one.name} to be committed`,
            deadlineMs: 10_000,
          });
      await kill(victim, runs);
      await openGate();
      await proxy.pass();
      proxy.reset();
      await untilAnswering();
      for (const { child } of runs) await child.kill();
      await untilIdle();

      for (const { one, id } of runs) {
        const { before = '', after = '' } = made.get(one) ?? {};
        const state = await stateOf(one, id);
        expect([before, after], `${one.name} is a part of itself`).toContain(state);
        if (point === 'before it arrives') expect(state, one.name).toBe(before);
        if (point === 'before its COMMIT' && victim !== 'its process')
          expect(state, one.name).toBe(before);
        if (point === 'before its answer' && !one.isAsynchronous)
          expect(state, one.name).toBe(after);
      }
      await server.sql(advanceBy(2 * TTL_MS));
      for (const { fence, taken } of waiting) {
        const result = await taken;
        expect(result.ok && result.lease.fence).toBeGreaterThan(fence);
        if (result.ok) await result.lease.release();
      }
    },
    60_000,
  );
});

class Children implements AsyncDisposable {
  readonly #all: Child[] = [];

  add(child: Child): Child {
    this.#all.push(child);
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map((child) => child.kill()));
  }
}

async function closeGate(isClosed: boolean): Promise<void> {
  gate = new pg.Client({ connectionString: server.url });
  gate.on('error', () => {});
  await gate.connect();
  if (isClosed) await gate.query(`SELECT pg_advisory_lock(${GATE})`);
}

async function openGate(): Promise<void> {
  await gate.end().catch(() => {});
}

const AT_GATE = `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'advisory'`;

function untilAtGate(count: number): Promise<unknown> {
  const what = 'every transaction to be before its COMMIT';
  const areThere = async () => (await server.sql(AT_GATE)).length >= count;
  return until(areThere, { what, deadlineMs: 10_000, every: 10 });
}

/** Until no transaction of a process that was killed is under way. */
function untilIdle(): Promise<unknown> {
  const sql = `SELECT FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()
    AND backend_type = 'client backend'`;
  const isIdle = async () => (await server.sql(sql)).length === 0;
  return until(isIdle, { what: 'the server to be idle', deadlineMs: 20_000 });
}

async function kill(victim: Victim, runs: readonly { readonly child: Child }[]): Promise<void> {
  if (victim === 'its process') {
    await Promise.all(runs.map(({ child }) => child.kill()));
    return;
  }
  if (victim === 'the server') {
    await server.kill();
    await server.restart();
    return;
  }
  // The server then ends all its processes, and begins again as after a crash.
  const [found] = await server.sql<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE application_name = 'holdfast' LIMIT 1`,
  );
  process.kill(found?.pid ?? 0, 'SIGKILL');
  await until(async () => !(await isAnswering()), { what: 'the crash', every: 1 }).catch(() => {});
}
