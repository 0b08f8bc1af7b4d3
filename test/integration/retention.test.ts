import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { Retention } from '../../src/retention.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

const CALL = { timeoutMs: 5_000 };
/** By then there has been a round. */
const ROUND_MS = 60_000;
const KEPT = { sessions: '30s', deadLetters: '30s', history: '1s' };

let redis: RedisServer;
let postgres: PostgresServer;
const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
beforeAll(async () => {
  redis = await startRedis();
  postgres = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
}, 60_000);
afterAll(async () => {
  await redis?.stop();
  await postgres?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const stores: [string, () => Promise<Store>][] = [
  ['SQLite', () => openSqliteStore(join(folder, 'a.db'))],
  ['Redis', () => openRedisStore(redis.url, { quarantine: 'off' })],
  ['PostgreSQL', () => openPostgresStore(postgres.url)],
];

/** A store that keeps its own time, and one who forgets, whose time the test steps: it is a minute ahead after every round. */
async function setting(open: () => Promise<Store>) {
  const store = await open();
  const clock = new FakeClock({ wallMs: Date.now() });
  const events = new Emitter();
  const forgotten = { sessions: 0, deadLetters: 0, entries: 0 };
  events.on('retention.swept', ({ sessions, deadLetters, entries }) => {
    forgotten.sessions += sessions;
    forgotten.deadLetters += deadLetters;
    forgotten.entries += entries;
  });
  const retention = new Retention({ store, clock, random: seededRandom(1), events }, KEPT);
  retention.start();
  return { store, clock, retention, forgotten };
}

async function endOne({ intents }: Store, id: string): Promise<void> {
  const known = {
    kind: 'live',
    label: id,
    keys: [id],
    client: 'ann',
    body: '{}',
    status: '{}',
    priority: 5,
  };
  await intents.start({ id, tenant: 'acme', ...known }, CALL);
  await intents.stop({ id, tenant: null, client: 'ann', force: true, ending: '{}' }, CALL);
}

async function buryOne({ streams }: Store, stream: string): Promise<void> {
  await streams.append(stream, [{ lane: 'a', priority: 5, value: 1 }], CALL);
  const taking = { ...CALL, consumer: 'c', most: 1, claimMs: 10_000 };
  const held = await streams.consume(stream, taking);
  await streams.bury(
    stream,
    held.map(({ lane, fence }) => ({ lane, fence, reason: 'poison' })),
    CALL,
  );
}

describe.each(stores)('retention on %s', (_, open) => {
  it('forgets sessions that ended, dead letters and history, and leaves what is open', async () => {
    const { store, clock, retention, forgotten } = await setting(open);
    const { intents, streams, log } = store;
    try {
      const known = {
        kind: 'live',
        label: 'l',
        keys: ['open'],
        client: 'ann',
        body: '{}',
        status: '{}',
        priority: 5,
      };
      await intents.start({ id: 'open', tenant: 'acme', ...known }, CALL);
      for (let n = 0; n < 3; n++) await endOne(store, `ended-${n}`);
      for (const stream of ['mails', 'mails', 'bills']) await buryOne(store, stream);
      await log.append(['a', 'b'], CALL);
      expect((await intents.list(CALL)).sessions).toHaveLength(4);
      const all = { sessions: 3, deadLetters: 3, entries: 2 };
      const look = async () => {
        await clock.advance(ROUND_MS);
        return JSON.stringify(forgotten) === JSON.stringify(all);
      };
      await until(look, { what: 'all of it to be forgotten' });
      expect((await intents.list(CALL)).sessions.map(({ id }) => id)).toEqual(['open']);
      for (const stream of ['mails', 'bills'])
        expect((await streams.dead(stream, CALL)).entries).toEqual([]);
      expect((await log.read(CALL)).entries).toEqual([]);
    } finally {
      await retention.stop();
      await store.close();
    }
  });
});
