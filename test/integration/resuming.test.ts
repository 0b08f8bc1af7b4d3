import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMemoryStore, open, type Store } from '../../src/index.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { leaveNothingBehind, take } from './support/holdfasts.ts';

leaveNothingBehind();

const root = mkdtempSync(join(tmpdir(), 'holdfast-'));
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis.stop();
  rmSync(root, { recursive: true });
});

const STORES: [string, () => string | Store][] = [
  ['memory', () => memory],
  ['SQLite', () => `sqlite:${join(root, 'resuming.db')}`],
  ['Redis', () => redis.url],
];
const memory = createMemoryStore();

describe.each(STORES)('a tenure gone on with on %s', (_, storeOf) => {
  const options = { quarantine: 'off', on: { 'store.warned': () => {} } } as const;
  const both = () => Promise.all([open(storeOf(), options), open(storeOf(), options)]);
  const named = { holder: 'session-1', class: 'resource' } as const;

  it('K-01 has the fence it had, and lasts as long as a new one', async () => {
    const [first, second] = await both();
    const lease = await take(first, 'kept', { ...named, ttl: '3s' });
    const resumed = await take(second, 'kept', { ...named, fence: lease.fence });
    expect(resumed).toMatchObject({ holder: 'session-1', fence: lease.fence });
    expect(await second.inspect('kept')).toMatchObject({ holder: 'session-1', fence: lease.fence });
    expect(resumed.remainingMs()).toBeGreaterThan(20_000);
    await resumed.release();
    expect(await second.inspect('kept')).toMatchObject({ kind: 'free' });
    await Promise.all([first.close({ within: 0 }), second.close({ within: 0 })]);
  });

  it('K-01 is a new one, with a new fence, if the key is free by then; so it is if the fence is another', async () => {
    const [first, second] = await both();
    const lease = await take(first, 'freed', named);
    await lease.release();
    const anew = await take(second, 'freed', { ...named, fence: lease.fence });
    expect(anew.fence).toBeGreaterThan(lease.fence);
    const again = await take(first, 'freed', { ...named, fence: lease.fence });
    expect(again.fence).toBeGreaterThan(anew.fence);
    await Promise.all([first.close({ within: 0 }), second.close({ within: 0 })]);
  });

  it('K-01 is refused if another has the key by then, and waited for if that is wanted', async () => {
    const [first, second] = await both();
    const lease = await take(first, 'taken', named);
    await lease.release();
    const other = await take(first, 'taken', { holder: 'session-2' });
    const resuming = { ...named, fence: lease.fence };
    expect(await second.acquire('taken', resuming)).toMatchObject({
      ...{ ok: false, reason: 'held', holder: 'session-2', fence: other.fence },
    });
    const waiting = take(second, 'taken', { ...resuming, wait: '20s' });
    await other.release();
    expect((await waiting).fence).toBeGreaterThan(other.fence);
    await Promise.all([first.close({ within: 0 }), second.close({ within: 0 })]);
  });
});
