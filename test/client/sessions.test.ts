import { describe, expect, it } from 'vitest';
import { HoldfastClient, type RunSession, type SessionState } from '../../src/client/index.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { cut, json, problem, ScriptedServer } from '../support/scripted-server.ts';

function sessionIn(state: SessionState, id = 's-1'): RunSession {
  return {
    id,
    kind: 'live',
    tenant: 'default',
    serviceRef: 'a',
    profile: 'default',
    state,
    reason: null,
    outcome: null,
    worker: null,
    slot: null,
    clients: 1,
    revision: 1,
    losses: 0,
    failures: 0,
    key: 'x',
    createdAt: '2026-11-15T12:00:00.000Z',
    changedAt: '2026-11-15T12:00:00.000Z',
  };
}

const shows = (state: SessionState) => json(200, sessionIn(state));

function clientOf({ url }: { url: string }): HoldfastClient {
  return new HoldfastClient({ url, random: { next: () => 0 }, retries: 1 });
}

describe('a client', () => {
  it('reads one session, and null where there is none', async () => {
    await using server = await ScriptedServer.start(shows('NEW'), problem(404, 'not-found'));
    const client = clientOf(server);
    expect(await client.session('a:b~c')).toEqual(sessionIn('NEW'));
    expect(await client.session('b')).toBeNull();
    expect(server.heard[0]?.path).toBe('/api/v3/sessions/a%3Ab~c');
  });

  it('reads sessions page after page, and no further than it is asked to', async () => {
    const page = (ids: string[], cursor?: string) =>
      json(200, { sessions: ids.map((id) => sessionIn('NEW', id)), ...(cursor && { cursor }) });
    await using server = await ScriptedServer.start(
      ...[page(['a', 'b'], 'one'), page([], 'two'), page(['c'])],
      ...[page(['d', 'e'], 'more')],
    );
    const client = clientOf(server);
    const ids: string[] = [];
    const query = { kind: 'live', state: ['NEW', 'RUNNING'], limit: 2 } as const;
    for await (const { id } of client.sessions(query)) ids.push(id);
    expect(ids).toEqual(['a', 'b', 'c']);
    const search = '/api/v3/sessions?kind=live&state=NEW&state=RUNNING&limit=2';
    const asked = server.heard.map(({ path }) => path);
    expect(asked).toEqual([search, `${search}&cursor=one`, `${search}&cursor=two`]);
    for await (const { id } of client.sessions()) {
      expect(id).toBe('d');
      break;
    }
    expect(server.heard).toHaveLength(4);
  });
});

describe('who waits for a session', () => {
  it('I-10 sees by polling that it runs', async () => {
    await using server = await ScriptedServer.start(
      ...[shows('NEW'), shows('NEW'), shows('STARTING'), shows('RUNNING')],
    );
    const session = await clientOf(server).waitFor('s-1', { until: 'RUNNING' });
    expect(session.state).toBe('RUNNING');
    expect(server.heard).toHaveLength(4);
  });

  it('I-10 sees that it has ended instead, and why', async () => {
    const ended = { ...sessionIn('ENDED'), reason: 'R_LEASE_BUSY', outcome: 'REJECTED_BUSY' };
    await using server = await ScriptedServer.start(shows('NEW'), json(200, ended));
    const session = await clientOf(server).waitFor('s-1', { until: 'RUNNING' });
    expect(session).toMatchObject({ state: 'ENDED', reason: 'R_LEASE_BUSY' });
  });

  it('does not take running for its end', async () => {
    await using server = await ScriptedServer.start(shows('RUNNING'), shows('ENDED'));
    const session = await clientOf(server).waitFor('s-1', { until: 'ENDED' });
    expect(session.state).toBe('ENDED');
  });

  it('continues to ask while the server is unavailable', async () => {
    const away = problem(503, 'store-unavailable');
    await using server = await ScriptedServer.start(
      ...[away, away, cut, cut, away, shows('RUNNING')],
    );
    const session = await clientOf(server).waitFor('s-1', { until: 'RUNNING' });
    expect(session.state).toBe('RUNNING');
  });

  it('is told when it takes too long, and how it was then', async () => {
    await using server = await ScriptedServer.start(shows('STARTING'));
    const call = clientOf(server).waitFor('s-1', { until: 'RUNNING', timeout: 200 });
    await expect(call).rejects.toMatchObject({ code: 'WAITED', state: 'STARTING' });
  });

  it('is told at once that there is none, or that it is polled', async () => {
    const polled = { id: 'p', kind: 'poll', isPaused: false, revision: 1 };
    await using server = await ScriptedServer.start(problem(404, 'not-found'), json(200, polled));
    const client = clientOf(server);
    const unknown = client.waitFor('s-1', { until: 'RUNNING' });
    await expect(unknown).rejects.toMatchObject({ status: 404, code: 'NOT_FOUND' });
    const other = client.waitFor('p', { until: 'ENDED' });
    await expect(other).rejects.toMatchObject({ code: 'CONFIG_INVALID', field: 'id' });
  });

  it('looks less often as time goes by, and is ended by its signal', async () => {
    const pausesMs: number[] = [];
    const over = new AbortController();
    await using server = await ScriptedServer.start((response, heard) => {
      shows('NEW')(response, heard);
      if (server.heard.length === 8) over.abort(new Error('enough'));
    });
    const fake = new FakeClock();
    const clock = {
      monotonicMs: () => fake.monotonicMs(),
      wallMs: () => fake.wallMs(),
      // An attempt may take 10 s: what is shorter is a pause, and is over at once.
      after: (ms: number, run: () => void) => {
        if (ms >= 10_000) return fake.after(ms, run);
        pausesMs.push(ms);
        setImmediate(run);
        return { cancel: () => {} };
      },
    };
    const client = new HoldfastClient({ url: server.url, clock, random: { next: () => 1 } });
    const call = client.waitFor('s-1', { until: 'RUNNING', signal: over.signal });
    await expect(call).rejects.toThrow('enough');
    expect(pausesMs.slice(0, 7)).toEqual([100, 200, 400, 800, 1_600, 2_000, 2_000]);
  });
});
