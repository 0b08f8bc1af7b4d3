import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { open } from '../../src/holdfast.ts';
import { parseAddress } from '../../src/store/redis/client/address.ts';
import { reachedAt, sharedLogin } from '../../src/store/redis/client/link-options.ts';
import { dialSocket } from '../../src/store/redis/client/socket-connection.ts';
import { slotOf } from '../../src/store/redis/topology/slots.ts';

describe('a Redis URL', () => {
  it('names one server, by default on port 6379', () => {
    expect(parseAddress('redis://localhost')).toMatchObject({
      kind: 'single',
      endpoints: [{ host: 'localhost', port: 6379 }],
      credentials: {},
      name: 'redis://localhost',
    });
    expect(parseAddress('redis://[::1]:7000/2')).toMatchObject({
      endpoints: [{ host: '::1', port: 7000 }],
      credentials: { database: 2 },
    });
  });

  it('carries user and password, which its name does not', () => {
    const { credentials, name } = parseAddress('redis://me:p%40ss%3Aword@host:1/0');
    expect(credentials).toEqual({ username: 'me', password: 'p@ss:word', database: 0 });
    expect(name).toBe('redis://host:1/0');
    expect(parseAddress('redis://:secret@host').credentials).toEqual({ password: 'secret' });
  });

  it('names sentinels and what they call the primary', () => {
    const url =
      'redis+sentinel://u:p@a:1,b,c:3/mymaster/1?sentinelUsername=s&sentinelPassword=t%20u';
    expect(parseAddress(url)).toMatchObject({
      kind: 'sentinel',
      endpoints: [
        { host: 'a', port: 1 },
        { host: 'b', port: 26379 },
        { host: 'c', port: 3 },
      ],
      primaryName: 'mymaster',
      credentials: { username: 'u', password: 'p', database: 1 },
      sentinelCredentials: { username: 's', password: 't u' },
      name: 'redis+sentinel://a:1,b,c:3/mymaster/1',
    });
  });

  it('names some servers of a Cluster', () => {
    const { kind, endpoints } = parseAddress('redis+cluster://a:1,b:2');
    expect([kind, endpoints.length]).toEqual(['cluster', 2]);
  });

  it('names a socket of this host, as node-redis, redis-py and redis-rs write it', () => {
    const url = 'redis+unix://me:p%40ss@/run/redis%20a.sock?db=2';
    expect(parseAddress(url)).toMatchObject({
      kind: 'unix',
      endpoints: [],
      socketPath: '/run/redis a.sock',
      credentials: { username: 'me', password: 'p@ss', database: 2 },
      name: 'redis+unix:///run/redis%20a.sock?db=2',
    });
    expect(parseAddress('unix:///run/redis.sock')).toMatchObject({
      socketPath: '/run/redis.sock',
      credentials: {},
      name: 'redis+unix:///run/redis.sock',
    });
  });

  it('brings certificates from files, for encrypted connections', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'holdfast-'));
    const ca = join(dir, 'ca.pem');
    await writeFile(ca, 'certificate');
    const url = `rediss://host?ca=${encodeURIComponent(ca)}&servername=redis.example`;
    expect(parseAddress(url, { tls: { rejectUnauthorized: true } }).credentials.tls).toEqual({
      ca: Buffer.from('certificate'),
      servername: 'redis.example',
      rejectUnauthorized: true,
    });
    await rm(dir, { recursive: true });
    expect(() => parseAddress(url)).toThrow(/ENOENT/);
  });

  it.each([
    'redis://',
    'redis://a:0',
    'redis://a:70000',
    'redis://a,b',
    'redis://a/x',
    'redis://a/1/2',
    'redis://a b',
    'redis://a?tls=yes',
    'redis://u:%zz@a',
    'redis+sentinel://a:1',
    'redis+cluster://a/1',
    'redis:a',
    'redis+unix://a/run/redis.sock',
    'redis+unix://',
    'redis+unix:///',
    'unix:///a?db=x',
    'unix:///a?ca=b',
    'unix:///a,b?db=1&db=x',
  ])('%s is refused, without showing it', (url) => {
    const parse = () => parseAddress(url.replace('a', 'user:secret@a'));
    expect(parse).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
    expect(parse).not.toThrow(/secret/);
  });
});

