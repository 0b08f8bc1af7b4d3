import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { LOG_KEPT, LOG_PAGE } from '../../src/store/port/log-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { scriptCalls } from './support/script-calls.ts';

const CALL = { timeoutMs: 5_000 };
const DAY_MS = 24 * 3_600_000;
/** How many entries a node of a stream has: trimming takes whole ones. */
const NODE = 100;

let redis: RedisServer;
let store: Store;
beforeAll(async () => {
  redis = await startRedis();
  store = await openRedisStore(redis.url, { quarantine: 'off' });
});
beforeEach(() => redis.cli('DEL', 'holdfast:log'));
afterAll(async () => {
  await store.close();
  await redis.stop();
});

async function newest(): Promise<string> {
  return (await store.log.recall({ ...CALL, most: 1 })).entries[0]?.position ?? '';
}

async function read(after?: string) {
  const page = await store.log.read({ ...CALL, ...(after !== undefined && { after }) });
  return { gap: page.gap, values: page.entries.map(({ value }) => value) };
}

it('a thousand entries are added to the log in one request', async () => {
  const page = Array.from({ length: LOG_PAGE }, (_, n) => ({ n }));
  await store.log.append(page, CALL);
  const before = await scriptCalls(redis);
  await store.log.append(page, CALL);
  expect(await scriptCalls(redis)).toBe(before + 1);
  expect(await redis.cli('XLEN', 'holdfast:log')).toBe(2 * LOG_PAGE);
});

it('the log takes all of what it is given or, if one is no JSON, none', async () => {
  await expect(store.log.append(['a', undefined], CALL)).rejects.toThrow(TypeError);
  await store.log.append(['b'], CALL);
  expect(await read()).toEqual({ gap: false, values: ['b'] });
});

it('the log keeps the last hundred thousand entries or a few more, and tells of the gap before them', async () => {
  await store.log.append(['first'], CALL);
  const first = await newest();
  const page = Array.from({ length: LOG_PAGE }, (_, n) => n);
  for (let i = 0; i <= LOG_KEPT / LOG_PAGE; i++) await store.log.append(page, CALL);
  const kept = Number(await redis.cli('XLEN', 'holdfast:log'));
  expect(kept).toBeGreaterThanOrEqual(LOG_KEPT);
  expect(kept).toBeLessThan(LOG_KEPT + 2 * NODE);
  expect((await read(first)).gap).toBe(true);
  expect((await read(await newest())).gap).toBe(false);
});

it('the log drops what is older than it is told, to the entry, and shows all there is until then', async () => {
  const now = Date.now();
  const number = (now - 2 * DAY_MS) * 1_000;
  const add = (atMs: number, n: number) =>
    redis.cli('XADD', 'holdfast:log', `${atMs}-${number + n}`, 'v', JSON.stringify(n));
  const old = Array.from({ length: 2.5 * NODE }, (_, n) => n);
  for (const n of old) await add(now - DAY_MS - 5_000, n);
  for (const n of [1_000, 1_001]) await add(now - DAY_MS + 60_000, n);
  await store.log.append(['new'], CALL);
  expect((await read()).values).toEqual([...old, 1_000, 1_001, 'new']);
  const trim = () => store.log.trim({ ...CALL, keptMs: DAY_MS });
  expect([await trim(), await trim()]).toEqual([old.length, 0]);
  expect((await read()).values).toEqual([1_000, 1_001, 'new']);
  const after = `${now - DAY_MS - 5_000}-${number}`;
  expect(await read(after)).toEqual({ gap: true, values: [1_000, 1_001, 'new'] });
  expect(await redis.cli('XLEN', 'holdfast:log')).toBe(3);
});

it('a log that is not there is trimmed of nothing, and not made by it', async () => {
  expect(await store.log.trim({ ...CALL, keptMs: DAY_MS })).toBe(0);
  expect(await redis.cli('EXISTS', 'holdfast:log')).toBe(0);
});

