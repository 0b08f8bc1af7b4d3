import { Cluster } from 'ioredis';
import { expect, it } from 'vitest';
import { type ExecutionError, Redlock, type RedlockClient } from '../../src/redlock/index.ts';
import { startRedis } from '../support/redis-server.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { failure, HOLDFAST } from './support/redlocks.ts';

leaveNothingBehind();

it('a Redis that evicts keys is refused, with what to change', async () => {
  await using redis = await startRedis({
    args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'],
  });
  await using ours = await HOLDFAST.lockOn(redis, { retryCount: 0 });
  const error = await failure<ExecutionError>(ours.redlock.acquire(['r'], 10_000));
  expect(error).toMatchObject({
    code: 'EXECUTION_FAILED',
    cause: { code: 'STORE_UNSUITABLE' },
    message: expect.stringContaining('noeviction'),
  });
});

it('a client for a Cluster is refused, with the address to give instead', async () => {
  const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
  // Its type says so too; whoever writes no types hears it from us.
  const redlock = new Redlock([cluster as unknown as RedlockClient]);
  expect(await failure(redlock.acquire(['r'], 10_000))).toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('redis+cluster://'),
  });
  cluster.disconnect();
});
