import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import {
  codeOf,
  leaveNothingBehind,
  nextEvent,
  openAt,
  take,
  warmUp,
} from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch, SHORT, SHORT_VALID_MS } from './support/lease-watch.ts';
import { scriptCalls } from './support/script-calls.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
  await warmUp(redis);
});
afterAll(() => redis.stop());

describe.concurrent('a Redis that stands still for a moment', () => {
  it.each([
    { by: 'CLIENT PAUSE', command: ['CLIENT', 'PAUSE', '1500', 'ALL'] },
    { by: 'DEBUG SLEEP', command: ['DEBUG', 'SLEEP', '1.5'] },
  ])(
    'K-05 K-07 ($by) costs no lease inside its deadline, and orphan grants are given back',
    async ({ command }) => {
      await using paused = await startRedis({ args: ['--enable-debug-command', 'yes'] });
      await using holdfast = await openAt(paused);
      const lease = await take(holdfast, 'k', SHORT);
      using watch = new LeaseWatch(lease);
      const uncertain = nextEvent(holdfast, 'lease.uncertain');
      const confirmed = nextEvent(holdfast, 'lease.confirmed');
      const answered = paused.cli(...command);
      const unknown = await until(
        async () => {
          const key = `orphan-${performance.now()}`;
          const asked = holdfast.acquire(key, { ttl: '30s', operationTimeout: '500ms' });
          return (await codeOf(asked)) === 'OUTCOME_UNKNOWN' && key;
        },
        { what: 'an acquire that is caught by the standstill' },
      );
      await uncertain;
      await answered;
      await confirmed;
      expect(lease.isHeld()).toBe(true);
      expect(watch.states).not.toContain('lost');
      // Whether it was carried out late is Redis' business; the key is free long before its 30 s are over.
      const next = await take(holdfast, unknown, { ...SHORT, wait: '10s' });
      expectRising([lease.fence, next.fence]);
    },
  );
});

