import { createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import { type AppOptions, createApp } from '../../src/server/app.ts';
import { type ServeOptions, type Serving, serve } from '../../src/server/serve.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';
import { rawClient, rawRequest } from '../support/raw-client.ts';
import { TOKENS } from '../support/server-world.ts';
import { until } from '../support/until.ts';

const AUTHORIZATION = `Bearer ${TOKENS.admin.token}`;
const START = JSON.stringify({ type: 'stream.start', serviceRef: 'one' });
const JSON_BODY = { Authorization: AUTHORIZATION, 'Content-Type': 'application/json' };
const POST = 'POST /api/v3/intents';
const GET = 'GET /api/v3/sessions';

const running: { serving: Serving; holdfast: Holdfast }[] = [];
afterEach(async () => {
  for (const { serving, holdfast } of running.splice(0)) {
    await serving.close({ within: 0 });
    await holdfast.close();
  }
});

async function served(options: ServeOptions = {}, appOptions: AppOptions = {}) {
  const { store, faults } = faultyStore(createMemoryStore({ clock: systemClock }), systemClock);
  const holdfast = await open(store, { history: 'off' });
  const app = createApp(holdfast, { tokens: Object.values(TOKENS), ...appOptions });
  const serving = await serve(app, options);
  running.push({ serving, holdfast });
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${serving.url}${path}`, { headers: JSON_BODY, ...init });
  /** The same process still serves. */
  const stillServes = async () => {
    expect((await ask('/api/v3/sessions')).status).toBe(200);
  };
  return { app, ask, faults, serving, stillServes };
}

function problemIn(text: string): { status: number; code: string } {
  const [head = '', body = ''] = text.split('\r\n\r\n');
  expect(head).toContain('Content-Type: application/problem+json');
  expect(head).toMatch(/X-Content-Type-Options: nosniff/i);
  return JSON.parse(body);
}

describe('a server', () => {
  it('I-01 accepts an intent over a port that the kernel chose', async () => {
    const { ask, serving } = await served();
    expect(serving.port).toBeGreaterThan(0);
    expect(serving.url).toBe(`http://127.0.0.1:${serving.port}`);
    const accepted = await ask('/api/v3/intents', { method: 'POST', body: START });
    expect(accepted.status).toBe(202);
    const found = await ask(accepted.headers.get('location') ?? '');
    expect(await found.json()).toMatchObject({ kind: 'live', state: 'NEW', serviceRef: 'one' });
  });

  it('I-19 without tokens makes one, and is for this host only', async () => {
    const { app, serving } = await served({}, { tokens: [] });
    expect(serving.madeToken).toMatch(/^[0-9a-f]{48}$/);
    const headers = { Authorization: `Bearer ${serving.madeToken}` };
    const ask = (init = {}) => fetch(`${serving.url}/api/v3/sessions`, init);
    expect((await ask({ headers })).status).toBe(200);
    expect((await ask()).status).toBe(401);
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'example.com', ''])
      await expect(serve(app, { host })).rejects.toThrow(/HOLDFAST_API_TOKEN/);
    const local = await serve(app, { host: 'localhost' });
    await local.close();
  });

  it('with tokens listens wherever it is told', async () => {
    const { serving, stillServes } = await served({ host: '0.0.0.0' });
    expect(serving.madeToken).toBeNull();
    expect(serving.url).toBe(`http://localhost:${serving.port}`);
    await stillServes();
  });

  it('names the address that it cannot listen on', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    const { app } = await served();
    await expect(serve(app, { port })).rejects.toThrow(/EADDRINUSE/);
    await new Promise((resolve) => other.close(resolve));
    await expect(serve(app, { port: 70_000 })).rejects.toThrow(/port/);
    await expect(serve(app, { headersTimeout: '5s', requestTimeout: '1s' })).rejects.toThrow(
      /at least headersTimeout, which is 5000 ms/,
    );
  });

  it('tells who is connected, for those who are let in by their address', async () => {
    const near = await served({}, { lan: { allow: ['127.0.0.0/8'] } });
    await near.stillServes();
    const far = await served({}, { lan: { allow: ['10.0.0.0/8'] } });
    expect((await far.ask('/api/v3/sessions')).status).toBe(403);
  });

  it('I-18 reads the address that a proxy has added, however many headers the client has sent before', async () => {
    const lan = { allow: ['10.0.0.0/8'], trustedProxies: ['127.0.0.1'] };
    const { serving } = await served({}, { lan });
    const asked = async (added: string) => {
      const junk = 'a:\r\n'.repeat(2_500);
      const text = `${GET} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${AUTHORIZATION}\r\nConnection: close\r\nX-Forwarded-For: 10.0.0.5\r\n${junk}X-Forwarded-For: ${added}\r\n\r\n`;
      return (await (await rawClient(serving.port, text)).ended()).slice(0, 12);
    };
    expect(await asked('10.0.0.6')).toBe('HTTP/1.1 200');
    expect(await asked('11.0.0.5')).toBe('HTTP/1.1 403');
  });
});

