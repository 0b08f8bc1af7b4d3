import { describe, expect, it } from 'vitest';
import { checkClient, isLoopback, type LanSettings, parseLan } from '../../src/server/http/lan.ts';
import { serverWorld } from '../support/server-world.ts';

const LAN: LanSettings = {
  allow: ['10.0.0.0/8', '192.168.1.7', 'fd00::/8'],
  trustedProxies: ['172.16.0.1', '172.16.0.2', 'fd99::1'],
};
const guard = parseLan(LAN);

function passes(peer: string | undefined, forwardedFor: string | null): boolean {
  try {
    checkClient(guard, peer, forwardedFor);
    return true;
  } catch {
    return false;
  }
}

describe('a client that connects by itself', () => {
  it.each([
    ['10.0.0.5', true],
    ['10.255.255.255', true],
    ['192.168.1.7', true],
    ['192.168.1.8', false],
    ['11.0.0.1', false],
    ['fd00::5', true],
    ['fe80::5', false],
    ['::ffff:10.0.0.5', true],
    ['::ffff:a00:5', true],
    ['::FFFF:11.0.0.1', false],
    ['127.0.0.1', false],
    [undefined, false],
    ['', false],
    ['localhost', false],
  ])('I-18 from %s: served is %s', (peer, served) => {
    expect(passes(peer, null)).toBe(served);
  });

  it('I-18 is judged by its own address, whatever it says of others', () => {
    expect(passes('11.0.0.1', '10.0.0.5')).toBe(false);
    expect(passes('10.0.0.5', '11.0.0.1')).toBe(true);
    expect(passes('10.0.0.5', 'garbage, 1.2.3.4.5')).toBe(true);
  });
});

describe('a client behind a proxy that is trusted', () => {
  it.each([
    ['one address', '10.0.0.5', true],
    ['an address outside', '11.0.0.5', false],
    ['what the client itself had sent, to the left', '10.0.0.5, 11.0.0.5', false],
    ['the same the other way round', '11.0.0.5, 10.0.0.5', true],
    ['two proxies', '10.0.0.5, 172.16.0.2', true],
    ['two proxies, and a client outside', '10.0.0.5,11.0.0.5,172.16.0.2, 172.16.0.1', false],
    ['a proxy that is not trusted', '10.0.0.5, 172.16.0.3', false],
    ['only proxies: the first of them asks', '172.16.0.2, 172.16.0.1', false],
    ['IPv4 within IPv6', '::ffff:10.0.0.5', true],
    ['IPv4 within IPv6, in hexadecimal', '::ffff:a00:5', true],
    ['spaces and tabs', ' \t10.0.0.5\t ', true],
    ['IPv6', 'fd00:0:0::5, fd99:0:0:0:0:0:0:1', true],
  ])('I-18 with %s', (_, forwardedFor, served) => {
    expect(passes('172.16.0.1', forwardedFor)).toBe(served);
    expect(passes('::ffff:172.16.0.1', forwardedFor)).toBe(served);
    expect(passes('fd99::1', forwardedFor)).toBe(served);
  });

  it.each([
    ['nothing', null],
    ['an empty header', ''],
    ['blanks', '  '],
    ['only a comma', ','],
    ['an empty place', '10.0.0.5,,10.0.0.6'],
    ['a comma at the end', '10.0.0.5,'],
    ['a number', '2130706433'],
    ['a hexadecimal number', '0x7f.1'],
    ['a short form', '127.1'],
    ['an octal number', '010.0.0.5'],
    ['a port', '10.0.0.5:80'],
    ['an IPv6 address in brackets', '[fd00::5]'],
    ['brackets and a port', '[fd00::5]:80'],
    ['a zone', 'fd00::5%eth0'],
    ['fullwidth digits', '１０.0.0.5'],
    ['a name', 'localhost'],
    ['the word unknown', 'unknown'],
    ['quotes', '"10.0.0.5"'],
    ['a network', '10.0.0.0/8'],
    ['a blank that is no space', '\u00a010.0.0.5'],
    ['a zero byte', '10.0.0.5\u0000'],
    ['garbage to the left of what is fine', 'garbage, 10.0.0.5'],
    ['500 hops', Array.from({ length: 500 }, () => '10.0.0.5').join(',')],
    ['500 hops that are proxies', Array.from({ length: 500 }, () => '172.16.0.1').join(',')],
    ['a megabyte', ','.repeat(1_000_000)],
  ])('I-18 with %s is refused', (_, forwardedFor) => {
    expect(passes('172.16.0.1', forwardedFor)).toBe(false);
  });
});

