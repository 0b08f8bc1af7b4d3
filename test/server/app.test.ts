import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { createApp } from '../../src/server/app.ts';
import { hostNames } from '../../src/server/http/foreign-pages.ts';
import { mount } from '../../src/server/http/mount.ts';
import { handleRequest, type RequestPolicy } from '../../src/server/http/request.ts';
import { RequestGate } from '../../src/server/http/request-gate.ts';
import { type Route, type RouteRequest, route } from '../../src/server/http/route.ts';
import { TokenSet } from '../../src/server/http/token-set.ts';
import type { AnsweredRequest, ServerContext } from '../../src/server/server-context.ts';
import { requestOf, serverWorld, TOKENS } from '../support/server-world.ts';

const START = { type: 'stream.start', serviceRef: 'one' };

/** An app of one route, which does what the test wants. */
async function appOf(handle: Route['handle'], about: Partial<Route> = {}) {
  const { clock, holdfast, intents } = await serverWorld();
  const errors: unknown[] = [];
  const answered: AnsweredRequest[] = [];
  const ending = new AbortController();
  const server = {
    holdfast,
    intents,
    clock,
    random: { next: () => 0, hex: (n: number) => 'f'.repeat(n) },
    closing: ending.signal,
  };
  const only = route({
    method: 'GET',
    path: '/only',
    access: 'v3:read',
    tenants: 'yes',
    group: 'operation',
    summary: '',
    description: '',
    responses: {},
    problems: [],
    handle,
    ...about,
  });
  const policy: RequestPolicy = {
    server: server as unknown as ServerContext,
    lan: null,
    hosts: null,
    pageHosts: hostNames([]),
    bodyTimeoutMs: 1_000,
    handlerTimeoutMs: 5_000,
    tokens: new TokenSet(Object.values(TOKENS), clock),
    limits: new RequestGate({ inFlight: 2 }, clock),
    onError: (error) => errors.push(error),
    onAnswered: (one) => answered.push(one),
  };
  const hono = mount([only], (c, destination) => handleRequest(policy, c, destination));
  const ask = async (method = 'GET', path = '/only') => hono.fetch(requestOf(method, path));
  return { ask, answered, clock, ending, errors, hono };
}

describe('an answer', () => {
  it('has the same headers whatever it is', async () => {
    const { ask } = await serverWorld();
    const ids = new Set<string | null>();
    const all = [
      await ask('GET', '/api/v3/sessions'),
      await ask('POST', '/api/v3/intents', { body: START }),
      await ask('GET', '/nope'),
      await ask('PUT', '/api/v3/sessions'),
      await ask('GET', '/api/v3/sessions', { token: null }),
      await ask('GET', '/api/v3/sessions/none'),
    ];
    for (const { headers } of all) {
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toBe('no-store');
      ids.add(headers.get('x-request-id'));
    }
    expect(ids.size).toBe(all.length);
    expect([...ids].every((id) => /^[0-9a-f]{16}$/.test(id ?? ''))).toBe(true);
  });

  it('to HEAD is that to GET without its body', async () => {
    const { ask } = await serverWorld();
    const got = await ask('HEAD', '/api/v3/sessions');
    expect([got.status, got.text]).toEqual([200, '']);
    expect((await ask('HEAD', '/api/v3/sessions', { token: null })).status).toBe(401);
  });

  it('to HEAD ends a body that would have been long', async () => {
    let isCancelled = false;
    const cancel = () => {
      isCancelled = true;
    };
    const { ask } = await appOf(async () => new Response(new ReadableStream({ cancel })));
    await ask('HEAD');
    expect(isCancelled).toBe(true);
  });

  it('that a route gives whole keeps what it says of caches', async () => {
    const headers = { 'cache-control': 'max-age=60' };
    const { ask } = await appOf(async () => new Response('x', { headers }));
    const response = await ask();
    expect(response.headers.get('cache-control')).toBe('max-age=60');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('is told to those who count, by the path of the table', async () => {
    const { ask, answered } = await appOf(async () => ({ body: {} }), {
      path: '/only/{id}',
    });
    await ask('GET', '/only/canary');
    await ask('PUT', '/only/canary');
    await ask('GET', '/canary');
    expect(answered).toEqual([
      { path: '/only/{id}', method: 'GET', status: 200, tookMs: 0 },
      { path: null, method: 'PUT', status: 405, tookMs: 0 },
      { path: null, method: 'GET', status: 404, tookMs: 0 },
    ]);
  });
});

describe('what should not have happened', () => {
  it.each([
    ['later', () => Promise.reject(new Error('canary'))],
    [
      'at once',
      () => {
        throw new Error('canary');
      },
    ],
  ])('and happens %s is written down, and not told', async (_, handle) => {
    const { ask, errors } = await appOf(handle);
    const response = await ask();
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ code: 'INTERNAL', type: '/problems/internal' });
    expect(text).not.toContain('canary');
    expect(errors).toEqual([new Error('canary')]);
  });

  it('is complained about where nobody said what else to do', async () => {
    const { holdfast, intents } = await serverWorld();
    const broken = { ...intents, sessions: () => Promise.reject(new Error('odd')) };
    const tokens = Object.values(TOKENS);
    const app = createApp(holdfast, { tokens, intents: broken as unknown as typeof intents });
    const said: unknown[][] = [];
    const { error } = console;
    console.error = (...args) => said.push(args);
    try {
      expect((await app.fetch(requestOf('GET', '/api/v3/sessions'))).status).toBe(500);
    } finally {
      console.error = error;
    }
    expect(String(said[0]?.[0])).toMatch(/GET \/api\/v3\/sessions failed, request [0-9a-f]{16}/);
  });
});

