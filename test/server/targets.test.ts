import { describe, expect, it } from 'vitest';
import { OperatorClient } from '../../src/client/index.ts';
import { serverWorld, TOKENS } from '../support/server-world.ts';

const URL_A = 'https://a.example/status';

describe('/api/v3/targets', () => {
  it('adds, lists, changes, pauses, resumes and removes a target', async () => {
    const { ask } = await serverWorld();
    const added = await ask('POST', '/api/v3/targets', {
      body: { id: 'a', url: URL_A, every: '30s' },
      token: 'write',
    });
    const target = { id: 'a', url: URL_A, everyMs: 30_000, isPaused: false, revision: 1 };
    expect(added).toMatchObject({ status: 201, json: target });
    expect(added.headers.get('location')).toBe('/api/v3/targets/a');
    expect(added.headers.get('deprecation')).toBe(null);
    const changed = await ask('PATCH', '/api/v3/targets/a', { body: { every: '1m' } });
    expect(changed.json).toMatchObject({ url: URL_A, everyMs: 60_000, isPaused: false });
    expect((await ask('POST', '/api/v3/targets/a/pause')).json.isPaused).toBe(true);
    expect((await ask('PATCH', '/api/v3/targets/a', { body: { isPaused: false } })).json).toEqual(
      expect.objectContaining({ isPaused: false, everyMs: 60_000 }),
    );
    expect((await ask('POST', '/api/v3/targets/a/resume')).json.isPaused).toBe(false);
    expect((await ask('GET', '/api/v3/targets')).json.targets).toHaveLength(1);
    expect((await ask('DELETE', '/api/v3/targets/a')).status).toBe(204);
    expect((await ask('DELETE', '/api/v3/targets/a')).json.code).toBe('NOT_FOUND');
  });

  it('B-04 takes, shows and changes the timeout of a target, and its command', async () => {
    const { ask, holdfast } = await serverWorld();
    const body = { id: 'a', url: URL_A, timeout: '2s', command: 'listen', data: { n: 1 } };
    const added = await ask('POST', '/api/v3/targets', { body });
    expect(added).toMatchObject({ status: 201, json: { timeoutMs: 2_000, command: 'listen' } });
    expect(added.json).not.toHaveProperty('data');
    expect(await holdfast.targets.get('a')).toMatchObject({ data: { data: { n: 1 } } });
    const changed = await ask('PATCH', '/api/v3/targets/a', { body: { timeout: 1_500 } });
    expect(changed.json).toMatchObject({ timeoutMs: 1_500, command: 'listen', url: URL_A });
    expect((await ask('GET', '/api/v3/targets')).json.targets).toMatchObject([
      { timeoutMs: 1_500, command: 'listen' },
    ]);
    expect((await ask('GET', '/api/v3/targets/a')).json).toMatchObject({
      timeoutMs: 1_500,
      command: 'listen',
    });
  });

  it('B-04 clears a field of a target with null, and leaves the others', async () => {
    const { ask, holdfast } = await serverWorld();
    const body = { id: 'a', url: URL_A, every: '30s', timeout: '2s', command: 'listen', data: {} };
    await ask('POST', '/api/v3/targets', { body });
    const change = { timeout: null, command: null, data: null };
    const changed = await ask('PATCH', '/api/v3/targets/a', { body: change });
    expect(changed.status).toBe(200);
    expect(changed.json).toMatchObject({ url: URL_A, everyMs: 30_000, isPaused: false });
    for (const field of ['timeoutMs', 'command']) expect(changed.json).not.toHaveProperty(field);
    expect(await holdfast.targets.get('a')).toMatchObject({ everyMs: 30_000, data: {} });
    await ask('PATCH', '/api/v3/targets/a', { body: { url: null, every: null } });
    const bare = await holdfast.targets.get('a');
    expect(bare).toMatchObject({ url: undefined, everyMs: undefined, revision: 3 });
    const paused = await ask('PATCH', '/api/v3/targets/a', { body: { isPaused: null } });
    expect(paused).toMatchObject({ status: 400, json: { errors: [{ field: 'isPaused' }] } });
    const added = await ask('POST', '/api/v3/targets', { body: { ...body, id: 'b', every: null } });
    expect(added).toMatchObject({ status: 400, json: { errors: [{ field: 'every' }] } });
  });

  it.each([
    [{ url: URL_A, timeout: '1ms' }, 'timeout', /a poll may take from 100 ms to 24 h/],
    [{ url: URL_A, timeout: '25h' }, 'timeout', /a poll may take from 100 ms to 24 h/],
    [{ url: URL_A, timeout: 'soon' }, 'timeout', /a poll may take/],
    [{ url: URL_A, timeout: true }, 'timeout', /must be milliseconds, or text such as 30s/],
    [{ command: ['sh'] }, 'command', /must be a string/],
    [{ command: 'sh -c id' }, 'command', /the name of a command is 1 to 32 letters/],
    [{ command: 'default' }, 'command', /is not 'default'/],
    [{ command: 'listen', data: [1] }, 'data', /must be an object/],
    [{ id: 'a' }, 'url', /is required without command/],
  ])(
    'B-04 refuses %j, names the field and its rule, and writes nothing',
    async (body, field, rule) => {
      const { ask, holdfast } = await serverWorld();
      await holdfast.targets.add({ id: 'b', url: URL_A });
      const refused = await ask('POST', '/api/v3/targets', { body });
      expect(refused).toMatchObject({ status: 400, json: { errors: [{ field }] } });
      expect(refused.json.errors[0].rule).toMatch(rule);
      if (!('id' in body)) {
        const { status } = await ask('PATCH', '/api/v3/targets/b', { body });
        expect(status).toBe(400);
      }
      expect((await holdfast.targets.list()).targets).toMatchObject([{ id: 'b', revision: 1 }]);
    },
  );

  it('lists targets in pages, in order of id, without sessions', async () => {
    const { ask } = await serverWorld();
    await ask('POST', '/api/v3/intents', { body: { type: 'stream.start', serviceRef: 'one' } });
    for (const id of ['c', 'a', 'b'])
      await ask('POST', '/api/v3/targets', { body: { id, url: URL_A } });
    const first = await ask('GET', '/api/v3/targets?limit=2');
    expect(first.json.targets.map(({ id }: { id: string }) => id)).toEqual(['a', 'b']);
    const rest = await ask('GET', `/api/v3/targets?cursor=${first.json.cursor}`);
    expect(rest.json).toMatchObject({ targets: [{ id: 'c' }] });
    expect(rest.json.cursor).toBe(undefined);
    expect((await ask('GET', '/api/v3/targets?cursor=aQ')).json.code).toBe('INVALID_REQUEST');
  });

  it('refuses unknown fields and values that break a rule', async () => {
    const { ask } = await serverWorld();
    await ask('POST', '/api/v3/targets', { body: { id: 'a', url: URL_A } });
    for (const body of [{ every: '1ms' }, { url: 'ftp://a' }, { id: 'b' }, { isPaused: 'no' }])
      expect((await ask('PATCH', '/api/v3/targets/a', { body })).status).toBe(400);
    expect((await ask('PATCH', '/api/v3/targets/none', { body: {} })).status).toBe(404);
  });
});

