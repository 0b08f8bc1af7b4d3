import { describe, expect, it } from 'vitest';
import { requestOf, type Sent, serverWorld, type WorldOptions } from '../support/server-world.ts';
import { SseReader, type Told } from './support/sse-reader.ts';

const MEMBER = 'api-1794735731650762000-c586043d';
const OTHER = 'api-1794735731650762001-c586043e';
const BEAT = { ttlMs: 30_000, timeoutMs: 1_000 };
/** Longer than the watch waits before it says something. */
const TOLD_MS = 2_100;

async function fleetWorld(options: WorldOptions = {}) {
  const world = await serverWorld(options);
  const { app, clock, holdfast, store } = world;
  await store.members.beat({ id: MEMBER, attributes: { weight: 1, version: '1.2.3' } }, BEAT);
  for (const id of ['a', 'b', 'c']) await holdfast.targets.add({ id, url: 'http://x/' });
  const hold = async (id: string, holder = MEMBER) => {
    const taken = await holdfast.acquire(id, { holder, class: 'poll' });
    if (!taken.ok) throw new Error('not granted');
    return taken.lease;
  };
  const watch = async (sent: Sent = {}) => {
    const response = await app.fetch(requestOf('GET', '/api/v3/fleet/live', sent));
    if (response.body === null || response.status !== 200)
      throw new Error(`${response.status}: ${await response.text()}`);
    const reader = new SseReader(response.body);
    return { response, reader };
  };
  const follow = async (sent: Sent = {}) => {
    const { response, reader } = await watch(sent);
    void reader.readAll();
    await clock.advance(0);
    return { response, reader };
  };
  return { ...world, hold, watch, follow };
}

/** What the last picture and all changes since say of a target. */
function rowOf(told: readonly Told[], id: string): unknown[] | undefined {
  let found: unknown[] | undefined;
  for (const { data } of told) {
    const { targets = [], names = [] } = data as { targets?: unknown[][]; names?: string[] };
    const row = targets.find(([target]) => target === id);
    if (row === undefined) continue;
    found = row.map((cell, i) => (i >= 1 && i <= 4 ? (names[cell as number] ?? null) : cell));
  }
  return found;
}

