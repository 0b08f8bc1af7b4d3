import { describe, expect, it } from 'vitest';
import {
  requestOf,
  type Sent,
  serverWorld,
  TOKENS,
  type WorldOptions,
} from '../support/server-world.ts';
import { SseReader } from './support/sse-reader.ts';

/** Longer than events wait to be written down together. */
const WRITTEN_MS = 300;

async function setUp(options: WorldOptions = {}) {
  const world = await serverWorld({ history: 'on', ...options });
  const { app, ask, clock } = world;
  const watch = async (search = '', sent: Sent = {}) => {
    const response = await app.fetch(requestOf('GET', `/api/v3/events${search}`, sent));
    if (response.body === null || response.status !== 200)
      throw new Error(`${response.status}: ${await response.text()}`);
    const reader = new SseReader(response.body);
    void reader.readAll();
    await clock.advance(0);
    return { response, reader };
  };
  const start = async (serviceRef: string, token: keyof typeof TOKENS = 'admin') => {
    const body = { type: 'stream.start', serviceRef };
    const got = await ask('POST', '/api/v3/intents', { token, body });
    return String(got.json.sessionId);
  };
  const stop = async (sessionId: string, token: keyof typeof TOKENS = 'admin') => {
    await ask('POST', '/api/v3/intents', { token, body: { type: 'stream.stop', sessionId } });
  };
  return { ...world, watch, start, stop };
}

describe('GET /api/v3/events', () => {
  it('I-10 shows a client what comes of its session, as it comes', async () => {
    const { clock, watch, start, stop } = await setUp();
    const session = await start('1:0:19:283D:3FB:1:C00000:0:0:0:');
    const { reader, response } = await watch(`?session=${session}`);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    await start('another');
    await stop(session);
    await clock.advance(WRITTEN_MS);
    expect(reader.told.at(-1)).toMatchObject({
      event: 'session.advanced',
      data: { session, state: 'ENDED', reason: 'R_STOPPED', tenant: 'default' },
    });
    expect(new Set(reader.told.map(({ data }) => (data as { session: string }).session))).toEqual(
      new Set([session]),
    );
  });

  it('continues where a client was cut off, and loses nothing', async () => {
    const { clock, watch, start } = await setUp();
    const first = await watch('?event=intent');
    await start('a');
    await clock.advance(WRITTEN_MS);
    await first.reader.leave();
    await start('b');
    await clock.advance(60_000);
    const headers = { 'last-event-id': String(first.reader.lastEventId) };
    const again = await watch('?event=intent', { headers });
    await start('c');
    await clock.advance(WRITTEN_MS);
    expect(first.reader.names()).toEqual(['intent.accepted']);
    expect(again.reader.names()).toEqual(['intent.accepted', 'intent.accepted']);
  });

  it.each(['garbage', '-', '\u00ff', 'x'.repeat(10_000), '1 2'])(
    'says that something is missing behind the id %.20j',
    async (id) => {
      const { watch, start, clock } = await setUp();
      await start('a');
      await clock.advance(WRITTEN_MS);
      const { reader } = await watch('', { headers: { 'last-event-id': id } });
      expect(reader.names()[0]).toBe('gap');
      expect(reader.names()).toContain('intent.accepted');
    },
  );

  it('shows tenants nothing of each other', async () => {
    const { clock, watch, start } = await setUp();
    const acme = await watch('?from=oldest', { token: 'acme' });
    const beta = await watch('', { token: 'beta' });
    const plain = await watch('', { token: 'read' });
    const admin = await watch('', { token: 'admin' });
    await start('x', 'acme');
    await start('y', 'beta');
    await clock.advance(WRITTEN_MS);
    const tenants = ({ reader }: typeof acme) =>
      reader.told.map(({ data }) => (data as { tenant?: string }).tenant);
    expect(tenants(acme)).toEqual(['acme']);
    expect(tenants(beta)).toEqual(['beta']);
    expect(tenants(plain)).toEqual([]);
    expect(tenants(admin)).toEqual(['acme', 'beta']);
  });

  it.each([
    ['event=nonsense', 'event.0'],
    ['event=lease.', 'event.0'],
    ['event=', 'event.0'],
    [`${'event=lease&'.repeat(51)}`, 'event'],
    ['session=%7Bx%7D', 'session'],
    ['session=a&session=b', 'session'],
    ['session=a&target=b', 'target'],
    ['member=%00', 'member'],
    ['member=', 'member'],
    ['from=yesterday', 'from'],
    ['since=1h', 'since'],
    ['__proto__=1', '__proto__'],
  ])('refuses ?%.40s, and says what is wrong', async (search, field) => {
    const { ask, calls } = await setUp();
    calls.length = 0;
    const got = await ask('GET', `/api/v3/events?${search}`);
    expect(got.status).toBe(400);
    expect(got.json.errors.map((error: { field: string }) => error.field)).toContain(field);
    expect(calls).toEqual([]);
  });

  it('ends when the token is over while it is open', async () => {
    const { watch, clock } = await setUp({
      tokens: [{ ...TOKENS.admin, expiresAt: '2026-01-01T00:01:00Z' }],
    });
    const { reader } = await watch();
    await clock.advance(59_000);
    expect(reader.isOver).toBe(false);
    await clock.advance(1_000);
    expect(reader.told.at(-1)).toEqual({ event: 'bye', data: { reason: 'token-expired' } });
    expect(reader.isOver).toBe(true);
    await expect(watch()).rejects.toThrow(/^401/);
  });

  it('takes as many as may watch, and tells the others when to try again', async () => {
    const { ask, watch } = await setUp({ events: { clientsPerToken: 1 } });
    const { reader } = await watch();
    const got = await ask('GET', '/api/v3/events');
    expect([got.status, got.headers.get('retry-after')]).toEqual([429, '5']);
    expect(got.json).toMatchObject({ code: 'TOO_MANY_REQUESTS' });
    await reader.leave();
    await watch();
  });

  it('says good-bye when the server closes', async () => {
    const { app, ask, watch } = await setUp();
    const { reader } = await watch();
    await app.close();
    expect(reader.told).toEqual([{ event: 'bye', data: { reason: 'closing' } }]);
    expect((await ask('GET', '/api/v3/events')).json).toMatchObject({ code: 'NOT_READY' });
  });

  it('forgets clients that have gone, however they went', async () => {
    const { app, clock, ask } = await setUp({ metrics: 'open' });
    const watching = async () =>
      /^holdfast_sse_clients (\d+)$/m.exec((await ask('GET', '/metrics')).text)?.[1];
    const gone = new AbortController();
    const request = new Request(requestOf('GET', '/api/v3/events'), { signal: gone.signal });
    const aborted = await app.fetch(request);
    const cancelled = await app.fetch(requestOf('GET', '/api/v3/events'));
    expect(await watching()).toBe('2');
    gone.abort();
    await cancelled.body?.cancel();
    await clock.advance(0);
    expect(await watching()).toBe('0');
    await aborted.body?.cancel();
    expect((await ask('HEAD', '/api/v3/events')).status).toBe(200);
    expect(await watching()).toBe('0');
  });
});
