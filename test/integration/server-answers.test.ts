import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { open } from '../../src/holdfast.ts';
import { createApp, type HoldfastApp } from '../../src/server/app.ts';
import { serve } from '../../src/server/serve.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';

leaveNothingBehind();

const TOKEN = 'the-token-of-this-test';
const AUTHORIZED = { Authorization: `Bearer ${TOKEN}` };
const JSON_BODY = { ...AUTHORIZED, 'Content-Type': 'application/json' };
/** Other with every answer, or of the connection. */
const PASSING = ['date', 'x-request-id', 'connection', 'keep-alive'];

const REQUESTS: readonly [what: string, path: string, init: RequestInit][] = [
  ['a page', '/api/v3/sessions', { headers: AUTHORIZED }],
  ['a page without its body', '/api/v3/sessions', { method: 'HEAD', headers: AUTHORIZED }],
  ['a refusal', '/api/v3/sessions', {}],
  ['what is not there', '/api/v3/sessions/none', { headers: AUTHORIZED }],
  [
    'a body that makes no sense',
    '/api/v3/intents',
    { method: 'POST', headers: JSON_BODY, body: '{"é":1}' },
  ],
  ['a method that is not', '/api/v3/intents', { method: 'PUT', headers: AUTHORIZED }],
];

/** What a client sees of an answer. */
async function seen(response: Response) {
  const { status } = response;
  const headers = [...response.headers].filter(([name]) => !PASSING.includes(name));
  expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f]{16}$/);
  return { status, headers: Object.fromEntries(headers), text: await response.text() };
}

async function start() {
  const holdfast = await open('memory:', { on: { 'store.warned': () => {} } });
  const tokens = [{ id: 'test', token: TOKEN, scope: 'v3:admin' }] as const;
  const app = createApp(holdfast, { tokens });
  const close = async () => {
    await app.close();
    await holdfast.close();
  };
  return { app, [Symbol.asyncDispose]: close };
}

describe('an answer', () => {
  it.each(REQUESTS)(
    'is the same over our own server as from the app: %s',
    async (_, path, init) => {
      await using started = await start();
      const serving = await serve(started.app);
      const served = await seen(await fetch(serving.url + path, init));
      const { 'content-length': length, ...headers } = served.headers;
      const direct = await seen(await started.app.fetch(new Request(serving.url + path, init)));
      await serving.close();
      expect(headers).toEqual(direct.headers);
      expect([served.status, served.text]).toEqual([direct.status, direct.text]);
      if (init.method !== 'HEAD') expect(Number(length)).toBe(Buffer.byteLength(direct.text));
    },
  );

  it('has no body where there is nothing to say', async () => {
    await using started = await start();
    const serving = await serve(started.app);
    const body = JSON.stringify({ id: 'one', url: 'http://127.0.0.1/' });
    const path = `${serving.url}/api/v3/sessions`;
    expect((await fetch(path, { method: 'POST', headers: JSON_BODY, body })).status).toBe(201);
    const deleted = await fetch(`${path}/one`, { method: 'DELETE', headers: AUTHORIZED });
    expect(await seen(deleted)).toMatchObject({ status: 204, text: '' });
    await serving.close();
  });

  it.each([
    ['a route', (mine: Hono, app: HoldfastApp) => mine.route('/holdfast', app.hono)],
    ['a function', (mine: Hono, app: HoldfastApp) => mine.mount('/holdfast', app.fetch)],
  ])(
    'can be changed by whoever has mounted the app in another as %s, whatever serves that',
    async (_, mount) => {
      await using started = await start();
      const mine = new Hono();
      mine.use(async (c, next) => {
        await next();
        c.res.headers.set('X-Mine', 'yes');
      });
      mount(mine, started.app);
      const { madeToken } = started.app;
      const serving = await serve({ fetch: mine.fetch, madeToken, close: async () => {} });
      const url = `${serving.url}/holdfast/api/v3/sessions`;
      const { status, headers } = await seen(await fetch(url, { headers: AUTHORIZED }));
      await serving.close();
      expect([status, headers['x-mine']]).toEqual([200, 'yes']);
    },
  );
});