describe('a handler', () => {
  it.each([
    ['GET', 'STORE_UNAVAILABLE'],
    ['POST', 'OUTCOME_UNKNOWN'],
  ] as const)('that does not come back in time is not waited for: %s', async (method, code) => {
    let cancelled = false;
    let comeBack: (response: Response) => void = () => {};
    const late = new Promise<Response>((resolve) => {
      comeBack = resolve;
    });
    const { ask, clock } = await appOf(() => late, { method });
    const asked = ask(method);
    await clock.advance(5_000);
    const response = await asked;
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code });
    const cancel = () => {
      cancelled = true;
    };
    comeBack(new Response(new ReadableStream({ cancel })));
    await clock.advance(0);
    expect(cancelled).toBe(true);
  });

  it('hears when the client has gone, and when the server ends', async () => {
    const signals: AbortSignal[] = [];
    const handle = async ({ signal }: RouteRequest<unknown, unknown, unknown>) => {
      signals.push(signal);
      return {};
    };
    const { ask, ending, hono } = await appOf(handle);
    const client = new AbortController();
    await hono.fetch(new Request(requestOf('GET', '/only'), { signal: client.signal }));
    await ask();
    client.abort();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    ending.abort();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });
});

describe('limits', () => {
  it('let in so many at once, and the next when one has been answered', async () => {
    const waiting: (() => void)[] = [];
    const { ask } = await appOf(() => new Promise((resolve) => waiting.push(() => resolve({}))));
    const both = [ask(), ask()];
    const third = await ask();
    expect(third.status).toBe(429);
    expect(third.headers.get('retry-after')).toBe('1');
    expect((await ask('PUT')).status).toBe(405);
    waiting[0]?.();
    expect((await both[0])?.status).toBe(200);
    const fourth = ask();
    for (let turns = 0; turns < 5; turns++) await null;
    for (const go of waiting) go();
    expect((await fourth).status).toBe(200);
    await both[1];
  });

  it('do not keep anybody from hearing that we live', async () => {
    const { ask } = await appOf(async () => ({ body: {} }), { access: 'open' });
    const all = await Promise.all(Array.from({ length: 10 }, () => ask()));
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]));
  });

  it('give each token its rate, and say when to come back', async () => {
    const rate = { requestsPerSecond: 0.5, burst: 2 };
    const { ask, calls, clock } = await serverWorld({ limits: { rate } });
    const asked = (token: 'read' | 'write') => ask('GET', '/api/v3/sessions', { token });
    expect((await asked('read')).status).toBe(200);
    expect((await asked('read')).status).toBe(200);
    calls.length = 0;
    const third = await asked('read');
    expect(third).toMatchObject({ status: 429, json: { code: 'TOO_MANY_REQUESTS' } });
    expect(third.headers.get('retry-after')).toBe('2');
    expect(calls).toEqual([]);
    expect((await asked('write')).status).toBe(200);
    await clock.advance(1_999);
    expect((await asked('read')).status).toBe(429);
    await clock.advance(1);
    expect((await asked('read')).status).toBe(200);
    await clock.advance(3_600_000);
    const later = await Promise.all([asked('read'), asked('read'), asked('read')]);
    expect(later.map(({ status }) => status)).toEqual([200, 200, 429]);
  });

  it.each([
    [{ inFlight: 0 }],
    [{ inFlight: 1.5 }],
    [{ most: 5 }],
    [{ rate: { requestsPerSecond: 0 } }],
    [{ rate: { requestsPerSecond: Number.NaN } }],
    [{ rate: { requestsPerSecond: 5, burst: 0.5 } }],
    [{ rate: { perSecond: 5 } }],
  ])('make sense, unlike %j', async (limits) => {
    await expect(serverWorld({ limits: limits as never })).rejects.toThrow(/limits\./);
  });
});

