import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import type { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { simDialer } from './sim-link.ts';

/** A simulated Redis that has been up for long, and can be restarted with the data it had some time ago. */
export async function restartingRedis(clock: FakeClock) {
  const random = seededRandom(1);
  const times = { wallMs: () => clock.wallMs(), nowMs: () => clock.monotonicMs() };
  const redis = new SimRedis({ ...times, random });
  await clock.advance(600_000);
  const dialer = simDialer(redis);
  const broken: ((why: string) => void)[] = [];
  const dial: typeof dialer.dial = (attempt) => {
    broken.push(attempt.onEnd);
    return dialer.dial(attempt);
  };
  /** `own`: the clock of a client whose host may sleep. */
  const connect = (own = clock): Promise<Store> => {
    const events = new Emitter();
    events.on('store.warned', () => {});
    return openRedisStoreOn({ ...dialer, dial }, { clock: own, random, events });
  };
  const restart = (lostMs = 0): void => {
    redis.restart({ lostMs });
    for (const end of broken.splice(0)) end('restarted');
  };
  return { connect, restart };
}
