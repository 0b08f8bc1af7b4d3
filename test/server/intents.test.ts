import { describe, expect, it } from 'vitest';
import { LATEST_START_MS } from '../../src/intents/intent.ts';
import {
  requestOf,
  type ServerWorld,
  serverWorld,
  type TokenName,
} from '../support/server-world.ts';

const PATH = '/api/v3/intents';
const LIVE = { type: 'stream.start', serviceRef: '1:0:19:2B66:3F3:1:C00000:0:0:0:' };
const VOD = { type: 'vod.start', recordingId: 'film|7', startMs: 10_500 };

function send({ ask }: ServerWorld, body: unknown, token: TokenName = 'write') {
  return ask('POST', PATH, { token, body });
}

describe('an intent', () => {
  it('I-01 is persisted and published by one call of the store, and answered with its session', async () => {
    const world = await serverWorld();
    const got = await send(world, LIVE);
    expect(got.status).toBe(202);
    const { sessionId } = got.json;
    const self = `/api/v3/sessions/${sessionId}`;
    expect(got.json).toEqual({
      sessionId,
      state: 'NEW',
      kind: 'live',
      key: LIVE.serviceRef,
      replayed: false,
      clients: 1,
      links: { self },
    });
    expect(got.headers.get('location')).toBe(self);
    expect(world.calls.filter((call) => !call.startsWith('records.'))).toEqual(['intents.start']);
    expect(world.calls.filter((call) => call.startsWith('leases.'))).toEqual([]);
    const found = await world.ask('GET', self, { token: 'read' });
    expect(found).toMatchObject({ status: 200, json: { id: sessionId, state: 'NEW' } });
  });

  it('I-13 is dropped if its client has gone, and that is no failure of ours', async () => {
    const world = await serverWorld();
    const request = requestOf('POST', PATH, { token: 'write', body: LIVE });
    const gone = new Request(request, { signal: AbortSignal.abort('the client has gone') });
    expect((await world.app.fetch(gone)).status).toBe(408);
    expect(world.calls).not.toContain('intents.start');
    expect(world.errors).toEqual([]);
  });

  it('I-01 leads to the same session when it comes again, whoever sends it', async () => {
    const world = await serverWorld();
    const first = await send(world, LIVE);
    const again = await send(world, LIVE);
    expect(again.json).toEqual({ ...first.json, replayed: true });
    const other = await send(world, { ...LIVE, clientId: 'another' });
    expect(other.json).toEqual({ ...first.json, replayed: true, clients: 2 });
    const profile = await send(world, { ...LIVE, profile: 'hd' });
    expect(profile.json.sessionId).not.toBe(first.json.sessionId);
  });

  it('I-01 is accepted whatever the contention', async () => {
    const world = await serverWorld();
    const all = await Promise.all(Array.from({ length: 50 }, () => send(world, LIVE)));
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([202]));
    expect(new Set(all.map(({ json }) => json.sessionId)).size).toBe(1);
    expect(all.filter(({ json }) => !json.replayed)).toHaveLength(1);
  });

  it('I-02 starts a recording from a second on', async () => {
    const world = await serverWorld();
    const first = await send(world, VOD);
    expect(first.json).toMatchObject({ kind: 'vod', replayed: false });
    const spelled = { type: 'vod.start', recordingId: 'film|7', start_ms: 10_999 };
    expect((await send(world, spelled)).json.sessionId).toBe(first.json.sessionId);
    expect((await send(world, { ...VOD, startMs: 11_000 })).json.replayed).toBe(false);
    const { json } = await world.ask('GET', first.json.links.self);
    expect(json).toMatchObject({ kind: 'vod', recordingId: 'film|7', startMs: 10_500 });
  });

  it('I-02 stops what its client needs no more, and the last one stops the session', async () => {
    const world = await serverWorld();
    const { sessionId } = (await send(world, { ...LIVE, clientId: 'a' })).json;
    await send(world, { ...LIVE, clientId: 'b' });
    const stop = { type: 'stream.stop', sessionId };
    const one = await send(world, { ...stop, clientId: 'a' });
    expect(one).toMatchObject({ status: 202, json: { state: 'NEW', replayed: true, clients: 1 } });
    const last = await send(world, { ...stop, clientId: 'b' });
    expect(last.json).toMatchObject({ sessionId, state: 'ENDED', replayed: false, clients: 0 });
    expect((await send(world, { ...stop, sessionId: 'nobody' })).status).toBe(404);
  });

  it('I-14 is forced by those only who may do everything', async () => {
    const world = await serverWorld();
    const { sessionId } = (await send(world, LIVE)).json;
    world.calls.length = 0;
    const forced = { type: 'stream.stop', sessionId, force: true };
    expect(await send(world, forced)).toMatchObject({ status: 403, json: { scope: 'v3:admin' } });
    expect(world.calls).toEqual([]);
    expect((await send(world, { ...forced, force: false, clientId: 'x' })).json.state).toBe('NEW');
    expect((await send(world, forced, 'admin')).json.state).toBe('ENDED');
  });
});

