import type { RedisServer } from '../../support/redis-server.ts';

/** How many scripts have been run by clients so far. */
export async function scriptCalls(redis: RedisServer): Promise<number> {
  const stats = await redis.info('commandstats');
  return Number(/calls=(\d+)/.exec(stats.cmdstat_evalsha ?? '')?.[1] ?? 0);
}
