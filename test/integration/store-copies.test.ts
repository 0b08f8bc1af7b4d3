import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/port/store.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { copyStore } from '../../src/store/store-copy.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { contentOf, drained, drawOf, fill } from '../support/store-content.ts';

const CALL = { timeoutMs: 10_000 };
const TIMEOUT_MS = 120_000;
const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
let postgres: PostgresServer;
let redis: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  [postgres, redis, cluster] = await Promise.all([
    startPostgres(postgresPrograms() ?? '', { isDurable: true }),
    startRedis(),
    startCluster({ replicas: 0 }),
  ]);
}, TIMEOUT_MS);
afterAll(async () => {
  await Promise.all([postgres?.[Symbol.asyncDispose](), redis?.stop(), cluster?.stop()]);
  rmSync(folder, { recursive: true });
});

let made = 0;
const options = { unfinished: true, quarantine: 'off' } as const;
/** A new and empty store of each kind. */
const KINDS: Readonly<Record<string, () => Promise<Store>>> = {
  sqlite: () => openSqliteStore(join(folder, `${made++}.db`), options),
  redis: () => openRedisStore(redis.url, { ...options, prefix: `p${made++}:` }),
  cluster: () => openRedisStore(cluster.url, { ...options, prefix: `p${made++}:` }),
  postgres: () => openPostgresStore(`${postgres.url}?schema=s${made++}`, options),
};

async function withStores(kinds: readonly string[], work: (...stores: Store[]) => Promise<void>) {
  const stores: Store[] = [];
  try {
    for (const kind of kinds) stores.push(await (KINDS[kind] as () => Promise<Store>)());
    await work(...stores);
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
}

describe('a copy between stores of any two kinds', () => {
  for (const from of Object.keys(KINDS))
    for (const to of Object.keys(KINDS))
      it(`B-21 keeps all content from ${from} to ${to}, and back`, { timeout: TIMEOUT_MS }, () =>
        withStores([from, to, from], async (a, b, again) => {
          await fill(a as Store, drawOf(made));
          const there = await copyStore(a as Store, b as Store);
          expect(await contentOf(b as Store)).toEqual(await contentOf(a as Store));
          const back = await copyStore(b as Store, again as Store);
          expect(back.digest).toBe(there.digest);
          for (const name of ['letters', 'intent:start:kind-0', 'intent:start:kind-1']) {
            const order = await drained(a as Store, name);
            expect(await drained(b as Store, name)).toEqual(order);
            expect(await drained(again as Store, name)).toEqual(order);
          }
        }),
      );

  for (const to of Object.keys(KINDS))
    it(`leaves a store of ${to} unfinished when it is interrupted, and starts over`, () =>
      withStores(['sqlite', to], async (a, b) => {
        await fill(a as Store, drawOf(made));
        for (const stop of ['records', 'workflows', 'sessions', 'lanes', 'dead']) {
          const onProgress = ({ noun }: { noun: string }) => {
            if (noun === stop) throw new Error('interrupted');
          };
          const copying = copyStore(a as Store, b as Store, { onProgress });
          await expect(copying).rejects.toThrow('interrupted');
          expect(await b?.copies?.isUnfinished(CALL)).toBe(true);
          await a?.records.remove('session', [{ id: 'session-ä-0' }], CALL);
        }
        await copyStore(a as Store, b as Store);
        expect(await contentOf(b as Store)).toEqual(await contentOf(a as Store));
      }));
});