describe('an intent that makes no sense', async () => {
  const world = await serverWorld();
  const bad: [what: string, body: unknown, fields: string[]][] = [
    ['an empty object', {}, ['type']],
    ['an unknown type', { ...LIVE, type: 'stream.pause' }, ['type']],
    ['a type that is no text', { ...LIVE, type: ['stream.start'] }, ['type']],
    ['an inherited name as type', { ...LIVE, type: 'toString' }, ['type']],
    ['no target', { type: 'stream.start' }, ['serviceRef']],
    ['an empty target', { ...LIVE, serviceRef: '' }, ['serviceRef']],
    ['a number as target', { ...LIVE, serviceRef: 1 }, ['serviceRef']],
    ['null as target', { ...LIVE, serviceRef: null }, ['serviceRef']],
    ['a line end in the target', { ...LIVE, serviceRef: 'a\nb' }, ['serviceRef']],
    ['a zero byte in the target', { ...LIVE, serviceRef: 'a\u0000' }, ['serviceRef']],
    ['a long target', { ...LIVE, serviceRef: 'é'.repeat(257) }, ['serviceRef']],
    ['a profile with a brace', { ...LIVE, profile: '{x}y' }, ['profile']],
    ['an empty profile', { ...LIVE, profile: '' }, ['profile']],
    ['a star as profile', { ...LIVE, profile: '*' }, ['profile']],
    ['an emoji as client', { ...LIVE, clientId: '🦊' }, ['clientId']],
    ['a long client', { ...LIVE, clientId: 'x'.repeat(129) }, ['clientId']],
    ['an owner', { ...LIVE, owner: 'me' }, ['owner']],
    ['a scope', { ...LIVE, scope: 'v3:admin' }, ['scope']],
    ['a tenant', { ...LIVE, tenant: 'acme' }, ['tenant']],
    ['a session id in a start', { ...LIVE, sessionId: 'x' }, ['sessionId']],
    ['a start time for a channel', { ...LIVE, startMs: 0 }, ['startMs']],
    ['a negative time', { ...VOD, startMs: -1 }, ['startMs']],
    ['part of a millisecond', { ...VOD, startMs: 0.5 }, ['startMs']],
    ['a time after all films', { ...VOD, startMs: LATEST_START_MS + 1 }, ['startMs']],
    ['a time beyond numbers', { ...VOD, startMs: 1e300 }, ['startMs']],
    ['a time as text', { ...VOD, startMs: '10500' }, ['startMs']],
    ['null as time', { ...VOD, startMs: null }, ['startMs']],
    ['the time twice', { ...VOD, start_ms: 10_500 }, ['start_ms']],
    ['a stop of nothing', { type: 'stream.stop' }, ['sessionId']],
    ['a stop with a newline', { type: 'stream.stop', sessionId: 'a\n' }, ['sessionId']],
    ['force as text', { type: 'stream.stop', sessionId: 'a', force: 'true' }, ['force']],
    [
      'all of it at once',
      { ...VOD, recordingId: 5, profile: '', startMs: 1, start_ms: 1, x: 1, y: 2 },
      ['recordingId', 'profile', 'x', 'y', 'start_ms'],
    ],
  ];

  it.each(bad)('I-02 is told what is wrong: %s', async (_, body, fields) => {
    world.calls.length = 0;
    const got = await send(world, body, 'admin');
    expect(got.status).toBe(400);
    expect(got.headers.get('content-type')).toBe('application/problem+json');
    const told = got.json.errors.map(({ field }: { field: string }) => field);
    expect(told.sort()).toEqual([...fields].sort());
    for (const { rule } of got.json.errors) expect(rule).not.toMatch(/invalid|expected/i);
    expect(world.calls).toEqual([]);
  });

  it.each([
    ['{"type":"vod.start","recordingId":"a","startMs":NaN}'],
    ['{"type":"vod.start","recordingId":"a","startMs":1e400}'],
    ['{"type":"vod.start","recordingId":"a","startMs":0x10}'],
    ['{"type":"stream.start","serviceRef":"\\ud800"}'],
    ['{"type":"stream.start","serviceRef":"a","serviceRef":"b"}'],
    ['{"type":"stream.start","serviceRef":"a","__proto__":{"force":true}}'],
    ['\ufeff{"type":"stream.start","serviceRef":"a"}'],
    ['[{"type":"stream.start","serviceRef":"a"}]'],
  ])('I-02 is refused as it stands: %s', async (body) => {
    world.calls.length = 0;
    expect((await send(world, body)).status).toBe(400);
    expect(world.calls).toEqual([]);
  });

  it('is not repeated to its sender', async () => {
    const canary = 'canary-71ab';
    const bodies = [
      { ...LIVE, serviceRef: `${canary}\n` },
      { ...LIVE, profile: `{${canary}}` },
      { type: canary },
      { ...VOD, startMs: canary },
      `{"type":"${canary}`,
    ];
    for (const body of bodies) expect((await send(world, body)).text).not.toContain(canary);
  });
});

