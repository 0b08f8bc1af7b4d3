import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Redlock } from '../../src/redlock/index.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { startProgram } from './support/cli.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';

leaveNothingBehind();

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** How many connections the server has from programs. */
const connections = async () => Number((await redis.info('clients')).connected_clients);

describe('a hundred Redlocks of one client', () => {
  it('have the connections of one', async () => {
    const client = new Redis(redis.url);
    await client.ping();
    const before = await connections();
    const options = { quarantine: 'off' } as const;
    const all = Array.from({ length: 100 }, () => new Redlock([client], {}, { ...options }));
    const locks = await Promise.all(all.map((redlock, i) => redlock.acquire([`r${i}`], 5_000)));
    expect((await connections()) - before).toBeLessThanOrEqual(3);
    await Promise.all(locks.map((lock) => lock.release()));
    await all[0]?.quit();
  });
});

describe('an adopted client of ioredis', () => {
  it('leaves no timer behind when its Holdfast is closed', { timeout: 30_000 }, async () => {
    const text = `
      import { Redis } from 'ioredis';
      import { open } from 'holdfast';
      const client = new Redis(${JSON.stringify(redis.url)});
      const holdfast = await open(client, { quarantine: 'off' });
      await holdfast.withLease('k', async () => {});
      await holdfast.close();
      await client.quit();
      // The sockets have told of their end by then.
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      console.log(process.getActiveResourcesInfo().includes('Timeout'));`;
    const args = ['--input-type=module', '--no-warnings', '--eval', text];
    await using running = startProgram(process.execPath, args, { cwd: ROOT });
    expect(await running.end()).toMatchObject({ code: 0, stdout: 'false\n' });
  });
});

/** Locks, ends its client, and leaves the lock behind. Ends when nothing keeps it alive. */
const program = (client: string) => `
  import { Redis } from 'ioredis';
  import { createClient } from 'redis';
  import Redlock from 'holdfast/redlock';
  const url = ${JSON.stringify(redis.url)};
  ${client}
  const redlock = new Redlock([client], {}, { quarantine: 'off' });
  const lock = await redlock.acquire([${JSON.stringify(client)}], 25_000);
  await new Redlock([client], {}, { quarantine: 'off' }).using(['s'], 25_000, async () => {});
  lock.signal.addEventListener('abort', () => console.log('lost'));
  end();`;

describe('a process whose client has ended', () => {
  it.each([
    [
      'ioredis, disconnect',
      'const client = new Redis(url); const end = () => client.disconnect();',
    ],
    ['ioredis, quit', 'const client = new Redis(url); const end = () => client.quit();'],
    [
      'node-redis, close',
      'const client = createClient({ url }); await client.connect(); const end = () => client.close();',
    ],
    [
      'node-redis, destroy',
      'const client = createClient({ url }); await client.connect(); const end = () => client.destroy();',
    ],
  ])('ends by itself, and its lock is over: %s', { timeout: 30_000 }, async (_, client) => {
    const args = ['--input-type=module', '--eval', program(client)];
    await using running = startProgram(process.execPath, args, { cwd: ROOT });
    expect(await running.end()).toMatchObject({ code: 0, stdout: 'lost\n', stderr: '' });
  });
});

describe('a client that comes back', () => {
  it('grants locks again', async () => {
    const client = createClient({ url: redis.url });
    await client.connect();
    const redlock = new Redlock([client], { retryCount: 0 }, { quarantine: 'off' });
    await (await redlock.acquire(['back'], 5_000)).release();
    await client.close();
    await expect(redlock.acquire(['back'], 5_000)).rejects.toThrow(/Connection is closed\.$/);
    await client.connect();
    await (await redlock.acquire(['back'], 5_000)).release();
    await redlock.quit();
  });
});
