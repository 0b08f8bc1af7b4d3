import { describe, expect, it } from 'vitest';
import { type ClientOptions, HoldfastClient } from '../../src/client/index.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { type cut, json, problem, ScriptedServer, silence } from '../support/scripted-server.ts';
import { until } from '../support/until.ts';

const ACCEPTED = {
  sessionId: 's-1',
  kind: 'live',
  state: 'NEW',
  replayed: false,
  clients: 1,
  links: { self: '/api/v3/sessions/s-1' },
};
const TOKEN = 'canary-canary-canary';

/** Pauses are as short as they may be, unless a test says otherwise. */
function clientOf({ url }: { url: string }, options: Partial<ClientOptions> = {}): HoldfastClient {
  return new HoldfastClient({ url, token: TOKEN, random: { next: () => 0 }, ...options });
}

/** A clock to step, and how long each timer on it was to take. */
function notedClock() {
  const fake = new FakeClock();
  const delaysMs: number[] = [];
  const clock = {
    monotonicMs: () => fake.monotonicMs(),
    wallMs: () => fake.wallMs(),
    after: (ms: number, run: () => void) => {
      delaysMs.push(ms);
      return fake.after(ms, run);
    },
  };
  return { clock, fake, delaysMs };
}

/** Waits for so many timers to have been set. */
function timers({ delaysMs }: { delaysMs: readonly number[] }, count: number) {
  return until(() => delaysMs.length >= count, { what: `${count} timers` });
}

describe('a client', () => {
  it('says what it wants, with its token, as the server takes it', async () => {
    await using server = await ScriptedServer.start(json(202, ACCEPTED));
    const client = clientOf({ url: `${server.url}/holdfast/` });
    expect(await client.start({ serviceRef: '1:0:19', profile: 'hd' })).toEqual(ACCEPTED);
    await client.startVod({ recordingId: 'r', startMs: 10_500, clientId: 'c' });
    await client.stop('s-1', { force: true });
    expect(server.heard.map(({ body }) => body)).toEqual([
      { type: 'stream.start', serviceRef: '1:0:19', profile: 'hd' },
      { type: 'vod.start', recordingId: 'r', startMs: 10_500, clientId: 'c' },
      { type: 'stream.stop', sessionId: 's-1', force: true },
    ]);
    for (const { method, path, headers } of server.heard) {
      expect(`${method} ${path}`).toBe('POST /holdfast/api/v3/intents');
      expect(headers).toMatchObject({
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json',
      });
    }
  });

  it.each([429, 502, 503, 504])('asks again after %i, with the same request', async (status) => {
    const away = problem(status, 'store-unavailable');
    await using server = await ScriptedServer.start(away, away, json(202, ACCEPTED));
    expect(await clientOf(server).start({ serviceRef: 'a' })).toEqual(ACCEPTED);
    expect(server.heard).toHaveLength(3);
    expect(new Set(server.heard.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  });

  it('asks again where the connection is cut after its request was accepted, and gets the same session', async () => {
    let started = 0;
    const accept = (end: 'cut' | 'answer') => (response: Parameters<typeof cut>[0]) => {
      started += 1;
      if (end === 'cut') return response.destroy();
      response.writeHead(202, { 'content-type': 'application/json' });
      return response.end(JSON.stringify({ ...ACCEPTED, replayed: started > 1 }));
    };
    await using server = await ScriptedServer.start(accept('cut'), accept('answer'));
    const accepted = await clientOf(server).start({ serviceRef: 'a' });
    expect(accepted).toEqual({ ...ACCEPTED, replayed: true });
  });

  it('asks again where an answer breaks off in the middle', async () => {
    await using server = await ScriptedServer.start(
      (response) => {
        response.writeHead(202, { 'content-type': 'application/json', 'content-length': '500' });
        response.write('{"sessionId":"s-', () => response.destroy());
      },
      json(202, ACCEPTED),
    );
    expect(await clientOf(server).start({ serviceRef: 'a' })).toEqual(ACCEPTED);
  });

  it('asks again where there is no answer in time', async () => {
    await using server = await ScriptedServer.start(silence, json(202, ACCEPTED));
    const noted = notedClock();
    const started = clientOf(server, { clock: noted.clock }).start({ serviceRef: 'a' });
    await until(() => server.heard.length === 1, { what: 'the request' });
    expect(noted.delaysMs).toEqual([10_000]);
    await noted.fake.advance(10_000);
    await timers(noted, 2);
    await noted.fake.advance(0);
    expect(await started).toEqual(ACCEPTED);
  });

  it.each([
    ...[400, 401, 403, 404, 405, 408, 409, 413, 415, 500, 501].map((status) => [status] as const),
  ])('throws at once what will not get better: %i', async (status) => {
    await using server = await ScriptedServer.start(problem(status, 'lease-busy'));
    const call = clientOf(server).start({ serviceRef: 'a' });
    await expect(call).rejects.toMatchObject({ status, code: 'LEASE_BUSY', detail: 'Because.' });
    expect(server.heard).toHaveLength(1);
  });

  it('tells what is wrong with which field, and nothing of its token', async () => {
    const errors = [{ field: 'serviceRef', rule: 'it must be text' }];
    const body = { type: 'x/problems/invalid-request', title: 'No sense', status: 400, errors };
    await using server = await ScriptedServer.start(
      json(400, { ...body, detail: 'See errors.', code: 'INVALID_REQUEST' }),
    );
    const error = await clientOf(server)
      .start({ serviceRef: '' })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      name: 'HoldfastApiError',
      status: 400,
      code: 'INVALID_REQUEST',
      errors,
      type: body.type,
      detail: 'See errors.',
      retryAfterMs: null,
      message: expect.stringContaining('serviceRef: it must be text'),
    });
    expect(JSON.stringify(error) + (error as Error).stack).not.toContain('canary');
  });

  it('takes an answer that is not of a Holdfast server for what it is', async () => {
    await using server = await ScriptedServer.start(
      (response) => response.writeHead(404).end('<html>'),
      (response) => response.writeHead(200).end('<html>'),
      (response) => response.writeHead(307, { location: '/elsewhere' }).end(),
    );
    const client = clientOf(server);
    for (const status of [404, 200, 307])
      await expect(client.session('a')).rejects.toMatchObject({
        status,
        code: 'UNEXPECTED_ANSWER',
      });
    expect(server.heard.map(({ path }) => path)).not.toContain('/elsewhere');
  });
});

