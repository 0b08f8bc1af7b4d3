import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { open } from '../../src/holdfast.ts';
import { directOf } from '../../src/server/http/direct.ts';
import { createApp, type HoldfastApp, type Serving, serve } from '../../src/server/index.ts';

const TOKEN = 'the-token-of-the-tests';
const PATH = '/api/v3/intents';
const START = JSON.stringify({ type: 'stream.start', serviceRef: 'channel-7' });
const USUAL = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  readonly body?: string | Buffer;
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: Record<string, unknown>;
  readonly body: string;
}

let direct: Serving;
let overHono: Serving;
let taken = 0;
let app: HoldfastApp;

/** A program that wraps `fetch`. */
const wrapped: HoldfastApp['fetch'] = (...args) => {
  taken += 1;
  return app.fetch(...args);
};

beforeAll(async () => {
  const holdfast = await open('memory:');
  const tokens = [
    { id: 'all', token: TOKEN, scope: 'v3:admin' as const },
    { id: 'reader', token: 'a-token-that-only-reads', scope: 'v3:read' as const },
  ];
  app = createApp(holdfast, { tokens, limits: { inFlight: 100 }, onError: () => {} });
  direct = await serve(app);
  overHono = await serve({ ...app, fetch: wrapped });
});

afterAll(async () => {
  await Promise.all([direct.close(), overHono.close()]);
});

function ask({ port }: Serving, sent: Sent, agent: Agent | false = false): Promise<Answer> {
  const { method = 'POST', path = PATH, headers = {}, body = START } = sent;
  const length = { 'content-length': String(Buffer.byteLength(body)) };
  const all = Object.entries({ host: 'a.example', ...length, ...USUAL, ...headers });
  const given = Object.fromEntries(all.filter(([, value]) => value !== undefined));
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', method, path, headers: given, agent };
    const asking = request(options as object, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => {
        const { date: _, 'x-request-id': id, ...rest } = response.headers;
        const headers = { ...rest, hasId: /^[0-9a-f]{16}$/.test(String(id)) };
        resolve({ status: response.statusCode, headers, body: text });
      });
    });
    asking.on('error', reject);
    asking.end(body);
  });
}

const CASES: Readonly<Record<string, Sent>> = {
  'a start': {},
  'a start of another client': { body: START.replace('}', ',"clientId":"other"}') },
  'a stop of no session': { body: '{"type":"stream.stop","sessionId":"none"}' },
  'no token': { headers: { authorization: undefined } },
  'a wrong token': { headers: { authorization: 'Bearer another-token-of-the-tests' } },
  'two tokens': { headers: { authorization: [USUAL.authorization, USUAL.authorization] } },
  'no bearer': { headers: { authorization: `Basic ${TOKEN}` } },
  'a scope that is too small': { headers: { authorization: 'Bearer a-token-that-only-reads' } },
  'no media type': { headers: { 'content-type': undefined } },
  'another media type': { headers: { 'content-type': 'text/plain' } },
  'a charset': { headers: { 'content-type': 'application/json; charset=utf-8' } },
  'a compressed body': { headers: { 'content-encoding': 'gzip' } },
  'a body of unknown length': {
    headers: { 'content-length': undefined, 'transfer-encoding': 'chunked' },
  },
  'no body': { body: '' },
  'no JSON': { body: '{' },
  'a list': { body: '[]' },
  'a field twice': { body: '{"type":"stream.start","type":"stream.start","serviceRef":"a"}' },
  'a reserved name': { body: '{"type":"stream.start","__proto__":{},"serviceRef":"a"}' },
  'an unknown field': { body: START.replace('}', ',"more":1}') },
  'a byte order mark': { body: `\ufeff${START}` },
  'bytes that are no UTF-8': { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) },
  'a body that is too large': { body: `{"type":"${'x'.repeat(20_000)}"}` },
  'a body of the largest size': { body: `{"type":"${'x'.repeat(16_384 - 11)}"}` },
  'a query': { path: `${PATH}?a=1` },
  'a path with a slash behind it': { path: `${PATH}/` },
  'a method that the path has not': { method: 'PATCH' },
  'its own origin': { headers: { origin: 'http://a.example' } },
  'a foreign origin': { headers: { origin: 'http://b.example' } },
  'an origin of another port': { headers: { origin: 'http://a.example:81' } },
  'an origin that is null': { headers: { origin: 'null' } },
  'a host in capitals': { headers: { host: 'A.Example', origin: 'http://a.example' } },
  'a host with a default port': { headers: { host: 'a.example:80' } },
  'a host that is none': { headers: { host: 'a b' } },
};

it.each(Object.keys(CASES))('I-03 is answered the same with and without Hono: %s', async (name) => {
  const sent = CASES[name] ?? {};
  // The second start of a client finds the session of the first.
  await ask(direct, sent);
  const before = taken;
  const [one, other] = [await ask(direct, sent), await ask(overHono, sent)];
  expect(one).toEqual(other);
  expect(taken).toBe(name === 'a host that is none' ? before : before + 1);
});

it('I-03 the next request of a connection is answered after one that was refused', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const refused = await ask(direct, { body: '{"type":"stream.start"}' }, agent);
  expect(refused.status).toBe(400);
  expect((await ask(direct, {}, agent)).status).toBe(202);
  agent.destroy();
});

it('a program that wraps fetch has every request pass there', () => {
  expect(directOf(app.fetch)).not.toBeNull();
  expect(directOf(wrapped)).toBeNull();
});
