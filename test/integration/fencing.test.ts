import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FENCE_GUARD_LUA, fenceStaleFrom } from '../../src/index.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';
import { expectRising } from './support/lease-watch.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

describe('writes of two holders, one after the other', () => {
  it('K-11 K-02 to a record: the older is refused with FENCE_STALE, however often it tries, and a comeback with the fence seen as floor passes', async () => {
    await using first = await openAt(redis);
    await using second = await openAt(redis);
    const old = await take(first, 'k');
    await first.records.put('record', { by: 'old' }, { fence: old.fence });
    await old.release();
    const young = await take(second, 'k');
    expectRising([old.fence, young.fence]);
    // The newer one has been granted the lease but has not written yet: the fence is not known to the record.
    expect(await first.records.put('record', { by: 'old' }, { fence: old.fence })).toEqual({
      revision: 2,
    });
    await second.records.put('record', { by: 'young' }, { fence: young.fence });
    for (let i = 0; i < 2; i++) {
      const late = first.records.put('record', { by: 'old' }, { fence: old.fence });
      await expect(late).rejects.toMatchObject({
        code: 'FENCE_STALE',
        fence: old.fence,
        seen: young.fence,
      });
    }
    expect(await second.records.get('record')).toEqual({
      value: { by: 'young' },
      revision: 3,
      fence: young.fence,
    });
    await young.release();
    const floor = young.fence + 10_000_000;
    const back = await take(first, 'k', { fenceFloor: floor });
    expect(back.fence).toBeGreaterThanOrEqual(floor);
    await first.records.put('record', { by: 'back' }, { fence: back.fence });
    await expect(second.records.put('record', 1, { fence: young.fence })).rejects.toMatchObject({
      code: 'FENCE_STALE',
    });
  });

  it('K-11 to a Redis resource of the user’s own, through FENCE_GUARD_LUA and node-redis', async () => {
    await using holdfast = await openAt(redis);
    const client = createClient({ url: redis.url });
    await client.connect();
    const script = `${FENCE_GUARD_LUA}
      local stale = holdfast_guard(KEYS[1], ARGV[1]); if stale then return stale end
      return redis.call('SET', KEYS[2], ARGV[2])`;
    const write = (fence: number, value: string) =>
      client.eval(script, {
        keys: ['{mine}:fence', '{mine}:value'],
        arguments: [String(fence), value],
      });
    try {
      const old = await take(holdfast, 'mine');
      await write(old.fence, 'old');
      await write(old.fence, 'old again');
      await old.release();
      const young = await take(holdfast, 'mine');
      await write(young.fence, 'young');
      const error = await write(old.fence, 'late').catch((thrown: unknown) => thrown);
      expect(fenceStaleFrom(error, 'mine', old.fence)).toMatchObject({
        code: 'FENCE_STALE',
        fence: old.fence,
        seen: young.fence,
      });
      expect(await client.get('{mine}:value')).toBe('young');
    } finally {
      client.destroy();
    }
  });
});