describe('a slow client', () => {
  it('whose headers do not arrive is cut off, and others are served', async () => {
    const { serving, stillServes } = await served({ headersTimeout: 200, requestTimeout: 400 });
    const clients = await Promise.all([
      rawClient(serving.port),
      rawClient(serving.port, 'GET /api'),
      rawClient(serving.port, `${GET} HTTP/1.1\r\nHost: localhost\r\nX-Slow: `),
    ]);
    const drip = setInterval(() => clients[2]?.write('x'), 20);
    await stillServes();
    const [, begun, dripping] = await Promise.all(clients.map((client) => client.ended()));
    clearInterval(drip);
    for (const text of [begun, dripping])
      expect(problemIn(text ?? '')).toMatchObject({ status: 408, code: 'REQUEST_TIMEOUT' });
    await stillServes();
  });

  it.each([
    ['says how long its body will be', { 'Content-Length': '100' }, ' '],
    ['sends its body in chunks', { 'Transfer-Encoding': 'chunked' }, '1\r\n \r\n'],
  ])('that %s and lets it drip in is told so, and cut off', async (_, length, drop) => {
    const { serving, stillServes } = await served({}, { bodyTimeout: 300 });
    const client = await rawClient(serving.port, rawRequest(POST, { ...JSON_BODY, ...length }));
    const drip = setInterval(() => client.write(drop), 20);
    await stillServes();
    const text = await client.ended();
    clearInterval(drip);
    expect(text).toContain('HTTP/1.1 408');
    expect(text).toContain('"code":"REQUEST_TIMEOUT"');
    await stillServes();
  });

  it('that was refused before its body had come is cut off, too', async () => {
    const { serving, stillServes } = await served();
    const headers = { 'Content-Type': 'application/json', 'Content-Length': '100' };
    const client = await rawClient(serving.port, rawRequest(POST, headers));
    expect(await client.ended()).toContain('HTTP/1.1 401');
    await stillServes();
  });

  it('finds no room where there are too many of them', async () => {
    const { serving } = await served({ maxConnections: 2, headersTimeout: 300 });
    const first = await rawClient(serving.port);
    await rawClient(serving.port);
    const third = await rawClient(serving.port);
    expect(await third.ended()).toBe('');
    await first.ended();
    const client = await until(
      async () => {
        const text = rawRequest(GET, { Authorization: AUTHORIZATION, Connection: 'close' });
        const answer = await (await rawClient(serving.port, text)).ended();
        return answer.startsWith('HTTP/1.1 200');
      },
      { what: 'room for one more' },
    );
    expect(client).toBe(true);
  });
});

