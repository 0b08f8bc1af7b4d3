import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Store } from '../../src/store/port/store.ts';
import { HISTORY_KEPT, RESULTS_KEPT } from '../../src/store/port/workflow-store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { CALL, Kit } from '../../testing/conformance/kit.ts';
import { begun } from '../../testing/conformance/orchestrator.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

let redis: RedisServer;
let store: Store;
let kit: Kit;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.cli('FLUSHALL');
  store = await openRedisStore(redis.url, { prefix: 'app:', quarantine: 'off' });
  kit = new Kit({ store, elapse: async () => {}, dispose: () => store.close() });
  return () => store.close();
});

it('all keys of workflows and streams share one hash tag, and none but the leases has a TTL', async () => {
  const flow = await begun(kit);
  await flow.emit('x', 'y', 'z');
  await flow.die();
  await flow.finish();
  await flow.handOff();
  const names = (await redis.cli('KEYS', '*')) as string[];
  const own = names.filter((name) => !name.startsWith('app:holdfast:'));
  expect(own.length).toBeGreaterThan(12);
  for (const name of own)
    expect(name).toMatch(/^(fence:)?\{app:holdfast\}:(workflow|stream|holdfast):/);
  const lasting = own.filter((name) => !name.includes('workflow:lease:'));
  for (const name of lasting) expect(await redis.cli('PTTL', name)).toBe(-1);
});

it('leases of workflows are listed with all others, by any beginning of their keys', async () => {
  const flow = await begun(kit);
  await kit.granted(kit.key(), 'h');
  const listed = async (prefix: string) => {
    const found = await store.leases.list(prefix, CALL);
    return found.leases.map(({ key }) => key).filter((key) => !key.startsWith('holdfast'));
  };
  expect((await listed('')).sort()).toEqual([kit.key(), flow.key].sort());
  for (const prefix of ['w', 'workflow:', 'workflow:lease:', flow.key])
    expect(await listed(prefix)).toEqual([flow.key]);
  expect(await listed('lease:')).toEqual([kit.key()]);
});

it('W-13 as many results and entries of history are kept as promised, and no more', async () => {
  const flow = await begun(kit);
  const count = RESULTS_KEPT + 2;
  for (let n = 0; n < count; n += 2) {
    await flow.emit(`x${n}`, `x${n + 1}`);
    for (const _ of [0, 1]) await flow.finish();
  }
  const known = (n: number) => flow.store.resultOf(flow.id, `x${n}`, CALL);
  // What was not read waits, and is known, however much it is.
  expect(await flow.read()).toMatchObject({ unread: count, unresolved: 0, epoch: count });
  expect([await known(0), await known(1)]).toMatchObject([{ actionId: 'x0' }, { actionId: 'x1' }]);
  const read = (await flow.results()).slice(0, 3).map(({ position }) => position);
  await flow.store.markRead(flow.id, { ...flow.ref, read }, CALL);
  expect([await known(0), await known(1)]).toEqual([null, null]);
  expect([await known(2), await known(count - 1)]).toMatchObject([
    { actionId: 'x2' },
    { actionId: `x${count - 1}` },
  ]);
  const { entries, more } = await flow.store.history(flow.id, CALL);
  expect([entries.length, more]).toEqual([HISTORY_KEPT, false]);
  expect(entries.at(-1)?.what).toMatchObject({ kind: 'settled', actionId: `x${count - 1}` });
}, 30_000);

it('W-13 a lane that somebody has deleted keeps nobody from the others', async () => {
  const entry = { priority: 5, value: 1 };
  await store.streams.append(
    's',
    [
      { ...entry, lane: 'a' },
      { ...entry, lane: 'b' },
    ],
    CALL,
  );
  expect(await redis.cli('DEL', '{app:holdfast}:stream:lane:{s}:a')).toBe(1);
  const call = { ...CALL, consumer: 'c', most: 10, claimMs: 60_000 };
  expect(await store.streams.consume('s', call)).toMatchObject([{ lane: 'b', tries: 1 }]);
  await store.streams.append('s', [{ ...entry, lane: 'a' }], CALL);
  expect(await store.streams.consume('s', call)).toMatchObject([{ lane: 'a', tries: 1 }]);
});