describe.concurrent('a Redis that refuses', () => {
  it('K-07 SCRIPT FLUSH is not noticed by anybody', async () => {
    await using holdfast = await openAt(redis);
    const doubts: unknown[] = [];
    holdfast.on('lease.uncertain', (facts) => doubts.push(facts));
    const lease = await take(holdfast, 'flushed', SHORT);
    for (let i = 0; i < 2; i++) {
      const renewed = nextEvent(holdfast, 'lease.renewed');
      await redis.cli('SCRIPT', 'FLUSH');
      await renewed;
    }
    await redis.cli('SCRIPT', 'FLUSH');
    expect(await holdfast.acquire('flushed', SHORT)).toMatchObject({ ok: false, reason: 'held' });
    await redis.cli('SCRIPT', 'FLUSH');
    expect(await lease.release()).toEqual({ released: true });
    await redis.cli('SCRIPT', 'FLUSH');
    expect(await holdfast.records.put('flushed', 1)).toEqual({ revision: 1 });
    expect(doubts).toEqual([]);
  });

  it('K-01 K-03 out of memory: acquire is STORE_REFUSED with OOM, renewals go on, and it recovers', async () => {
    await using full = await startRedis();
    await using holdfast = await openAt(full);
    const lease = await take(holdfast, 'k', SHORT);
    using watch = new LeaseWatch(lease);
    await full.cli('CONFIG', 'SET', 'maxmemory', '1');
    const refused = await holdfast.acquire('other', SHORT).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'STORE_REFUSED', operation: 'acquire' });
    expect(String(refused)).toMatch(/OOM.*maxmemory/s);
    for (let i = 0; i < 3; i++) await nextEvent(holdfast, 'lease.renewed');
    expect(await full.cli('EXISTS', 'lease:other', 'fence:{lease:other}')).toBe(0);
    expect(await lease.release()).toEqual({ released: true });
    expect(watch.states.filter((state) => state === 'uncertain' || state === 'lost')).toEqual([]);
    const waiting = take(holdfast, 'k', { ...SHORT, wait: '10s' });
    await full.cli('CONFIG', 'SET', 'maxmemory', '0');
    expectRising([lease.fence, (await waiting).fence]);
  });

  it('K-07 READONLY: a server turned into a replica is refused by type, and used again once it is a primary', async () => {
    await using turned = await startRedis();
    await using holdfast = await openAt(turned);
    const lease = await take(holdfast, 'k', { ttl: '6s' });
    using watch = new LeaseWatch(lease);
    await turned.cli('REPLICAOF', '127.0.0.1', '1');
    expect(await codeOf(holdfast.acquire('other', SHORT))).toBe('STORE_REFUSED');
    const code = await codeOf(holdfast.acquire('other', SHORT));
    expect(['STORE_UNREACHABLE', 'STORE_UNSUITABLE', 'STORE_REFUSED']).toContain(code);
    await turned.cli('REPLICAOF', 'NO', 'ONE');
    const other = await until(() => take(holdfast, 'other', SHORT), {
      what: 'it to be used again',
    });
    await nextEvent(holdfast, 'lease.renewed');
    expect([lease.isHeld(), other.isHeld()]).toEqual([true, true]);
    expect(watch.states).not.toContain('lost');
  });

  it('K-01 K-03 foreign values under a lease key or its fence key fail alone, with KEY_FOREIGN and their name', async () => {
    await using holdfast = await openAt(redis, { prefix: 'foreign:' });
    await redis.cli('LPUSH', 'foreign:lease:list', 'x');
    await redis.cli('HSET', 'foreign:lease:hash', 'x', '1');
    await redis.cli('SET', 'foreign:lease:text', 'somebody else');
    await redis.cli('LPUSH', 'fence:{foreign:lease:fence-list}', 'x');
    await redis.cli('SET', 'fence:{foreign:lease:fence-text}', 'garbage');
    await redis.cli('SET', 'line:{foreign:lease:line-text}', 'garbage');
    const calls = await scriptCalls(redis);
    const keys = [
      'good-1',
      'list',
      'hash',
      'text',
      'fence-list',
      'good-2',
      'fence-text',
      'line-text',
      'good-3',
    ];
    // Long enough that no renewal is counted.
    const options = { ttl: '30s' } as const;
    const outcomes = await Promise.allSettled(keys.map((key) => holdfast.acquire(key, options)));
    // The first at once, and the others together.
    expect(await scriptCalls(redis)).toBe(calls + 2);
    const shown = outcomes.map((outcome, i) => {
      if (outcome.status === 'rejected') {
        expect(outcome.reason.key).toContain(keys[i]);
        return outcome.reason.code;
      }
      const { value } = outcome;
      if (value.ok) return 'granted';
      return value.reason === 'held' ? `held by ${value.holder}` : value.reason;
    });
    expect(shown).toEqual([
      'granted',
      'KEY_FOREIGN',
      'KEY_FOREIGN',
      'held by somebody else',
      'KEY_FOREIGN',
      'granted',
      'KEY_FOREIGN',
      'granted',
      'granted',
    ]);
    // Nothing of it was touched, and no grant was left behind.
    expect(await redis.cli('LRANGE', 'foreign:lease:list', '0', '-1')).toEqual(['x']);
    expect(await redis.cli('EXISTS', 'foreign:lease:fence-list', 'foreign:lease:fence-text')).toBe(
      0,
    );
    expect(await redis.cli('GET', 'fence:{foreign:lease:fence-text}')).toBe('garbage');
    expect(holdfast.held).toBe(4);
  });

  it('K-03 K-05 a held key overwritten with something else is lost or in doubt alone, beside good keys of the same batch', async () => {
    await using holdfast = await openAt(redis, { prefix: 'spoilt:' });
    const [good, list, fence] = await Promise.all(
      ['good', 'list', 'fence'].map((key) => take(holdfast, key, SHORT)),
    );
    if (!good || !list || !fence) throw new Error('not all of them');
    using goodWatch = new LeaseWatch(good);
    using listWatch = new LeaseWatch(list);
    await redis.cli('DEL', 'spoilt:lease:list');
    await redis.cli('LPUSH', 'spoilt:lease:list', 'x');
    await redis.cli('SET', 'fence:{spoilt:lease:fence}', 'garbage');
    await listWatch.neverPassesAfter(hostMs() + SHORT_VALID_MS);
    expect(goodWatch.states).toEqual(['held']);
    expect(fence.isHeld()).toBe(true);
    expect((await fence.release()).released).toBe(false);
    expect(await good.release()).toEqual({ released: true });
  });
});
