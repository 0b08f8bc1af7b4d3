import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Holdfast } from '../../src/holdfast.ts';
import type { Pool } from '../../src/lease/pool/pool.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { leaveNothingBehind, openAt } from './support/holdfasts.ts';
import { hostMs } from './support/lease-watch.ts';

leaveNothingBehind();

const root = mkdtempSync(join(tmpdir(), 'holdfast-'));
let redis: RedisServer;
let cluster: RedisCluster;
let postgres: PostgresServer;
beforeAll(async () => {
  [redis, cluster, postgres] = await Promise.all([
    startRedis(),
    startCluster(),
    startPostgres(postgresPrograms() ?? '', { isDurable: true }),
  ]);
}, 120_000);
afterAll(async () => {
  await Promise.all([
    redis.stop(),
    cluster[Symbol.asyncDispose](),
    postgres[Symbol.asyncDispose](),
  ]);
  rmSync(root, { recursive: true });
});

const STORES: [string, () => string][] = [
  ['SQLite', () => `sqlite:${join(root, 'limits.db')}`],
  ['Redis', () => redis.url],
  ['a Redis Cluster', () => cluster.url],
  ['PostgreSQL', () => postgres.url],
];

const WORK_MS = 4_000;

/** Clients with other numbers of slots take and release, each as fast as it can. */
async function contend(clients: readonly { number: number; pool: Pool }[]): Promise<string[]> {
  const held = new Set<{ number: number }>();
  const problems: string[] = [];
  const untilMs = hostMs() + WORK_MS;
  const client = async ({ number, pool }: (typeof clients)[number], n: number) => {
    while (hostMs() < untilMs) {
      const result = await pool.acquire(n % 2 === 0 ? {} : { wait: 300 });
      if (!result.ok) continue;
      const own = { number };
      held.add(own);
      const equal = [...held].filter((each) => each.number <= number).length;
      if (equal > number) problems.push(`${equal} holders with ${number} slots`);
      await new Promise((resolve) => setImmediate(resolve));
      held.delete(own);
      await result.lease.release();
    }
  };
  await Promise.all(clients.map(client));
  return problems;
}

async function opened(url: string, count: number): Promise<Holdfast[]> {
  return Promise.all(Array.from({ length: count }, () => openAt({ url })));
}

const close = (all: readonly Holdfast[]) => Promise.all(all.map((holdfast) => holdfast.close()));

describe.each(STORES)('pools on %s', (_, urlOf) => {
  it('K-10 a process is granted no slot that makes more holders than its own number', async () => {
    const all = await opened(urlOf(), 5);
    try {
      const pools = [4, 2, 2, 3, 3].map((number, i) => ({
        number,
        pool: (all[i] as Holdfast).pool('mixed', { slots: number }),
      }));
      // Two slots beyond those of the others stay held under the larger number for a while.
      const first = await Promise.all([1, 2, 3, 4].map(() => pools[0]?.pool.acquire()));
      expect(first.map((result) => result?.ok)).toEqual([true, true, true, true]);
      for (const result of first) if (result?.ok && result.slot < '3') await result.lease.release();
      for (const { pool } of pools.slice(1, 3))
        expect(await pool.acquire()).toMatchObject({ ok: false, reason: 'held' });
      for (const result of first) if (result?.ok) await result.lease.release();
      expect(await contend(pools.slice(1))).toEqual([]);
    } finally {
      await close(all);
    }
  }, 60_000);

  it('K-10 a waiter of 600 slots gets the one that is freed, at once', async () => {
    const [a, b] = (await opened(urlOf(), 2)) as [Holdfast, Holdfast];
    try {
      const [here, there] = [a, b].map((each) => each.pool('large', { slots: 600 })) as [
        Pool,
        Pool,
      ];
      const results = await Promise.all(Array.from({ length: 600 }, () => here.acquire()));
      const held = results.flatMap((result) => (result.ok ? [result] : []));
      expect(new Set(held.map(({ slot }) => slot)).size).toBe(600);
      expect(await there.acquire()).toMatchObject({ ok: false, reason: 'held' });
      const waiting = there.acquire({ wait: '30s' });
      await new Promise((resolve) => setImmediate(resolve));
      const isGate = async () => (await b.inspect('large:')).kind === 'held';
      while (!(await isGate())) await new Promise((resolve) => setImmediate(resolve));
      await held[333]?.lease.release();
      const sinceMs = hostMs();
      expect(await waiting).toMatchObject({ slot: held[333]?.slot });
      expect(hostMs() - sinceMs).toBeLessThan(2_000);
    } finally {
      await close([a, b]);
    }
  }, 60_000);
});
