import { expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { Dialer } from '../../src/store/redis/client/link.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { simDialer } from '../support/sim-link.ts';

it('K-10 a server that is away is tried over one connection, and listened to again when it is back', async () => {
  const clock = new FakeClock();
  const time = { wallMs: () => clock.wallMs(), nowMs: () => clock.monotonicMs() };
  const server = new SimRedis({ ...time, random: seededRandom(1), appendOnly: true });
  const inner = simDialer(server);
  let ends: ((why: string) => void)[] = [];
  let dials = 0;
  let isAway = false;
  const dialer: Dialer = {
    name: inner.name,
    dial: (attempt) => {
      dials++;
      if (isAway) return Promise.reject(new Error('connection refused'));
      ends.push(attempt.onEnd);
      return inner.dial(attempt);
    },
  };
  const random = seededRandom(2);
  const store = await openRedisStoreOn(dialer, { clock, random, events: new Emitter() });
  const heard: string[] = [];
  let gaps = 0;
  await store.signals.subscribe('topic', {
    onMessage: (text) => heard.push(text),
    onGap: () => gaps++,
  });
  expect(dials).toBe(2);
  isAway = true;
  for (const end of ends) end('cut');
  ends = [];
  await clock.advance(60_000);
  const attempts = dials - 2;
  // Pauses grow to a second at most, and are shortened by chance; two connections would have made twice as many attempts.
  expect(attempts).toBeGreaterThan(50);
  expect(attempts).toBeLessThan(100);
  isAway = false;
  await clock.advance(3_000);
  expect(ends).toHaveLength(2);
  expect(gaps).toBe(1);
  await store.signals.publish('topic', 'hello');
  await clock.advance(1);
  expect(heard).toEqual(['hello']);
  const closing = store.close();
  await clock.advance(1_000);
  await closing;
});
