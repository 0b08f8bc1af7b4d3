import { expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { simDialer } from '../support/sim-link.ts';

it.each(['garbage', '', '-1', '1e3', ' 0', '0 COUNT 1', '18446744073709551616', '9'.repeat(40)])(
  'a walk over leases on Redis begins at the beginning for the cursor %j, which none is',
  async (cursor) => {
    const clock = new FakeClock();
    const [random, wallMs, nowMs] = [
      seededRandom(1),
      () => clock.wallMs(),
      () => clock.monotonicMs(),
    ];
    const asked: string[] = [];
    const server = new SimRedis({ wallMs, nowMs, random });
    const execute = server.execute.bind(server);
    server.execute = (client, args) => {
      if (args[0] === 'SCAN') asked.push(String(args[1]));
      return execute(client, args);
    };
    const store = await openRedisStoreOn(simDialer(server), { quarantine: 'off', clock, random });
    asked.length = 0;
    expect(await store.leases.list('lease:', { timeoutMs: 1_000, cursor })).toEqual({ leases: [] });
    expect(asked).toEqual(['0']);
    await store.close();
  },
);
