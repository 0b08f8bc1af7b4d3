import { expect } from 'vitest';
import type { RedisServer } from '../../support/redis-server.ts';

/** Whoever used it has left nothing behind. */
export async function expectNoKeys(redis: RedisServer): Promise<void> {
  expect(await redis.cli('KEYS', '*')).toEqual([]);
}