describe('the app', () => {
  it('is mounted under any path, and its links lead there', async () => {
    const { app } = await serverWorld();
    const mine = new Hono();
    mine.get('/', (c) => c.text('mine'));
    mine.route('/tools/:name', app.hono);
    const ask = async (method: string, path: string, sent = {}) =>
      mine.fetch(requestOf(method, path, sent));
    expect(await (await ask('GET', '/')).text()).toBe('mine');
    const accepted = await ask('POST', '/tools/holdfast/api/v3/intents', { body: START });
    const location = accepted.headers.get('location') ?? '';
    expect(location).toMatch(/^\/tools\/holdfast\/api\/v3\/sessions\//);
    expect((await ask('GET', location)).status).toBe(200);
    const none = await ask('GET', '/tools/holdfast/nope');
    expect(none.status).toBe(404);
    expect(await none.json()).toMatchObject({ type: '/tools/holdfast/problems/not-found' });
    expect((await ask('PUT', '/tools/holdfast/api/v3/sessions')).status).toBe(405);
    expect((await ask('GET', '/tools/holdfast/api/v3/sessions', { token: null })).status).toBe(401);
  });

  it('is mounted under names that are no ASCII, too', async () => {
    const { app } = await serverWorld();
    const mine = new Hono();
    mine.route('/tools/:name', app.hono);
    const path = '/tools/%F0%9F%A6%8A%2Fa%25/api/v3/intents';
    const accepted = await mine.fetch(requestOf('POST', path, { body: START }));
    expect(accepted.status).toBe(202);
    const location = accepted.headers.get('location') ?? '';
    expect(location).toMatch(/^\/tools\/%F0%9F%A6%8A%2Fa%25\/api\/v3\/sessions\//);
    expect((await mine.fetch(requestOf('GET', location))).status).toBe(200);
  });

  it('takes no option that it does not know', async () => {
    await expect(serverWorld({ token: 'x' } as never)).rejects.toThrow(/unknown option/);
    await expect(serverWorld({ bodyTimeout: 'soon' })).rejects.toThrow(/bodyTimeout/);
  });

  it('starts and stops what accepts intents where it made that itself', async () => {
    const { app, clock, holdfast } = await serverWorld();
    const before = clock.pendingTimers;
    await app.close();
    expect(clock.pendingTimers).toBe(before);
    const own = createApp(holdfast, { tokens: Object.values(TOKENS) });
    await clock.advance(0);
    expect(clock.pendingTimers).toBeGreaterThan(before);
    await own.close();
    expect(clock.pendingTimers).toBe(before);
  });
});
