import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { Emitter } from '../../src/core/events.ts';
import { systemRandom } from '../../src/core/random.ts';
import { ResultWriter } from '../../src/fleet/poll/result-writer.ts';
import { TargetStore } from '../../src/fleet/targets/target-store.ts';
import { TargetWatch } from '../../src/fleet/targets/target-watch.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { testRuntime } from '../support/test-runtime.ts';
import { until } from '../support/until.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-sessions-'));
let redis: RedisServer;
const opened: Store[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
beforeEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await redis.cli('FLUSHALL');
});
afterAll(async () => {
  for (const store of opened) await store.close();
  await redis.stop();
  rmSync(folder, { recursive: true });
});

async function onRedis(prefix = ''): Promise<Store> {
  const store = await openRedisStore(redis.url, { quarantine: 'off', prefix });
  opened.push(store);
  return store;
}

async function onFile(name: string): Promise<Store> {
  const store = await openSqliteStore(join(folder, name), { quarantine: 'off' });
  opened.push(store);
  return store;
}

/** One process as far as sessions go: it changes them, watches them, and notes what it can not read. */
function office(store: Store) {
  const events = new Emitter();
  const unreadable: { session: string; why: string }[] = [];
  events.on('session.unreadable', (facts) => unreadable.push(facts));
  const sessions = new TargetStore(
    testRuntime({ store, clock: systemClock, random: systemRandom, events }),
  );
  const watch = new TargetWatch(store, 'any', events);
  const look = async () => {
    await watch.discover();
    return [...(await watch.refresh())].sort();
  };
  return { store, sessions, watch, look, unreadable, events };
}