describe('GET /api/v3/fleet', () => {
  it('shows every member and every target, with instances by their place in a list of names', async () => {
    const { ask, hold, holdfast, clock } = await fleetWorld();
    await hold('a');
    await hold('b', 'somebody-gone');
    await holdfast.targets.pause('c');
    const { status, json } = await ask('GET', '/api/v3/fleet', { token: 'read' });
    expect(status).toBe(200);
    expect(json).toMatchObject({ at: clock.wallMs(), roundTripMs: expect.any(Number) });
    expect(json.members).toEqual([
      {
        id: MEMBER,
        name: 'api',
        weight: 1,
        version: '1.2.3',
        isDraining: false,
        isForeign: false,
        owned: 1,
        quota: 2,
        expiresInMs: 30_000,
        beatTtlMs: null,
        startedAt: 1_794_735_731_650,
        vitals: null,
      },
    ]);
    expect(json.targets.map(([id]: [string]) => id)).toEqual(['a', 'b', 'c']);
    const told = [{ event: 'picture', data: json }];
    expect(rowOf(told, 'a')).toEqual(['a', MEMBER, MEMBER, MEMBER, null, 'kept', 30_000]);
    expect(rowOf(told, 'b')?.slice(1, 3)).toEqual(['somebody-gone', MEMBER]);
    expect(rowOf(told, 'b')?.[5]).toBe('expiring');
    expect(rowOf(told, 'c')?.[5]).toBe('paused');
  });

  it('is a problem while the store is away', async () => {
    const { ask, faults } = await fleetWorld();
    faults.refuse = true;
    for (const path of ['/api/v3/fleet', '/api/v3/targets/a', '/api/v3/doctor', '/api/v3/history'])
      expect((await ask('GET', path)).json).toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
});

describe('GET /api/v3/fleet/live', () => {
  it('says first how everything is, and then what changes', async () => {
    const { follow, hold, clock } = await fleetWorld();
    const { response, reader } = await follow();
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(reader.names()[0]).toBe('picture');
    expect(rowOf(reader.told, 'a')?.[5]).toBe('free');
    await hold('a');
    await clock.advance(TOLD_MS);
    expect(new Set(reader.names().slice(1))).toEqual(new Set(['change']));
    expect(rowOf(reader.told, 'a')?.slice(0, 3)).toEqual(['a', MEMBER, MEMBER]);
    await reader.leave();
  });

  it('tells of members that come, and of targets that go', async () => {
    const { follow, holdfast, store, clock } = await fleetWorld();
    const { reader } = await follow();
    await store.members.beat({ id: OTHER, attributes: { weight: 1 } }, BEAT);
    await holdfast.targets.remove('c');
    await clock.advance(2 * TOLD_MS);
    const changes = reader.told.map(
      ({ data }) => data as { members?: { id: string }[]; removed?: string[] },
    );
    const members = changes.flatMap((change) => change.members?.map(({ id }) => id) ?? []);
    expect(members).toContain(OTHER);
    expect(changes.flatMap(({ removed = [] }) => removed)).toEqual(['c']);
    await reader.leave();
  });

  it('says when the store does not answer, and when it does again', async () => {
    const { follow, faults, clock } = await fleetWorld();
    const { reader } = await follow();
    faults.refuse = true;
    await clock.advance(10_000);
    expect(reader.names()).toContain('stalled');
    expect(reader.names()).not.toContain('resumed');
    faults.refuse = false;
    await clock.advance(10_000);
    expect(reader.names()).toContain('resumed');
    expect(reader.isOver).toBe(false);
    await reader.leave();
  });

  it('begins with a picture for each, also for who comes later', async () => {
    const { follow, hold, clock } = await fleetWorld();
    const first = await follow();
    await hold('a');
    await clock.advance(TOLD_MS);
    const second = await follow();
    expect(second.reader.names()[0]).toBe('picture');
    expect(rowOf(second.reader.told, 'a')?.[1]).toBe(MEMBER);
    await hold('b');
    await clock.advance(TOLD_MS);
    for (const { reader } of [first, second]) expect(rowOf(reader.told, 'b')?.[1]).toBe(MEMBER);
    await first.reader.leave();
    await second.reader.leave();
  });

  it('takes so many with one token, and again when one has left', async () => {
    const { follow, ask, clock } = await fleetWorld({ events: { clientsPerToken: 2 } });
    const [first] = [await follow(), await follow()];
    const refused = await ask('GET', '/api/v3/fleet/live');
    expect([refused.status, refused.json.code]).toEqual([429, 'TOO_MANY_REQUESTS']);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect((await ask('GET', '/api/v3/fleet/live', { token: 'read' })).status).toBe(200);
    await first.reader.leave();
    await clock.advance(0);
    expect((await ask('GET', '/api/v3/fleet/live')).status).toBe(200);
  });

  it('drops who does not read, and says why', async () => {
    const { watch, clock } = await fleetWorld({ events: { queuedBytes: 1_024 } });
    const { reader } = await watch();
    await clock.advance(60_000);
    await reader.readAll();
    // Not even its good-bye was read in time.
    expect(String(reader.error)).toContain('too-slow');
  });

  it('keeps who has not yet read a picture that is larger than what may lie unread', async () => {
    const { watch, clock } = await fleetWorld({ events: { queuedBytes: 16 } });
    const { reader } = await watch();
    await clock.advance(0);
    await reader.readSome();
    expect(reader.isOver).toBe(false);
    await reader.leave();
  });

  it('ends with the token, and with the server', async () => {
    const { follow, app, clock } = await fleetWorld({
      tokens: [
        { id: 'short', token: 'token-of-the-admin', scope: 'v3:admin' },
        {
          id: 'ends',
          token: 'token-of-the-reader',
          scope: 'v3:read',
          expiresAt: '2026-01-01T00:00:10Z',
        },
      ],
    });
    const short = await follow({ token: 'read' });
    const long = await follow();
    await clock.advance(11_000);
    expect(short.reader.told.at(-1)).toEqual({ event: 'bye', data: { reason: 'token-expired' } });
    expect(long.reader.isOver).toBe(false);
    await app.close();
    await clock.advance(0);
    expect(long.reader.told.at(-1)).toEqual({ event: 'bye', data: { reason: 'closing' } });
  });

  it('is alive while nothing happens', async () => {
    const { follow, clock } = await fleetWorld();
    const { reader } = await follow();
    const before = reader.told.length;
    await clock.advance(5_000);
    expect(reader.told.length).toBeGreaterThan(before);
    await reader.leave();
  });
});

describe('GET /api/v3/targets/{id}', () => {
  it('says who owns it and why, and what its last polls gave', async () => {
    const { ask, hold, store, clock } = await fleetWorld();
    const { fence } = await hold('a');
    const at = clock.wallMs();
    const recent = [
      [at - 1_000, 7, 0],
      [at, 12.5, 1],
    ];
    const result = { at, by: MEMBER, ok: true, tookMs: 12.5, value: { up: true }, recent };
    await store.records.put('result', [{ id: 'a', value: result }], { timeoutMs: 1_000 });
    const { status, json } = await ask('GET', '/api/v3/targets/a', { token: 'read' });
    expect(status).toBe(200);
    expect(json).toEqual({
      id: 'a',
      owner: MEMBER,
      planned: MEMBER,
      preferred: MEMBER,
      pinned: null,
      reason: 'kept',
      expiresInMs: 30_000,
      why: expect.stringContaining('keeps this target'),
      isPaused: false,
      url: 'http://x/',
      everyMs: null,
      timeoutMs: null,
      command: null,
      fence: String(fence),
      lastResult: { at, by: MEMBER, ok: true, tookMs: 12.5, value: { up: true } },
      recent: [
        { at: at - 1_000, tookMs: 7, ok: false },
        { at, tookMs: 12.5, ok: true },
      ],
    });
  });

  it('shows no password of an address, nor of an error', async () => {
    const { ask, holdfast, store, clock } = await fleetWorld();
    const url = 'http://user:canary@10.0.0.1/x';
    await store.records.put('session', [{ id: 'foreign', value: { url } }], { timeoutMs: 1_000 });
    const result = { at: clock.wallMs(), by: MEMBER, ok: false, tookMs: 1, error: `no ${url}` };
    await store.records.put('result', [{ id: 'foreign', value: result }], { timeoutMs: 1_000 });
    expect((await holdfast.targets.get('foreign'))?.url).toBe(url);
    const { status, text } = await ask('GET', '/api/v3/targets/foreign');
    expect(status).toBe(200);
    expect(text).not.toContain('canary');
  });

  it.each(['nothing', '__proto__', 'constructor'])('is not found as %s', async (id) => {
    const { ask } = await fleetWorld();
    expect((await ask('GET', `/api/v3/targets/${id}`)).json.code).toBe('NOT_FOUND');
  });

  it.each(['%3Cscript%3E', 'a%2Fb', '%00', '%F0%9F%90%99', 'x'.repeat(129)])(
    'is not even looked for as %.20s',
    async (id) => {
      const { ask, calls } = await fleetWorld();
      calls.length = 0;
      expect((await ask('GET', `/api/v3/targets/${id}`)).status).toBe(400);
      expect(calls).toEqual([]);
    },
  );
});

describe('POST /api/v3/targets/{id}/revoke', () => {
  it('takes a target from its holder, with a reason', async () => {
    const { ask, hold } = await fleetWorld();
    const { fence } = await hold('a');
    const path = '/api/v3/targets/a/revoke';
    const { status, json } = await ask('POST', path, { body: { reason: 'stuck' } });
    expect(status).toBe(200);
    expect(json).toMatchObject({ key: 'a', revoked: true, holder: MEMBER, mayActForMs: 30_000 });
    expect(BigInt(json.fence)).toBeGreaterThan(BigInt(fence));
    expect((await ask('GET', '/api/v3/targets/a')).json).toMatchObject({
      owner: null,
      reason: 'revoked',
    });
    const again = await ask('POST', path, { body: { reason: 'stuck' } });
    expect(again.json).toMatchObject({ key: 'a', revoked: false, holder: null });
  });

  it('needs a reason, and a target', async () => {
    const { ask, calls } = await fleetWorld();
    calls.length = 0;
    const revoke = (id: string, body: object) =>
      ask('POST', `/api/v3/targets/${id}/revoke`, { body });
    expect((await revoke('a', {})).json.errors[0].field).toBe('reason');
    expect(calls).toEqual([]);
    expect((await revoke('nothing', { reason: 'x' })).json.code).toBe('NOT_FOUND');
  });
});

describe('POST /api/v3/targets/{id}/transfer', () => {
  async function movingWorld() {
    const world = await fleetWorld();
    const acts: unknown[] = [];
    world.holdfast.on('operator.acted', (act) => acts.push(act));
    await world.store.members.beat({ id: OTHER, attributes: { weight: 1 } }, BEAT);
    await world.hold('a');
    const transfer = (id: string, body: object, token: 'admin' | 'write' = 'admin') =>
      world.ask('POST', `/api/v3/targets/${id}/transfer`, { body, token });
    return { ...world, acts, transfer };
  }

  it('orders it, for the holder to carry out, and is told of', async () => {
    const { ask, acts, transfer } = await movingWorld();
    expect((await transfer('a', { to: OTHER }, 'write')).status).toBe(403);
    const { status, json } = await transfer('a', { to: OTHER, reason: 'closer' });
    expect([status, json]).toEqual([202, { target: 'a', from: MEMBER, to: OTHER }]);
    const by = 'api:admin';
    const act = { action: 'target.transfer', subject: 'a', to: OTHER, by, reason: 'closer' };
    expect(acts).toEqual([act]);
    const shown = { owner: MEMBER, planned: OTHER, pinned: OTHER };
    expect((await ask('GET', '/api/v3/targets/a')).json).toMatchObject(shown);
    const { json: fleet } = await ask('GET', '/api/v3/fleet');
    expect(rowOf([{ event: 'picture', data: fleet }], 'a')?.[4]).toBe(OTHER);
    const unpin = () => ask('POST', '/api/v3/targets/a/unpin');
    expect((await unpin()).json).toEqual({ target: 'a', changed: true });
    expect((await unpin()).json).toEqual({ target: 'a', changed: false });
    expect((await ask('GET', '/api/v3/targets/a')).json.pinned).toBeNull();
  });

  it('is not done for who is not there, or may not have it', async () => {
    const { store, acts, transfer } = await movingWorld();
    expect((await transfer('nothing', { to: OTHER })).json.code).toBe('NOT_FOUND');
    expect((await transfer('a', { to: 'nobody' })).json.code).toBe('NOT_FOUND');
    await store.members.beat({ id: OTHER, attributes: { draining: true } }, BEAT);
    const refused = await transfer('a', { to: OTHER });
    expect([refused.status, refused.json.code]).toEqual([409, 'CONFLICT']);
    expect(acts).toEqual([]);
  });

  it.each([
    {},
    { to: '' },
    { to: 7 },
    { to: 'a\nb' },
    { to: 'x', reason: '' },
    { to: 'x', force: true },
  ])('is refused for %j without asking the store', async (body) => {
    const { calls, transfer } = await movingWorld();
    calls.length = 0;
    expect((await transfer('a', body)).status).toBe(400);
    expect(calls).toEqual([]);
  });
});
