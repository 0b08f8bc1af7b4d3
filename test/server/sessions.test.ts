import { describe, expect, it } from 'vitest';
import { sessionSchema } from '../../src/server/routes/json/schemas.ts';
import { type ServerWorld, serverWorld } from '../support/server-world.ts';

const PATH = '/api/v3/sessions';

function start({ ask }: ServerWorld, serviceRef: string) {
  return ask('POST', '/api/v3/intents', { body: { type: 'stream.start', serviceRef } });
}

/** The ids on every page, page by page. */
async function pages({ ask }: ServerWorld, query: string): Promise<string[][]> {
  const all: string[][] = [];
  let cursor: string | undefined;
  do {
    const at = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, json } = await ask('GET', `${PATH}?${query}${at}`);
    expect(status).toBe(200);
    all.push(json.sessions.map(({ id }: { id: string }) => id));
    cursor = json.cursor;
  } while (cursor !== undefined && all.length < 50);
  return all;
}

describe('a session that is polled', () => {
  it('is added, looked at, paused, resumed and deleted', async () => {
    const { ask, holdfast } = await serverWorld();
    const body = { url: 'https://example.com/a', id: 'a', every: '30s' };
    const added = await ask('POST', PATH, { token: 'write', body });
    const session = { id: 'a', kind: 'poll', url: body.url, everyMs: 30_000, isPaused: false };
    expect(added).toMatchObject({ status: 201, json: session });
    expect(added.headers.get('location')).toBe(`${PATH}/a`);
    expect((await ask('GET', `${PATH}/a`, { token: 'read' })).json).toEqual(added.json);
    expect((await ask('POST', `${PATH}/a/pause`, { token: 'write' })).json.isPaused).toBe(true);
    expect((await holdfast.targets.get('a'))?.isPaused).toBe(true);
    expect((await ask('POST', `${PATH}/a/resume`, { token: 'write' })).json.isPaused).toBe(false);
    const gone = await ask('DELETE', `${PATH}/a`, { token: 'write' });
    expect([gone.status, gone.text]).toEqual([204, '']);
    expect(await holdfast.targets.get('a')).toBeNull();
    for (const [method, path] of [
      ['GET', 'a'],
      ['DELETE', 'a'],
      ['POST', 'a/pause'],
      ['POST', 'a/resume'],
    ] as const)
      expect((await ask(method, `${PATH}/${path}`)).json).toMatchObject({ code: 'NOT_FOUND' });
  });

  it('is there once', async () => {
    const { ask } = await serverWorld();
    const body = { url: 'https://example.com/', id: 'a' };
    await ask('POST', PATH, { body });
    const again = await ask('POST', PATH, { body });
    expect(again).toMatchObject({ status: 409, json: { code: 'SESSION_EXISTS' } });
    const other = await ask('POST', PATH, { body: { url: body.url, isPaused: true } });
    expect(other.json).toMatchObject({ id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
  });

  it('keeps what its URL and its record say in confidence', async () => {
    const { ask, holdfast } = await serverWorld();
    await holdfast.targets.add({ id: 'a', url: 'http://me:hush@example.com/', apiKey: 'hush' });
    for (const path of [PATH, `${PATH}/a`]) {
      const { text } = await ask('GET', path);
      expect(text).toContain('http://***@example.com/');
      expect(text).not.toContain('hush');
    }
  });

  it.each([
    ['no URL', {}, ['url']],
    ['a URL that is none', { url: 'example' }, ['url']],
    ['a file', { url: 'file:///etc/passwd' }, ['url']],
    ['another protocol', { url: 'gopher://example.com/' }, ['url']],
    ['a script', { url: 'javascript:alert(1)' }, ['url']],
    ['a long URL', { url: `http://example.com/${'x'.repeat(9_000)}` }, ['url']],
    ['a number as URL', { url: 5 }, ['url']],
    ['a reserved id', { url: 'http://example.com/', id: '{x}y' }, ['id']],
    ['an empty id', { url: 'http://example.com/', id: '' }, ['id']],
    ['never', { url: 'http://example.com/', every: 0 }, ['every']],
    ['before', { url: 'http://example.com/', every: -5 }, ['every']],
    ['after 24 days', { url: 'http://example.com/', every: 2 ** 31 }, ['every']],
    ['a word', { url: 'http://example.com/', every: 'often' }, ['every']],
    ['a list', { url: 'http://example.com/', every: [1] }, ['every']],
    ['a half', { url: 'http://example.com/', isPaused: 'yes' }, ['isPaused']],
    [
      'more than that',
      { url: 'http://example.com/', kind: 'live', owner: 'me' },
      ['kind', 'owner'],
    ],
    ['several', { url: 'x:', every: '1', isPaused: 0 }, ['url', 'every', 'isPaused']],
  ])('is not: %s', async (_, body, fields) => {
    const { ask, calls } = await serverWorld();
    const got = await ask('POST', PATH, { body });
    expect(got.status).toBe(400);
    const told = got.json.errors.map(({ field }: { field: string }) => field);
    expect(told.sort()).toEqual([...fields].sort());
    expect(calls).toEqual([]);
  });

  it('is not for those of a tenant', async () => {
    const { ask, holdfast } = await serverWorld();
    await holdfast.targets.add({ id: 'a', url: 'http://example.com/' });
    expect((await ask('GET', `${PATH}/a`, { token: 'acme' })).status).toBe(404);
    expect((await ask('GET', PATH, { token: 'acme' })).json).toEqual({ sessions: [] });
    expect((await ask('GET', `${PATH}?kind=poll`, { token: 'acme' })).json.sessions).toEqual([]);
    expect((await ask('DELETE', `${PATH}/a`, { token: 'acme' })).status).toBe(403);
    expect((await ask('GET', PATH, { token: 'read' })).json.sessions).toHaveLength(1);
  });

  it('is told of where its record makes no sense', async () => {
    const { ask, holdfast, store } = await serverWorld();
    const value = { everyMs: 'often' };
    await store.records.put('session', [{ id: 'broken', value }], { timeoutMs: 1_000 });
    await holdfast.targets.add({ id: 'a', url: 'http://example.com/' });
    const { json } = await ask('GET', PATH);
    expect(json.sessions).toHaveLength(1);
    expect(json.unreadable).toEqual([{ id: 'broken', why: expect.stringContaining('everyMs') }]);
    const got = await ask('GET', `${PATH}/broken`);
    expect(got).toMatchObject({ status: 409, json: { code: 'CONFLICT' } });
    expect(got.text).not.toContain('often');
    expect((await ask('DELETE', `${PATH}/broken`)).status).toBe(204);
  });
});

describe('a session that came from an intent', () => {
  it('I-20 is shown with all that is known of it', async () => {
    const world = await serverWorld();
    const { sessionId } = (await start(world, 'one')).json;
    const { json } = await world.ask('GET', `${PATH}/${sessionId}`);
    expect(json).toEqual({
      id: sessionId,
      kind: 'live',
      tenant: 'default',
      key: 'one',
      serviceRef: 'one',
      profile: 'default',
      state: 'NEW',
      reason: null,
      outcome: null,
      worker: null,
      slot: null,
      clients: 1,
      createdAt: '2026-01-01T00:00:00.000Z',
      changedAt: '2026-01-01T00:00:00.000Z',
      revision: 1,
      losses: 0,
      failures: 0,
    });
    expect(sessionSchema.parse(json)).toEqual(json);
  });

  it('I-17 shows how far its pipeline is and how it ended, but not its process group', async () => {
    const world = await serverWorld();
    const { sessionId } = (await start(world, 'one')).json;
    const status = {
      reason: null,
      outcome: null,
      worker: 'w-1',
      slot: 'tuner:2',
      losses: 1,
      group: { group: 4_711, startedTicks: 1 },
      progress: { frames: 7 },
      detail: { tookMs: 3, code: 1, output: ['no such channel'] },
    };
    const advance = { ifRevision: 1, state: 'RUNNING', status: JSON.stringify(status) } as const;
    await world.store.intents.advance(sessionId, advance, { timeoutMs: 1_000 });
    const { json, text } = await world.ask('GET', `${PATH}/${sessionId}`);
    const { group, ...rest } = status;
    expect(json).toMatchObject({ ...rest, state: 'RUNNING' });
    expect(text).not.toContain('group');
    expect(sessionSchema.parse(json)).toEqual(json);
  });

  it('is stopped by an intent, and nothing else', async () => {
    const world = await serverWorld();
    const { sessionId } = (await start(world, 'one')).json;
    const at = `${PATH}/${sessionId}`;
    for (const [method, path] of [
      ['DELETE', at],
      ['POST', `${at}/pause`],
      ['POST', `${at}/resume`],
    ] as const) {
      const got = await world.ask(method, path);
      expect(got).toMatchObject({ status: 409, json: { code: 'SESSION_OF_INTENT' } });
      expect(got.json.detail).toContain('stream.stop');
    }
    expect((await world.ask('GET', at)).json.state).toBe('NEW');
  });
});

describe('the list of sessions', () => {
  it('has both sorts, each whole and in its order, however small the pages are', async () => {
    const world = await serverWorld();
    const started: string[] = [];
    for (let i = 0; i < 7; i++) {
      started.unshift((await start(world, `channel ${i}`)).json.sessionId);
      await world.clock.advance(1_000);
    }
    const polled = ['a', 'b', 'c:1', 'd~', 'e.f'];
    for (const id of polled) await world.holdfast.targets.add({ id, url: 'http://example.com/' });
    const all = [...started, ...polled];
    for (const limit of [1, 2, 3, 5, 7, 8, 12, 13, 1_000]) {
      const found = await pages(world, `limit=${limit}`);
      expect(found.flat()).toEqual(all);
      expect(Math.max(...found.map(({ length }) => length))).toBeLessThanOrEqual(limit);
    }
    expect((await pages(world, 'kind=poll&limit=2')).flat()).toEqual(polled);
    expect((await pages(world, 'kind=live&limit=2')).flat()).toEqual(started);
    expect((await pages(world, 'kind=vod')).flat()).toEqual([]);
  });

  it('has those only that are in certain states', async () => {
    const world = await serverWorld();
    await world.holdfast.targets.add({ id: 'a', url: 'http://example.com/' });
    const first = (await start(world, 'one')).json.sessionId;
    const second = (await start(world, 'two')).json.sessionId;
    const body = { type: 'stream.stop', sessionId: first };
    await world.ask('POST', '/api/v3/intents', { body });
    const ids = async (query: string) => (await pages(world, query)).flat().sort();
    expect(await ids('state=NEW')).toEqual([second]);
    expect(await ids('state=ENDED')).toEqual([first]);
    expect(await ids('state=ENDED,NEW')).toEqual([first, second].sort());
    expect(await ids('state=ENDED&state=NEW,RUNNING')).toEqual([first, second].sort());
    expect(await ids('state=RUNNING')).toEqual([]);
    expect(await ids('state=NEW&kind=poll')).toEqual([]);
  });

  it.each([
    ['limit=0', ['limit']],
    ['limit=1001', ['limit']],
    ['limit=-1', ['limit']],
    ['limit=1e2', ['limit']],
    ['limit=%2010', ['limit']],
    ['limit=0x10', ['limit']],
    ['limit=', ['limit']],
    ['limit=1&limit=2', ['limit']],
    ['kind=no%20kind', ['kind']],
    ['kind=9', ['kind']],
    ['key=a', ['key']],
    ['kind=live&key=', ['key']],
    ['kind=live&kind=vod', ['kind']],
    ['state=new', ['state.0']],
    ['state=', ['state.0']],
    ['state=NEW,', ['state.1']],
    ['cursor=', ['cursor']],
    ['cursor=garbage', ['cursor']],
    ['cursor=%00', ['cursor']],
    [`cursor=${'cA'.repeat(600)}`, ['cursor']],
    ['tenant=acme', ['tenant']],
    ['__proto__=1', ['__proto__']],
    ['constructor=1&limit=x', ['constructor', 'limit']],
  ])('is not given for ?%s', async (query, fields) => {
    const { ask, calls } = await serverWorld();
    const got = await ask('GET', `${PATH}?${query}`);
    expect(got.status).toBe(400);
    const told = got.json.errors.map(({ field }: { field: string }) => field);
    expect(told.sort()).toEqual([...fields].sort());
    expect(calls).toEqual([]);
  });

  it('continues from a cursor of another tenant only through its own sessions', async () => {
    const world = await serverWorld();
    for (const ref of ['one', 'two', 'three']) await start(world, ref);
    const { cursor } = (await world.ask('GET', `${PATH}?limit=1`)).json;
    const at = `${PATH}?limit=1&cursor=${cursor}`;
    expect((await world.ask('GET', at, { token: 'acme' })).json.sessions).toEqual([]);
    const polled = Buffer.from('p').toString('base64url');
    await world.holdfast.targets.add({ id: 'a', url: 'http://example.com/' });
    const seen = await world.ask('GET', `${PATH}?cursor=${polled}`, { token: 'acme' });
    expect(seen.json.sessions).toEqual([]);
  });
});

describe('an id in a path', () => {
  it.each([
    ['%7Bx%7Dy'],
    ['*'],
    ['a%0A'],
    ['a%00'],
    ['a%2Fb'],
    ['%F0%9F%A6%8A'],
    ['a%20b'],
    ['%ff'],
    ['%zz'],
    ['%'],
    ['x'.repeat(129)],
    ['x'.repeat(100_000)],
  ])('is refused: %s', async (id) => {
    const { ask, calls } = await serverWorld();
    expect((await ask('GET', `${PATH}/${id}`)).status).toBe(400);
    expect((await ask('DELETE', `${PATH}/${id}`)).status).toBe(400);
    expect((await ask('POST', `${PATH}/${id}/pause`)).status).toBe(400);
    expect(calls).toEqual([]);
  });

  it('may be a name that JavaScript knows, and is then only a name', async () => {
    const { ask } = await serverWorld();
    for (const id of ['__proto__', 'constructor', 'toString']) {
      expect((await ask('GET', `${PATH}/${id}`)).status).toBe(404);
      const body = { url: 'http://example.com/', id };
      expect((await ask('POST', PATH, { body })).status).toBe(201);
      expect((await ask('GET', `${PATH}/${id}`)).json.id).toBe(id);
      expect((await ask('DELETE', `${PATH}/${id}`)).status).toBe(204);
    }
  });
});