/** How often scripts were called so far. */
async function scriptCalls(): Promise<number> {
  const stats = String(await redis.cli('INFO', 'commandstats'));
  const counts = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

describe('sessions that another program writes to Redis', () => {
  it.each([
    ['without a prefix', ''],
    ['with a prefix', 'app:'],
  ])('FR-011 are found, followed and missed when they are gone, %s', async (_, prefix) => {
    const { look, watch } = office(await onRedis(prefix));
    const key = (id: string) => `${prefix}session:${id}`;
    await redis.cli('SET', key('a'), '{"ID":"a","URL":"http://h/","IsPaused":false}');
    await redis.cli('SET', key('b'), '{"intervalMs":500}');
    expect(await look()).toEqual(['a', 'b']);
    expect(watch.records.get('a')).toMatchObject({ url: 'http://h/', isPaused: false });
    expect(await look()).toEqual([]);
    await redis.cli('SET', key('a'), '{"ID":"a","IsPaused":true}');
    await redis.cli('DEL', key('b'));
    expect(await look()).toEqual(['a', 'b']);
    expect(watch.records.get('a')).toMatchObject({ isPaused: true });
    expect([...watch.records.keys()]).toEqual(['a']);
  });

  it('P-04 are reported and skipped where they make no sense, and stay what they were', async () => {
    const { look, watch, unreadable, sessions } = office(await onRedis());
    await sessions.addAll([{ id: 'a', room: 1 }, { id: 'b' }, { id: 'c' }]);
    await look();
    await redis.cli('SET', 'session:a', '{"paused":"maybe"}');
    await redis.cli('SET', 'session:b', 'not json');
    await redis.cli('DEL', 'session:c');
    await redis.cli('LPUSH', 'session:c', 'a list');
    await redis.cli('SET', 'session:has space', '{}');
    await redis.cli('SET', 'session:fine', '{}');
    expect(await look()).toContain('fine');
    await look();
    expect(unreadable.map(({ session }) => session).sort()).toEqual(
      expect.arrayContaining(['a', 'b', 'has space']),
    );
    expect(new Set(unreadable.map(({ session }) => session)).size).toBe(unreadable.length);
    expect(watch.records.get('a')).toMatchObject({ data: { room: 1 } });
    expect([...watch.records.keys()].sort()).toEqual(['a', 'b', 'c', 'fine']);
    await redis.cli('SET', 'session:b', '{"room":2}');
    expect(await look()).toEqual(['b']);
    expect(watch.records.get('b')).toMatchObject({ data: { room: 2 } });
  });

  it('P-02 are paused in their own words, with the rest as it was', async () => {
    const { sessions } = office(await onRedis());
    await redis.cli('SET', 'session:a', '{"ID":"a","paused":false,"owner":{"team":"x"}}');
    expect(await sessions.pause('a')).toMatchObject({ changed: true });
    const text = String(await redis.cli('GET', 'session:a'));
    expect(JSON.parse(text)).toEqual({ ID: 'a', paused: true, owner: { team: 'x' } });
  });

  it('are not overwritten unseen by a change of ours', async () => {
    const { sessions, store } = office(await onRedis());
    await sessions.add({ id: 'a' });
    const { put } = store.records;
    let isMeddled = false;
    store.records.put = async (...args) => {
      if (!isMeddled) await redis.cli('SET', 'session:a', '{"room":9}');
      isMeddled = true;
      return put.apply(store.records, args);
    };
    await sessions.pause('a');
    const text = String(await redis.cli('GET', 'session:a'));
    expect(JSON.parse(text)).toEqual({ room: 9, isPaused: true });
  });
});

describe('sessions of ours', () => {
  it.each<[string, () => Promise<Store>]>([
    ['Redis', () => onRedis()],
    ['SQLite', () => onFile('shared.db')],
  ])('P-02 are seen by another process as soon as they change, on %s', async (_, open) => {
    const here = office(await open());
    const there = office(await open());
    let hints = 0;
    const stop = await there.watch.listen(() => hints++);
    const seen = async (isRight: () => boolean) => {
      await until(() => hints > 0, { what: 'a hint', every: 1 });
      hints = 0;
      await there.watch.refresh();
      expect(isRight()).toBe(true);
    };
    await here.sessions.add({ id: 'a' });
    await seen(() => there.watch.records.has('a'));
    await here.sessions.pause('a');
    await seen(() => there.watch.records.get('a')?.isPaused === true);
    await here.sessions.resume('a');
    await seen(() => there.watch.records.get('a')?.isPaused === false);
    await here.sessions.remove('a');
    await seen(() => !there.watch.records.has('a'));
    stop();
  });

  it('are ten thousand in a few dozen requests, to add and to list', async () => {
    const { sessions, watch } = office(await onRedis());
    const all = Array.from({ length: 10_000 }, (_, i) => ({ id: `device-${i}`, url: 'http://h/' }));
    const before = await scriptCalls();
    const results = await sessions.addAll(all);
    expect(results.every(({ ok }) => ok)).toBe(true);
    const between = await scriptCalls();
    expect(between - before).toBeLessThanOrEqual(60);
    expect((await watch.refresh()).size).toBe(10_000);
    expect((await scriptCalls()) - between).toBeLessThanOrEqual(70);
  });

  it('are missed where the store has forgotten them and gone on', async () => {
    const { sessions, watch, look, events } = office(await onRedis());
    await sessions.addAll([{ id: 'a' }, { id: 'b' }]);
    await look();
    await redis.cli('FLUSHALL');
    await sessions.add({ id: 'c' });
    events.emit('store.forgot', { store: 'redis', why: 'flushed' });
    expect(await look()).toEqual(['a', 'b', 'c']);
    expect([...watch.records.keys()]).toEqual(['c']);
  });
});

describe('results', () => {
  it('go two hundred in a request to Redis, and a late one of a former owner is refused', async () => {
    const store = await onRedis();
    const events = new Emitter();
    const refused: unknown[] = [];
    events.on('result.refused', (facts) => refused.push(facts));
    const parts = { store, clock: systemClock, random: systemRandom, events };
    const results = new ResultWriter(testRuntime({ ...parts, instanceId: 'new' }));
    const before = await scriptCalls();
    for (let i = 0; i < 2_000; i++) results.record(`d-${i}`, 8, { ok: true, tookMs: 1 });
    await results.close();
    expect((await scriptCalls()) - before).toBeLessThanOrEqual(11);
    const zombie = new ResultWriter(testRuntime({ ...parts, instanceId: 'old' }));
    zombie.record('d-7', 7, { ok: true, tookMs: 1 });
    await zombie.close();
    expect(refused).toEqual([{ target: 'd-7', fence: 7, seen: 8 }]);
    const stored = JSON.parse(String(await redis.cli('GET', 'result:d-7')));
    expect(stored).toMatchObject({ by: 'new', ok: true });
  });
});