describe('the guard as it is configured', () => {
  it.each([
    ['10.0.0.0/33'],
    ['10.0.0.0/-1'],
    ['10.0.0.0/'],
    ['10.0.0.0/8/8'],
    ['10.0.0/8'],
    ['fd00::/129'],
    ['::ffff:10.0.0.0/104'],
    ['lan'],
    [''],
    ['*'],
    [7],
  ])('takes no network such as %s', (network) => {
    const allow = [network as string];
    expect(() => parseLan({ allow })).toThrow(/lan\.allow\[0\]/);
    const allowed = { allow: ['10.0.0.0/8'] };
    expect(() => parseLan({ ...allowed, trustedProxies: allow })).toThrow(/trustedProxies\[0/);
  });

  it('names at least one network, and nothing it does not know', () => {
    expect(() => parseLan({ allow: [] })).toThrow(/at least one network/);
    expect(() => parseLan({ allow: '10.0.0.0/8' as never })).toThrow(/list of networks/);
    expect(() => parseLan({ ...LAN, proxies: [] } as never)).toThrow(/lan\.proxies/);
  });

  it('tells what only this host reaches', () => {
    const near = ['127.0.0.1', '127.9.9.9', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1'];
    expect(near.filter((address) => !isLoopback(address))).toEqual([]);
    const far = ['0.0.0.0', '::', '10.0.0.1', 'localhost', '128.0.0.1', 'fe80::1'];
    expect(far.filter(isLoopback)).toEqual([]);
  });
});

describe('the app', () => {
  it('I-18 serves everybody unless it is told otherwise', async () => {
    const { ask } = await serverWorld();
    expect((await ask('GET', '/api/v3/sessions', { peer: '11.0.0.1' })).status).toBe(200);
  });

  it('I-18 refuses before it looks for the route or the token, and asks no store', async () => {
    const { ask, calls } = await serverWorld({ lan: LAN });
    for (const path of ['/api/v3/sessions', '/nope']) {
      const got = await ask('GET', path, { peer: '11.0.0.1', token: null });
      expect(got).toMatchObject({ status: 403, json: { code: 'OUTSIDE_LAN' } });
    }
    expect(calls).toEqual([]);
    expect((await ask('GET', '/api/v3/sessions', { peer: '10.0.0.5' })).status).toBe(200);
    expect((await ask('GET', '/api/v3/sessions', { peer: '10.0.0.5', token: null })).status).toBe(
      401,
    );
  });

  it('I-18 reads every line of the header', async () => {
    const { ask } = await serverWorld({ lan: LAN });
    const asked = async (...lines: string[]) => {
      const headers = new Headers();
      for (const line of lines) headers.append('X-Forwarded-For', line);
      return (await ask('GET', '/api/v3/sessions', { peer: '172.16.0.1', headers })).status;
    };
    expect(await asked('10.0.0.5')).toBe(200);
    expect(await asked('11.0.0.5', '10.0.0.5')).toBe(200);
    expect(await asked('10.0.0.5', '11.0.0.5')).toBe(403);
    expect(await asked('10.0.0.5', '')).toBe(403);
  });

  it('I-18 refuses where it can not tell who is connected', async () => {
    const { app } = await serverWorld({ lan: LAN });
    const response = await app.fetch(new Request('http://localhost/api/v3/sessions'));
    expect(response.status).toBe(403);
  });

  it('answers only under its own names where these are given', async () => {
    const { app, calls } = await serverWorld({ hosts: ['api.example.com'] });
    const status = async (host: string) =>
      (await app.fetch(new Request(`http://${host}/api/v3/sessions`))).status;
    for (const host of [
      'api.example.com',
      'API.example.com:81',
      'localhost',
      '10.1.2.3',
      '[::1]:5',
    ])
      expect(await status(host)).toBe(401);
    for (const host of ['evil.example', 'api.example.com.evil.example', 'localhost.evil.example'])
      expect(await status(host)).toBe(403);
    expect(calls).toEqual([]);
    await expect(serverWorld({ hosts: ['a:80'] })).rejects.toThrow(/hosts\[0\]/);
  });
});
