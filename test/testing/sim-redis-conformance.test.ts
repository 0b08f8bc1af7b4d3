import { describe, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { storeConformance } from '../../testing/conformance/conformance.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { simDialer } from '../support/sim-link.ts';

storeConformance(
  'the store for Redis conforms on a simulated server',
  {
    open: async () => {
      const clock = new FakeClock();
      const random = seededRandom(1);
      const server = new SimRedis({
        wallMs: () => clock.wallMs(),
        nowMs: () => clock.monotonicMs(),
        random,
      });
      const store = await openRedisStoreOn(simDialer(server), {
        quarantine: 'off',
        clock,
        random,
      });
      return {
        store,
        elapse: (ms) => clock.advance(ms),
        dispose: () => store.close(),
      };
    },
  },
  { describe, it },
);