describe('the options of a link', () => {
  const credentials = () => ({ password: 'secret' });
  it.each([
    ['redis://u:p@a', { credentials }, 'redis.credentials', /the URL has a password, too/],
    ['redis://a', { sentinelCredentials: credentials }, 'redis.sentinelCredentials', /sentinel:/],
    ['redis://a', { natMap: {} }, 'redis.natMap', /it is for redis\+sentinel/],
    ['unix:///a', { natMap: () => null }, 'redis.natMap', /it is for redis\+sentinel/],
    ['redis+cluster://a', { natMap: { b: 1 } as object }, 'redis.natMap', /host:port/],
    ['redis+cluster://a', { nat: {} } as object, 'redis.nat', /Known options: credentials/],
  ])('K-16 %s with %o: refused, by its name', (url, link, field, rule) => {
    const parse = () => parseAddress(url, { link });
    expect(parse).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', field }));
    expect(parse).toThrow(rule);
    expect(parse).not.toThrow(/secret/);
  });

  it('K-16 are refused beside a store that is no Redis, and beside a client', async () => {
    const beside = (store: string) => open(store, { redis: { credentials } });
    const field = { code: 'CONFIG_INVALID', field: 'redis' };
    await expect(beside('memory:')).rejects.toMatchObject(field);
    const client = new Redis({ lazyConnect: true });
    await expect(open(client, { redis: { credentials } })).rejects.toMatchObject(field);
    client.disconnect();
  });

  it('an address that the map lacks is used as it is; what a function answers is checked', () => {
    const here = { host: 'here', port: 1 };
    expect(reachedAt('10.0.0.1:7000', { '10.0.0.1:7000': here })).toEqual(here);
    expect(reachedAt('::1:7000', {})).toEqual({ host: '::1', port: 7000 });
    expect(reachedAt('constructor:1', {})).toEqual({ host: 'constructor', port: 1 });
    expect(reachedAt('a:1', () => null)).toEqual({ host: 'a', port: 1 });
    const wrong = () => reachedAt('a:1', (() => 'b:2') as unknown as () => null);
    expect(wrong).toThrow(/redis\.natMap is "b:2": for a:1 it must be \{ host/);
    const failing = () =>
      reachedAt('a:1', () => {
        throw new Error('no table');
      });
    expect(failing).toThrow(/it failed for a:1: no table/);
  });

  it('connections that are made at the same time share one call for user and password', async () => {
    let calls = 0;
    const login = sharedLogin(async () => ({ password: `p${++calls}` }), 'credentials');
    expect(await Promise.all([login(), login()])).toEqual([{ password: 'p1' }, { password: 'p1' }]);
    expect(await login()).toEqual({ password: 'p2' });
    const empty = sharedLogin((() => ({ secret: 'x' })) as unknown as () => never, 'credentials');
    await expect(empty()).rejects.toThrow(/redis\.credentials\(\) is .*its result must be/);
  });

  it('an attempt to connect that ends does not wait for user and password', async () => {
    const attempt = new AbortController();
    const never = () => new Promise<never>(() => {});
    const { signal } = attempt;
    const at = { path: '/nowhere.sock' };
    const dialing = dialSocket(at, { ask: never }, { timeoutMs: 1, signal, onEnd: () => {} });
    attempt.abort(new Error('over'));
    await expect(dialing).rejects.toThrow('over');
  });
});

describe('the slot of a key', () => {
  it('is the one Redis computes', () => {
    expect(slotOf('123456789')).toBe(12_739);
    expect(slotOf('foo')).toBe(12_182);
    expect(slotOf('lease:ä')).toBe(slotOf('x{lease:ä}y'));
  });

  it('is that of the first hash tag that is not empty', () => {
    expect(slotOf('{user1000}.following')).toBe(slotOf('user1000'));
    expect(slotOf('foo{{bar}}zap')).toBe(slotOf('{bar'));
    expect(slotOf('foo{}{bar}')).not.toBe(slotOf('bar'));
  });
});