describe('between two attempts a client', () => {
  it('waits as long as Retry-After says, and a random while more', async () => {
    const busy = problem(429, 'too-many-requests', { 'retry-after': '7' });
    await using server = await ScriptedServer.start(busy, json(202, ACCEPTED));
    const noted = notedClock();
    const options = { clock: noted.clock, random: { next: () => 0.5 } };
    const started = clientOf(server, options).start({ serviceRef: 'a' });
    await timers(noted, 2);
    expect(noted.delaysMs[1]).toBe(7_000 + 100);
    await noted.fake.advance(7_099);
    expect(server.heard).toHaveLength(1);
    await noted.fake.advance(1);
    expect(await started).toEqual(ACCEPTED);
  });

  it('understands a date there, too', async () => {
    const noted = notedClock();
    const date = new Date(noted.fake.wallMs() + 3_000).toUTCString();
    const busy = problem(503, 'store-unavailable', { 'retry-after': date });
    await using server = await ScriptedServer.start(busy, json(202, ACCEPTED));
    const started = clientOf(server, { clock: noted.clock }).start({ serviceRef: 'a' });
    await timers(noted, 2);
    expect(noted.delaysMs[1]).toBe(3_000);
    await noted.fake.advance(3_000);
    await started;
  });

  it('does not wait for what could only be asked when its time is over', async () => {
    const busy = problem(429, 'too-many-requests', { 'retry-after': '3600' });
    await using server = await ScriptedServer.start(busy);
    const call = clientOf(server).start({ serviceRef: 'a' });
    await expect(call).rejects.toMatchObject({ status: 429, retryAfterMs: 3_600_000 });
    expect(server.heard).toHaveLength(1);
  });

  it('waits longer from time to time, up to a limit, and gives up after so many', async () => {
    await using server = await ScriptedServer.start(problem(503, 'store-unavailable'));
    const noted = notedClock();
    const options = { clock: noted.clock, random: { next: () => 1 }, retries: 7, timeout: '1h' };
    const call = clientOf(server, options).start({ serviceRef: 'a' });
    call.catch(() => {});
    for (let pause = 1; pause <= 7; pause++) {
      await timers(noted, 2 * pause);
      await noted.fake.advance(noted.delaysMs.at(-1) ?? 0);
    }
    await expect(call).rejects.toMatchObject({ status: 503 });
    const pauses = noted.delaysMs.filter((_, i) => i % 2 === 1);
    expect(pauses).toEqual([200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    expect(server.heard).toHaveLength(8);
  });

  it('ends when its time is over, however many attempts are left', async () => {
    await using server = await ScriptedServer.start(silence);
    const options = { timeout: 300, attemptTimeout: 100, retries: 100 };
    const call = clientOf(server, options).start({ serviceRef: 'a' });
    const error = await call.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'NoAnswerError', code: 'NO_ANSWER' });
    expect((error as { attempts: number }).attempts).toBeGreaterThanOrEqual(2);
    expect((error as { attempts: number }).attempts).toBeLessThanOrEqual(4);
  });

  it('is ended by its signal, also while it waits, and asks no more', async () => {
    await using server = await ScriptedServer.start(problem(503, 'store-unavailable'));
    const noted = notedClock();
    const over = new AbortController();
    const options = { clock: noted.clock, random: { next: () => 0.5 } };
    const call = clientOf(server, options).start({ serviceRef: 'a' }, { signal: over.signal });
    call.catch(() => {});
    await timers(noted, 2);
    over.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    expect(noted.fake.pendingTimers).toBe(0);
    const before = AbortSignal.abort(new Error('too late'));
    const late = clientOf(server).start({ serviceRef: 'a' }, { signal: before });
    await expect(late).rejects.toThrow('too late');
    expect(server.heard).toHaveLength(1);
  });

  it('is ended by its signal in the middle of a request', async () => {
    await using server = await ScriptedServer.start(silence);
    const over = new AbortController();
    const call = clientOf(server).start({ serviceRef: 'a' }, { signal: over.signal });
    call.catch(() => {});
    await until(() => server.heard.length === 1, { what: 'the request' });
    over.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await until(() => server.left === 1, { what: 'the connection to be cut' });
  });

  it('gets a token for each, and says so where it makes no sense, without it', async () => {
    const tokens = ['first-first-first-1', 'second-second-second'];
    const away = problem(503, 'store-unavailable');
    await using server = await ScriptedServer.start(away, json(202, ACCEPTED));
    const token = async () => tokens.shift() ?? 'canary\ncanary';
    const client = clientOf(server, { token });
    await client.start({ serviceRef: 'a' });
    const sent = server.heard.map(({ headers }) => headers.authorization);
    expect(sent).toEqual(['Bearer first-first-first-1', 'Bearer second-second-second']);
    const error = await client.start({ serviceRef: 'a' }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', field: 'token' });
    expect(String(error)).not.toContain('canary');
    expect(server.heard).toHaveLength(2);
  });
});

it.each([
  [{ url: 'ftp://x' }, 'url'],
  [{ url: 'x' }, 'url'],
  [{ url: 'http://u:canary@x' }, 'url'],
  [{ url: 'http://x/?a=canary' }, 'url'],
  [{ url: 'http://x', retries: -1 }, 'retries'],
  [{ url: 'http://x', retries: 1.5 }, 'retries'],
  [{ url: 'http://x', timeout: 'soon' }, 'timeout'],
  [{ url: 'http://x', attemptTimeout: -1 }, 'attemptTimeout'],
])('a client of %j is refused', (options, field) => {
  const make = () => new HoldfastClient(options);
  expect(make).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', field }));
  expect(make).not.toThrow(/canary/);
});
