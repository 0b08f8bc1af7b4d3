import { expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { Dialer } from '../../src/store/redis/client/link.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { simDialer } from '../support/sim-link.ts';

it('K-16 a clock that is off, by more at every connection, is warned about once', async () => {
  const clock = new FakeClock();
  let offsetMs = 5_000;
  const time = { wallMs: () => clock.wallMs() + offsetMs, nowMs: () => clock.monotonicMs() };
  const server = new SimRedis({ ...time, random: seededRandom(1), appendOnly: true });
  const inner = simDialer(server);
  const ends: ((why: string) => void)[] = [];
  const dialer: Dialer = {
    name: inner.name,
    dial: (attempt) => {
      ends.push(attempt.onEnd);
      return inner.dial(attempt);
    },
  };
  const events = new Emitter();
  const findings: string[] = [];
  events.on('store.warned', ({ finding }) => findings.push(finding));
  const store = await openRedisStoreOn(dialer, { clock, random: seededRandom(2), events });
  for (let i = 0; i < 3; i++) {
    offsetMs += 1_000;
    ends.at(-1)?.('cut');
    await clock.advance(2_000);
  }
  expect(ends).toHaveLength(4);
  expect(findings).toEqual(['Its clock is 5000 ms ahead of ours.']);
  const closing = store.close();
  await clock.advance(1_000);
  await closing;
});
