import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAddress } from '../../src/store/redis/client/address.ts';
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

  it('brings certificates from files, for encrypted connections', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'holdfast-'));
    const ca = join(dir, 'ca.pem');
    await writeFile(ca, 'certificate');
    const url = `rediss://host?ca=${encodeURIComponent(ca)}&servername=redis.example`;
    expect(parseAddress(url, { rejectUnauthorized: true }).credentials.tls).toEqual({
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
  ])('%s is refused, without showing it', (url) => {
    const parse = () => parseAddress(url.replace('a', 'user:secret@a'));
    expect(parse).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
    expect(parse).not.toThrow(/secret/);
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