it('the log has no gap for who has read everything, also when all of it was dropped since', async () => {
  const after = `${Date.now() - 3 * DAY_MS}-1000`;
  await redis.cli('XADD', 'holdfast:log', after, 'v', '"old"');
  expect(await store.log.trim({ ...CALL, keptMs: DAY_MS })).toBe(1);
  expect(await read(after)).toEqual({ gap: false, values: [] });
  await store.log.append(['new'], CALL);
  expect(await read(after)).toEqual({ gap: false, values: ['new'] });
});

it('the log tells of a gap when all of it was dropped, and goes on', async () => {
  await store.log.append(['a', 'b'], CALL);
  const [first] = (await store.log.read({ ...CALL, most: 1 })).entries;
  const last = await newest();
  await redis.cli('XTRIM', 'holdfast:log', 'MAXLEN', 0);
  expect(await read(first?.position)).toEqual({ gap: true, values: [] });
  expect(await read(last)).toEqual({ gap: false, values: [] });
  await store.log.append(['c'], CALL);
  expect(await read(first?.position)).toEqual({ gap: true, values: ['c'] });
  expect(await read(last)).toEqual({ gap: false, values: ['c'] });
});

it('the log of a Redis that restarted empty has a gap for everybody who read the old one', async () => {
  await using volatile = await startRedis();
  const own = await openRedisStore(volatile.url, { quarantine: 'off' });
  const readOwn = async (after: string) => {
    const page = await own.log.read({ ...CALL, after });
    return { gap: page.gap, values: page.entries.map(({ value }) => value) };
  };
  try {
    await own.log.append(['a', 'b', 'c'], CALL);
    const { entries } = await own.log.read(CALL);
    await volatile.restart({ empty: true });
    const first = entries[0]?.position ?? '';
    const reading = () => readOwn(first).catch(() => undefined);
    const empty = await until(reading, { what: 'the new Redis to be read' });
    expect(empty).toEqual({ gap: true, values: [] });
    await own.log.append(['d', 'e', 'f', 'g'], CALL);
    for (const { position } of entries)
      expect(await readOwn(position)).toEqual({ gap: true, values: ['d', 'e', 'f', 'g'] });
  } finally {
    await own.close();
  }
});

it('a clock that was set back keeps nobody from adding to the log', async () => {
  const ahead = `${Date.now() + 3_600_000}-1000`;
  await redis.cli('XADD', 'holdfast:log', ahead, 'v', '"ahead"');
  await store.log.append(['a'], CALL);
  expect(await read(ahead)).toEqual({ gap: false, values: ['a'] });
});

it('something foreign in the place of the log is reported, and left alone', async () => {
  await redis.cli('SET', 'holdfast:log', 'x');
  const foreign = { code: 'KEY_FOREIGN', key: 'holdfast:log' };
  await expect(store.log.append(['a'], CALL)).rejects.toMatchObject(foreign);
  await expect(store.log.read(CALL)).rejects.toMatchObject(foreign);
  await expect(store.log.recall(CALL)).rejects.toMatchObject(foreign);
  await expect(store.log.trim({ ...CALL, keptMs: 1 })).rejects.toMatchObject(foreign);
  expect(await redis.cli('GET', 'holdfast:log')).toBe('x');
});

it('P-04 an entry of another program has a place in the log, and no value', async () => {
  await store.log.append(['a'], CALL);
  const [first] = (await store.log.read(CALL)).entries;
  await redis.cli('XADD', 'holdfast:log', '*', 'field', 'no JSON');
  await store.log.append(['b'], CALL);
  const { entries } = await store.log.read(CALL);
  expect(entries.map(({ value }) => value)).toEqual(['a', undefined, 'b']);
  for (const { position } of [first, ...entries.slice(0, 2)].flatMap((one) => one ?? []))
    expect(await store.log.read({ ...CALL, after: position })).toMatchObject({ gap: false });
});
