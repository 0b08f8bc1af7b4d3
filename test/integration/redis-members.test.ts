import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { scriptCalls } from './support/script-calls.ts';

const CALL = { timeoutMs: 5_000 };
const BEAT = { ...CALL, ttlMs: 60_000 };

let redis: RedisServer;
let store: Store;
const disconnected: unknown[] = [];
beforeAll(async () => {
  redis = await startRedis();
  const events = new Emitter();
  events.on('store.disconnected', (facts) => disconnected.push(facts));
  store = await openRedisStore(redis.url, { quarantine: 'off', events });
});
beforeEach(async () => {
  await redis.cli('FLUSHALL');
});
afterAll(async () => {
  await store.close();
  await redis.stop();
});

const beat = (id: string) => store.members.beat({ id, attributes: { weight: 1 } }, BEAT);

async function names(thorough = false): Promise<string[]> {
  const members = await store.members.list({ ...CALL, thorough });
  return members.map(({ id }) => id).sort();
}

it('FR-007 a beat is one request, and so is the list of members', async () => {
  for (const id of ['a', 'b', 'c']) await beat(id);
  await names();
  const before = await scriptCalls(redis);
  await beat('a');
  expect(await scriptCalls(redis)).toBe(before + 1);
  expect(await names()).toEqual(['a', 'b', 'c']);
  expect(await scriptCalls(redis)).toBe(before + 2);
});

it('FR-007 who has stopped beating is taken out of what is looked for', async () => {
  await beat('a');
  await beat('b');
  await redis.cli('DEL', 'poll:node:a');
  expect(await names()).toEqual(['b']);
  expect(await redis.cli('SMEMBERS', 'poll:nodes')).toEqual(['b']);
});

it('FR-007 a thorough look finds members of another make, and from then on any look does', async () => {
  await beat('ours');
  await redis.cli('SET', 'poll:node:theirs', '1', 'PX', 60_000);
  await redis.cli('SET', 'poll:node:for-ever', '1');
  for (const strange of ['poll:node:', 'poll:node:{x}', 'poll:node:a\nb', 'poll:nodes:x'])
    await redis.cli('SET', strange, '1');
  await redis.cli('LPUSH', 'poll:node:list', '1');
  expect(await names()).toEqual(['ours']);
  expect(await names(true)).toEqual(['for-ever', 'ours', 'theirs']);
  expect(await names()).toEqual(['for-ever', 'ours', 'theirs']);
  const found = await store.members.list(CALL);
  const theirs = found.find(({ id }) => id === 'theirs');
  expect(theirs).toEqual({ id: 'theirs', attributes: null, expiresInMs: expect.any(Number) });
  const forEver = found.find(({ id }) => id === 'for-ever');
  expect(forEver?.expiresInMs).toBe(Number.POSITIVE_INFINITY);
});

it('FR-007 a thorough look has one time limit for all of it, and costs no connection', async () => {
  await beat('a');
  const script = "for i = 1, 100000 do redis.call('SET', 'stuff:' .. i, '1') end";
  await redis.cli('EVAL', script, 0);
  const late = store.members.list({ timeoutMs: 105, thorough: true });
  await expect(late).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
  expect(await names(true)).toEqual(['a']);
  expect(disconnected).toEqual([]);
  expect((await redis.info('commandstats')).cmdstat_keys).toBeUndefined();
});