describe('when the store', () => {
  it('I-03 is away, the answer is 503, nothing is written, and it works again by itself', async () => {
    const world = await serverWorld();
    world.faults.refuse = true;
    const got = await send(world, LIVE);
    expect(got).toMatchObject({ status: 503, json: { code: 'STORE_UNAVAILABLE' } });
    expect(got.headers.get('retry-after')).toBe('1');
    expect(got.text).not.toMatch(/memory|nobody listens/);
    world.faults.refuse = false;
    expect((await send(world, LIVE)).json.replayed).toBe(false);
  });

  it('I-03 gives no answer, it may have been accepted, and to ask again is safe', async () => {
    const world = await serverWorld();
    await send(world, { ...LIVE, serviceRef: 'other' });
    world.faults.loseReplies = true;
    const asked = send(world, LIVE);
    await world.clock.advance(15_000);
    expect(await asked).toMatchObject({ status: 503, json: { code: 'OUTCOME_UNKNOWN' } });
    world.faults.loseReplies = false;
    expect((await send(world, LIVE)).json.replayed).toBe(true);
  });
});

describe('where the interface takes leases', () => {
  it('I-16 the second of two starts of a channel is told to come back', async () => {
    const world = await serverWorld({ intentOptions: { apiLeases: 'on' } });
    const both = await Promise.all([send(world, LIVE), send(world, LIVE)]);
    expect(both.map(({ status }) => status).sort()).toEqual([202, 409]);
    const refused = both.find(({ status }) => status === 409);
    expect(refused?.json).toMatchObject({
      type: '/problems/lease-busy',
      code: 'LEASE_BUSY',
      status: 409,
    });
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  });
});

describe('tenants', () => {
  it('I-20 have sessions of their own, and do not see each other', async () => {
    const world = await serverWorld();
    const acme = (await send(world, LIVE, 'acme')).json;
    const beta = (await send(world, LIVE, 'beta')).json;
    const own = (await send(world, LIVE, 'write')).json;
    expect(new Set([acme.sessionId, beta.sessionId, own.sessionId]).size).toBe(3);
    const sees = async (token: TokenName) => {
      const { json } = await world.ask('GET', '/api/v3/sessions', { token });
      return json.sessions.map(({ id }: { id: string }) => id).sort();
    };
    expect(await sees('acme')).toEqual([acme.sessionId]);
    expect(await sees('beta')).toEqual([beta.sessionId]);
    expect(await sees('read')).toEqual([own.sessionId]);
    expect(await sees('admin')).toEqual([acme.sessionId, beta.sessionId, own.sessionId].sort());
    const status = async (token: TokenName, self: string) =>
      (await world.ask('GET', self, { token })).status;
    expect(await status('acme', beta.links.self)).toBe(404);
    expect(await status('acme', acme.links.self)).toBe(200);
    expect(await status('read', acme.links.self)).toBe(404);
    expect(await status('admin', acme.links.self)).toBe(200);
    const stop = { type: 'stream.stop', sessionId: beta.sessionId };
    expect((await send(world, { ...stop, force: true }, 'acme')).status).toBe(404);
    expect((await send(world, stop, 'beta')).json.state).toBe('ENDED');
  });

  it('I-20 are told the same of what is not theirs and of what there is not', async () => {
    const world = await serverWorld();
    const { links } = (await send(world, LIVE, 'beta')).json;
    const theirs = await world.ask('GET', links.self, { token: 'acme' });
    const none = await world.ask('GET', '/api/v3/sessions/none', { token: 'acme' });
    expect(theirs.text).toBe(none.text);
  });
});
