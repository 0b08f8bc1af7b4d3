import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { freePort, startRedis } from '../../support/redis-server.ts';
import { until } from '../../support/until.ts';

describe('a redis-server for a test', () => {
  it('answers at a port of its own and leaves nothing behind', async () => {
    const redis = await startRedis();
    const { pid, dir } = redis;
    expect(redis.url).toBe(`redis://127.0.0.1:${redis.port}`);
    expect(await redis.cli('SET', 'k', 'ünicode')).toBe('OK');
    expect(await redis.cli('GET', 'k')).toBe('ünicode');
    expect(await redis.cli('GET', 'none')).toBeNull();
    expect(await redis.cli('INCR', 'n')).toBe(1);
    expect(await redis.cli('MGET', 'k', 'none', 'n')).toEqual(['ünicode', null, '1']);
    await expect(redis.cli('INCR', 'k')).rejects.toThrow('ERR value is not an integer');

    await redis.stop();
    await redis.stop();
    expect(existsSync(dir)).toBe(false);
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  it('stands still while frozen and carries on afterwards', async () => {
    await using redis = await startRedis();
    await redis.freeze();
    let isAnswered = false;
    const answer = redis.cli('PING').finally(() => {
      isAnswered = true;
    });
    await using other = await startRedis();
    expect(await other.cli('PING')).toBe('PONG');
    expect(isAnswered).toBe(false);
    await redis.thaw();
    expect(await answer).toBe('PONG');
  });

  it('takes another port when the one it was given is taken, as a sentinel too', async () => {
    await using taken = await startRedis();
    const ports = [taken.port, await freePort()];
    const pickPort = async () => ports.shift() ?? 0;
    await using sentinel = await startRedis({
      pickPort,
      sentinel: [['sentinel', 'resolve-hostnames', 'no']],
    });
    expect(sentinel.port).not.toBe(taken.port);
    expect((await sentinel.info('server')).redis_mode).toBe('sentinel');
  });

  it('can be stopped while frozen', async () => {
    const redis = await startRedis();
    await redis.freeze();
    await redis.stop();
    expect(redis.isRunning).toBe(false);
  });

  it('keeps its data across a kill when it writes a log, unless told to forget', async () => {
    await using redis = await startRedis({ appendonly: true });
    const { port, pid } = redis;
    await redis.cli('SET', 'k', 'v');
    await redis.restart();
    expect([redis.port, redis.pid === pid]).toEqual([port, false]);
    expect(await redis.cli('GET', 'k')).toBe('v');
    await redis.restart({ empty: true });
    expect(await redis.cli('GET', 'k')).toBeNull();
  });

  it('is down after a kill until it is restarted', async () => {
    await using redis = await startRedis();
    await redis.kill();
    await expect(redis.cli('PING')).rejects.toThrow('ECONNREFUSED');
    await redis.restart();
    expect(await redis.cli('PING')).toBe('PONG');
  });

  it('follows another one', async () => {
    await using primary = await startRedis();
    await primary.cli('SET', 'before', '1');
    await using replica = await startRedis({ replicaOf: primary });
    expect(await replica.cli('GET', 'before')).toBe('1');
    await primary.cli('SET', 'after', '2');
    await until(async () => (await replica.cli('GET', 'after')) === '2', { what: 'the write' });
  });

  it('says why it did not start', async () => {
    await expect(startRedis({ args: ['--no-such-option', '1'] })).rejects.toThrow('no-such-option');
    await using first = await startRedis();
    await expect(startRedis({ port: first.port })).rejects.toThrow('Address already in use');
  });

  it('starts at the port it is given', async () => {
    const port = await freePort();
    await using redis = await startRedis({ port });
    expect(redis.port).toBe(port);
  });
});
