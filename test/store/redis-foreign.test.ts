import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import type { Store } from '../../src/store/port/store.ts';
import { judge, readInfo, SAME_CLOCK } from '../../src/store/redis/examination.ts';
import { keysOf } from '../../src/store/redis/keys.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { type SimClient, SimRedis } from '../../testing/sim-redis/server.ts';
import { simDialer } from '../support/sim-link.ts';

const CALL = { timeoutMs: 1_000 };
const FENCE = 'fence:{lease:k}';

let clock: FakeClock;
let server: SimRedis;
let client: SimClient;
let store: Store;
beforeEach(async () => {
  clock = new FakeClock();
  const time = { wallMs: () => clock.wallMs(), nowMs: () => clock.monotonicMs() };
  server = new SimRedis({ ...time, random: seededRandom(1), appendOnly: true });
  client = server.connect(() => {});
  const random = seededRandom(2);
  store = await openRedisStoreOn(simDialer(server), { clock, random, quarantine: 'off' });
});
afterEach(async () => {
  const closing = store.close();
  await clock.advance(1_000);
  await closing;
});

const cli = (...args: string[]) => server.execute(client, args);

async function acquire(keys: readonly string[], more: { waitedMs?: number } = {}) {
  const call = { ...CALL, ttlMs: 6_000, inbox: 'me' };
  const requests = keys.map((key) => ({ key: `lease:${key}`, holder: 'me', ...more }));
  const replies = await store.leases.acquire(requests, call);
  return replies.map((reply) =>
    reply.kind === 'failed' ? Reflect.get(reply.error, 'code') : reply.kind,
  );
}

describe('what another program keeps under a name of ours', () => {
  it.each([
    ['text without an expiry', 'precious', []],
    ['text with an expiry', 'precious', ['PX', '60000']],
    ['a number that is too large for a fence', '99999999999999999999', ['PX', '60000']],
  ])(
    'K-03 a refused acquire leaves %s as it was, and its batch is granted',
    async (_, value, expiry) => {
      cli('SET', FENCE, value, ...expiry);
      expect(await acquire(['good', 'k', 'fine'])).toEqual(['granted', 'KEY_FOREIGN', 'granted']);
      expect(cli('GET', FENCE)).toBe(value);
      expect(cli('PTTL', FENCE)).toBe(expiry.length === 0 ? -1 : 60_000);
      expect(cli('EXISTS', 'lease:k')).toBe(0);
    },
  );

  it('K-03 a caller that waits leaves a fence record that is none as it was', async () => {
    cli('SET', 'lease:k', 'other', 'PX', '5000');
    cli('SET', FENCE, 'precious');
    expect(await acquire(['k'], { waitedMs: 0 })).toEqual(['busy']);
    expect(cli('GET', FENCE)).toBe('precious');
  });

  it('K-03 a lease with an expiry beyond all measure is held, and its line does not stay for ever', async () => {
    cli('SET', 'lease:k', 'other', 'PX', '8000000000000000');
    expect(await acquire(['good', 'k'], { waitedMs: 0 })).toEqual(['granted', 'busy']);
    expect(cli('PTTL', 'line:{lease:k}')).toBeGreaterThan(0);
  });

  it('B-03 a record, or a heartbeat, that is too large to be ours fails or stands alone', async () => {
    cli('SET', 'things:large', JSON.stringify('x'.repeat(17 * 2 ** 20)));
    cli('SET', 'things:small', '1');
    const found = await store.records.get('things', ['large', 'small'], CALL);
    expect(found).toMatchObject([{ kind: 'failed', error: { code: 'KEY_FOREIGN' } }, { value: 1 }]);
    await store.members.beat({ id: 'me', attributes: { a: 1 } }, { ...CALL, ttlMs: 60_000 });
    cli('SET', keysOf('').member('me'), JSON.stringify({ a: 'x'.repeat(70_000) }));
    expect(await store.members.list(CALL)).toMatchObject([{ id: 'me', attributes: null }]);
  });
});

describe('the examination of a server', () => {
  const info = (lines: string) => readInfo(`role:master\r\n${lines}`, SAME_CLOCK);
  const persistence = (lines: string) =>
    judge(info(lines), 'single').find(({ subject }) => subject === 'persistence');

  it('K-16 says nothing of the append-only file while the server is loading it', () => {
    expect(persistence('loading:1\r\naof_enabled:0')).toEqual({
      ...{ level: 'ok', subject: 'persistence' },
      fact: 'Redis is loading its data.',
    });
    expect(persistence('loading:0\r\naof_enabled:0')).toMatchObject({ level: 'warn' });
    expect(persistence('loading:0\r\naof_enabled:1')).toMatchObject({ level: 'ok' });
  });
});