describe('what is no proper request', () => {
  it.each([
    ['garbage', 'garbage\r\n\r\n'],
    ['bytes of another protocol', '\u0016\u0003\u0001\u0000\u00a5\u0001\u0000'],
    ['an unknown version', 'GET / HTTP/9.9\r\n\r\n'],
    ['no host', `${GET} HTTP/1.1\r\n\r\n`],
    ['a host that is none', `${GET} HTTP/1.1\r\nHost: a b\r\n\r\n`],
    ['a header without a name', `${GET} HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n`],
    ['a space before the colon', `${GET} HTTP/1.1\r\nHost: localhost\r\nA : x\r\n\r\n`],
    ['two lengths', rawRequest(POST, { ...JSON_BODY, 'Content-Length': '5, 6' })],
    ['a negative length', rawRequest(POST, { ...JSON_BODY, 'Content-Length': '-5' })],
    [
      'a length and chunks',
      rawRequest(POST, { ...JSON_BODY, 'Content-Length': '5', 'Transfer-Encoding': 'chunked' }),
    ],
    [
      'a chunk that is none',
      rawRequest(POST, { ...JSON_BODY, 'Transfer-Encoding': 'chunked' }, 'zz\r\n'),
    ],
    ['too many headers', rawRequest(GET, { 'X-Large': 'x'.repeat(20_000) })],
    ['a backslash in the path', 'GET /api\\v3/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['no path', 'GET sessions HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ])('gets a problem, and its connection is closed: %s', async (_, text) => {
    const { serving, stillServes } = await served();
    const client = await rawClient(serving.port, text);
    const answer = await client.ended();
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('application/problem+json');
    expect(answer).toContain('"code":"INVALID_REQUEST"');
    expect(answer.match(/^HTTP\/1\.1/gm)).toHaveLength(1);
    await stillServes();
  });

  it('I-19 has two tokens in two headers', async () => {
    const { serving } = await served();
    const twice = `Authorization: ${AUTHORIZATION}\r\nAuthorization: ${AUTHORIZATION}\r\n`;
    const text = `${GET} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${twice}\r\n`;
    expect(await (await rawClient(serving.port, text)).ended()).toContain('HTTP/1.1 401');
  });

  it('I-02 has more in its chunks than a body may have', async () => {
    const { serving, stillServes } = await served();
    const headers = { ...JSON_BODY, 'Transfer-Encoding': 'chunked' };
    const client = await rawClient(serving.port, rawRequest(POST, headers));
    const chunk = `1000\r\n${' '.repeat(4_096)}\r\n`;
    client.write(chunk.repeat(5));
    const answer = await client.ended();
    expect(answer).toContain('HTTP/1.1 413');
    expect(answer).toContain('"code":"BODY_TOO_LARGE"');
    await stillServes();
  });

  it('expects what nobody does, and is answered all the same', async () => {
    const { serving } = await served();
    const headers = { Authorization: AUTHORIZATION, Expect: 'wonders', Connection: 'close' };
    const client = await rawClient(serving.port, rawRequest(GET, headers));
    expect(await client.ended()).toContain('HTTP/1.1 200');
  });

  it('asks for a tunnel, and is told that there is none', async () => {
    const { serving, stillServes } = await served();
    const client = await rawClient(serving.port, rawRequest('CONNECT 10.0.0.1:443', {}));
    const text = await client.ended();
    expect(text).toMatch(/^HTTP\/1\.1 405 Method Not Allowed\r\n/);
    expect(problemIn(text)).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED' });
    await stillServes();
  });

  it.each([
    ['1.0', 200],
    ['1.1', 400],
  ])('in HTTP/%s without a Host is answered %i', async (version, status) => {
    const { serving } = await served();
    const close = 'Connection: close\r\n\r\n';
    const client = await rawClient(serving.port, `GET /healthz HTTP/${version}\r\n${close}`);
    expect(await client.ended()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });

  it('goes away in the middle, and nobody minds', async () => {
    const { serving, stillServes } = await served();
    for (const text of ['GET', rawRequest(POST, { ...JSON_BODY, 'Content-Length': '50' }, '{"a')]) {
      const client = await rawClient(serving.port, text);
      client.socket.destroy();
      const reset = await rawClient(serving.port, text);
      reset.socket.resetAndDestroy();
    }
    await stillServes();
  });
});

describe('a server that is closed', () => {
  it('ends idle connections at once, and lets what is being answered be answered', async () => {
    const { faults, serving } = await served();
    const headers = { Authorization: AUTHORIZATION };
    const idle = await rawClient(serving.port, rawRequest(GET, headers));
    await until(() => idle.text().includes('HTTP/1.1 200'), { what: 'an answer' });
    faults.hang = true;
    const asking = await rawClient(serving.port, rawRequest(GET, headers));
    const sent = { ...JSON_BODY, 'Content-Length': String(START.length) };
    const busy = await rawClient(serving.port, rawRequest(POST, sent, START));
    const closed = serving.close({ within: '20s' });
    await idle.ended(1_500);
    // The store does not answer: 503 is what they get, and then their connections are ended, too.
    expect(await asking.ended(10_000)).toContain('HTTP/1.1 503');
    expect(await busy.ended(10_000)).toContain('HTTP/1.1 503');
    await closed;
    await expect(rawClient(serving.port)).rejects.toThrow(/ECONNREFUSED/);
  });

  it('cuts what is not answered in time', async () => {
    const { faults, serving } = await served();
    faults.hang = true;
    const client = await rawClient(serving.port, rawRequest(GET, { Authorization: AUTHORIZATION }));
    await until(() => client.socket.bytesWritten > 0, { what: 'the request to be sent' });
    const startedAt = performance.now();
    await serving.close({ within: 100 });
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    expect(await client.ended()).toBe('');
    await serving.close();
  });
});
