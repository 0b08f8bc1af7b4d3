import { describe, expect, it } from 'vitest';
import { serverWorld } from '../support/server-world.ts';

const WRITTEN_MS = 300;

async function historyWorld() {
  const world = await serverWorld({ history: 'on' });
  const { ask, clock, holdfast, store } = world;
  const add = async (...ids: string[]) => {
    for (const id of ids) await holdfast.targets.add({ id, url: 'http://x/' });
    await clock.advance(WRITTEN_MS);
  };
  const history = async (search = '', token: 'admin' | 'read' | 'acme' = 'admin') =>
    (await ask('GET', `/api/v3/history${search}`, { token })).json;
  /** What somebody else wrote down, many at once. */
  const append = (count: number, entry: (i: number) => object) =>
    store.log.append(
      Array.from({ length: count }, (_, i) => ({ at: i, instance: 'other', ...entry(i) })),
      { timeoutMs: 1_000 },
    );
  return { ...world, add, append, history };
}

function about(events: readonly { session?: string }[]) {
  return events.map(({ session }) => session);
}

describe('GET /api/v3/history', () => {
  it('shows the latest first, and the way to what came before', async () => {
    const { add, history } = await historyWorld();
    await add('a', 'b', 'c');
    const first = await history('?limit=2');
    expect(about(first.events)).toEqual(['c', 'b']);
    expect(first.events[0]).toMatchObject({
      event: 'session.added',
      at: expect.any(Number),
      position: expect.any(String),
      instance: expect.any(String),
    });
    const second = await history(`?limit=2&before=${first.before}`);
    expect(about(second.events)).toEqual(['a']);
    expect(second.before).toBeUndefined();
  });

  it('shows only events that the filter passes', async () => {
    const { add, ask, history } = await historyWorld();
    await add('a', 'b');
    await ask('POST', '/api/v3/sessions/a/pause');
    await add('c');
    expect(about((await history('?session=a&event=session')).events)).toEqual(['a', 'a']);
    expect(about((await history('?target=b')).events)).toEqual(['b']);
    const paused = await history('?event=session.paused&event=session.removed');
    expect(about(paused.events)).toEqual(['a']);
    expect((await history('?member=nobody')).events).toEqual([]);
  });

  it('shows the acts of operators on a target or a member that the filter names', async () => {
    const { ask, add, history, store, clock } = await historyWorld();
    await store.members.beat({ id: 'api-1', attributes: {} }, { ttlMs: 60_000, timeoutMs: 1_000 });
    await add('a');
    await ask('POST', '/api/v3/sessions/a/pause');
    await ask('POST', '/api/v3/members/api-1/drain');
    await clock.advance(WRITTEN_MS);
    const [ofTarget] = (await history('?target=a&event=operator')).events;
    expect(ofTarget).toMatchObject({ action: 'session.pause', subject: 'a', by: 'api:admin' });
    const [ofMember] = (await history('?member=api-1')).events;
    expect(ofMember).toMatchObject({ action: 'member.drain', subject: 'api-1' });
  });

  it('reads a bounded part of the log for one request, and returns where to continue', async () => {
    const { append, calls, history } = await historyWorld();
    await append(1, () => ({ event: 'session.added', session: 'old' }));
    for (let i = 0; i < 6; i++) await append(1_000, () => ({ event: 'session.changed' }));
    calls.length = 0;
    const first = await history('?event=session.added');
    expect(first.events).toEqual([]);
    expect(first.before).toEqual(expect.any(String));
    expect(calls.filter((call) => call === 'log.recall')).toHaveLength(5);
    const second = await history(`?event=session.added&before=${first.before}`);
    expect(about(second.events)).toEqual(['old']);
    expect(second.before).toBeUndefined();
  });

  it('I-18 shows a tenant what is of that tenant', async () => {
    const { append, history } = await historyWorld();
    await append(3, (i) => ({
      event: 'session.advanced',
      session: `s${i}`,
      ...(i < 2 && { tenant: ['acme', 'beta'][i] }),
    }));
    expect(about((await history('', 'acme')).events)).toEqual(['s0']);
    expect(about((await history('', 'read')).events)).toEqual(['s2']);
    expect(about((await history()).events)).toEqual(['s2', 's1', 's0']);
  });

  it.each([
    'before=',
    'before=a%20b',
    `before=${'1'.repeat(65)}`,
    'limit=0',
    'limit=1001',
    'limit=ten',
    'event=nonsense',
    'session=a&target=a',
    'session=%7Bx%7D',
    'from=now',
  ])('refuses ?%.30s without asking the store', async (search) => {
    const { ask, calls } = await historyWorld();
    calls.length = 0;
    expect((await ask('GET', `/api/v3/history?${search}`)).status).toBe(400);
    expect(calls).toEqual([]);
  });
});
