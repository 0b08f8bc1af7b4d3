import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type IntentSession, sessionOf } from '../../../src/intents/intent-session.ts';
import { startStream } from '../../../src/store/port/intent-store.ts';
import type { Store } from '../../../src/store/port/store.ts';
import type { Delivery } from '../../../src/store/port/stream-store.ts';
import { openRedisStore } from '../../../src/store/redis/redis-store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { atExit } from '../../support/process.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';

const START_STREAM = startStream('live');

/** A store that nobody else uses, for the processes of one test. */
export interface Ground {
  /** As `startApi` takes it. */
  readonly at: { readonly url: string; readonly prefix: string };
  /** What the test itself sees it with. */
  readonly store: Store;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface GroundKind {
  readonly name: 'SQLite' | 'Redis';
  make(): Promise<Ground>;
  /** What all of its grounds share. */
  end(): Promise<void>;
}

const CALL = { timeoutMs: 5_000 };
const PAGE = 1_000;
/** Longer than any test: what was taken once is not seen again. */
const CLAIM_MS = 600_000;

export function sqliteGrounds(): GroundKind {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-http-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  atExit(remove);
  let made = 0;
  return {
    name: 'SQLite',
    async make() {
      const path = join(folder, `${++made}.db`);
      const store = await openSqliteStore(path, { quarantine: 'off' });
      return groundOn(store, { url: `sqlite:${path}`, prefix: '' });
    },
    end: async () => remove(),
  };
}

/** One server for all of them, started with the first. */
export function redisGrounds(): GroundKind {
  let starting: Promise<RedisServer> | null = null;
  let made = 0;
  return {
    name: 'Redis',
    async make() {
      starting ??= startRedis();
      const { url } = await starting;
      return redisGround(url, `ground-${++made}:`);
    },
    end: async () => (await starting)?.stop(),
  };
}

export async function redisGround(url: string, prefix = ''): Promise<Ground> {
  return groundOn(await openRedisStore(url, { quarantine: 'off', prefix }), { url, prefix });
}

function groundOn(store: Store, at: Ground['at']): Ground {
  return { at, store, [Symbol.asyncDispose]: () => store.close() };
}

/** The ids of the sessions that wait in the stream of starts, taken out of it: each once for every time it is there. */
export async function takeStarts(store: Store): Promise<string[]> {
  const found = await takeDeliveries(store);
  return found.map(({ value }) => (value as { session: string }).session);
}

async function takeDeliveries(store: Store): Promise<Delivery[]> {
  const call = { ...CALL, consumer: 'the test', most: PAGE, claimMs: CLAIM_MS };
  const taken: Delivery[] = [];
  for (;;) {
    const deliveries = await store.streams.consume(START_STREAM, call);
    if (deliveries.length === 0) return taken;
    taken.push(...deliveries);
    // The next of a lane is given out only after the first: two of one session would show.
    await store.streams.ack(START_STREAM, deliveries, CALL);
  }
}

/** All there are, of all tenants. */
export async function allSessions(store: Store): Promise<IntentSession[]> {
  const sessions: IntentSession[] = [];
  let cursor: string | undefined;
  do {
    const from = cursor === undefined ? {} : { cursor };
    const page = await store.intents.list({ ...CALL, ...from });
    sessions.push(...page.sessions.map(sessionOf));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return sessions;
}