describe('targets under /api/v3/sessions', () => {
  it('still work, and name their successor', async () => {
    const { ask } = await serverWorld();
    const link = (path: string) => `</api/v3/targets${path}>; rel="successor-version"`;
    const got = [
      [await ask('POST', '/api/v3/sessions', { body: { id: 'a', url: URL_A } }), ''],
      [await ask('GET', '/api/v3/sessions/a'), '/a'],
      [await ask('GET', '/api/v3/sessions?kind=poll'), ''],
      [await ask('POST', '/api/v3/sessions/a/pause'), '/a/pause'],
      [await ask('DELETE', '/api/v3/sessions/a'), '/a'],
    ] as const;
    for (const [{ status, headers }, path] of got) {
      expect(status).toBeLessThan(300);
      expect(headers.get('deprecation')).toBe('true');
      expect(headers.get('link')).toBe(link(path));
    }
  });

  it('leave sessions of intents without a deprecation', async () => {
    const { ask } = await serverWorld();
    const intent = { type: 'stream.start', serviceRef: 'one' };
    const { json } = await ask('POST', '/api/v3/intents', { body: intent });
    const session = await ask('GET', json.links.self);
    expect(session.headers.get('deprecation')).toBe(null);
    const live = await ask('GET', '/api/v3/sessions?kind=live');
    expect(live.headers.get('deprecation')).toBe(null);
  });
});

it('OperatorClient.targets calls these routes', async () => {
  const { app } = await serverWorld();
  const { targets } = new OperatorClient({
    url: 'http://localhost',
    token: TOKENS.admin.token,
    fetch: async (input, init) => app.fetch(new Request(input as string, init)),
  });
  await targets.add({ id: 'a', url: URL_A });
  expect(await targets.change('a', { every: '1m' })).toMatchObject({ everyMs: 60_000 });
  expect(await targets.pause('a')).toMatchObject({ isPaused: true });
  expect(await targets.resume('a')).toMatchObject({ isPaused: false });
  const listed = [];
  for await (const target of targets.list()) listed.push(target.id);
  expect(listed).toEqual(['a']);
  expect(await targets.get('a')).toMatchObject({ id: 'a', owner: null, isPaused: false });
  await targets.remove('a');
});
