import { createRequire } from 'node:module';
import { Redis } from 'ioredis';
import * as ours from '../../../src/redlock/index.ts';
import type { RedisServer } from '../../support/redis-server.ts';

type Surface = Pick<typeof ours, 'default' | 'ExecutionError' | 'ResourceLockedError'>;

/** redlock itself and what is to stand in for it. */
export interface Contender {
  readonly name: string;
  readonly surface: Surface;
  /** Where a resource lies in Redis. */
  keyOf(resource: string): string;
  /** Locks on a server, with a client of their own; ends it too. */
  lockOn(redis: RedisServer, settings?: Partial<ours.Settings>): Promise<Locking>;
}

export interface Locking extends AsyncDisposable {
  readonly redlock: ours.Redlock;
  readonly client: Redis;
  readonly errors: Error[];
}

/** Its types are for another kind of module resolution; what we ask of both is what ours declare. */
const theirs = createRequire(import.meta.url)('redlock') as Surface;

function contender(name: string, surface: Surface, keyOf: (resource: string) => string): Contender {
  const lockOn = async (redis: RedisServer, settings: Partial<ours.Settings> = {}) => {
    const client = new Redis(redis.url);
    client.on('error', () => {});
    // redlock counts a lock's time from before the client is connected.
    await client.ping();
    // redlock would take scripts here, and does not know this one.
    const redlock = new surface.default([client], settings, { quarantine: 'off' });
    const errors: Error[] = [];
    redlock.on('error', (error: Error) => errors.push(error));
    const end = async () => {
      // Not waiting for answers: a server that a test has stopped gives none.
      client.disconnect();
      if (surface === ours) await redlock.quit().catch(() => {});
    };
    return { redlock, client, errors, [Symbol.asyncDispose]: end };
  };
  return { name, surface, keyOf, lockOn };
}

export const REDLOCK = contender('redlock', theirs, (resource) => resource);
export const HOLDFAST = contender('holdfast/redlock', ours, (resource) => `lease:${resource}`);

/** What it is rejected with. Never rejects itself. */
export function failure<E extends Error>(promise: Promise<unknown>): Promise<E> {
  return promise.then(
    (value) => {
      throw new Error(`it resolved with ${String(value)}`);
    },
    (error: E) => error,
  );
}
