import { describe, expect, it } from 'vitest';
import {
  type ClientOptions,
  type EventsQuery,
  type FollowedEvent,
  HoldfastClient,
} from '../../src/client/index.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { json, problem, ScriptedServer, silence, stream } from '../support/scripted-server.ts';
import { until } from '../support/until.ts';

const event = (position: string, more: object = {}) => ({
  position,
  at: 1,
  instance: 'ana',
  event: 'session.advanced',
  ...more,
});

function frame(position: string, more: object = {}): string {
  const { event: name, ...facts } = event(position, more);
  return `id: ${position}\nevent: ${name}\ndata: ${JSON.stringify({ event: name, ...facts })}\n\n`;
}

function clientOf({ url }: { url: string }, options: Partial<ClientOptions> = {}): HoldfastClient {
  return new HoldfastClient({ url, random: { next: () => 0 }, ...options });
}

/** What comes, until there are so many; then it is ended as its user would. */
async function some(
  client: HoldfastClient,
  count: number,
  query: EventsQuery = {},
): Promise<FollowedEvent[]> {
  const seen: FollowedEvent[] = [];
  for await (const one of client.events(query)) if (seen.push(one) === count) break;
  return seen;
}

const positions = (seen: readonly FollowedEvent[]) =>
  seen.map((one) => (one.kind === 'event' ? one.event.position : one.kind));

describe('who follows events', () => {
  it('gets them as they come, with their facts', async () => {
    const text = 'grüße 😀 \u2028';
    await using server = await ScriptedServer.start(
      stream(['retry: 1000\n\n', frame('1', { text }), ': ping\n\n', frame('2')]),
    );
    const seen = await some(clientOf(server), 2);
    expect(seen).toEqual([
      { kind: 'event', event: event('1', { text }) },
      { kind: 'event', event: event('2') },
    ]);
    expect(server.heard[0]?.headers).toMatchObject({ accept: 'text/event-stream' });
    await until(() => server.left === 1, { what: 'the stream to be left' });
  });

  it('asks for what it wants to hear', async () => {
    await using server = await ScriptedServer.start(stream([frame('1')]));
    const client = clientOf(server);
    const event = ['session', 'lease.lost'];
    await some(client, 1, { event, session: 's-1', member: 'ana', from: 'oldest' });
    await some(client, 1, { event: 'member', after: '7', from: 'oldest' });
    expect(server.heard.map(({ path }) => path)).toEqual([
      '/api/v3/events?from=oldest&event=session&event=lease.lost&session=s-1&member=ana',
      '/api/v3/events?event=member',
    ]);
    expect(server.heard[1]?.headers['last-event-id']).toBe('7');
  });

  it('gets each event whole, even if a chunk ends inside a character', async () => {
    const bytes = new TextEncoder().encode(frame('1', { text: 'ü€😀' }));
    const pieces = [...bytes].map((byte) => Uint8Array.of(byte));
    await using server = await ScriptedServer.start(stream(pieces));
    const [seen] = await some(clientOf(server), 1);
    expect(seen).toEqual({ kind: 'event', event: event('1', { text: 'ü€😀' }) });
  });

  it('loses none where it is cut off in the middle of a frame, and gets none twice', async () => {
    const half = frame('3').slice(0, 40);
    await using server = await ScriptedServer.start(
      stream([frame('1'), frame('2'), half], 'cut'),
      stream([frame('3'), frame('4')], 'ended'),
      stream([frame('5')]),
    );
    const seen = await some(clientOf(server), 5);
    expect(positions(seen)).toEqual(['1', '2', '3', '4', '5']);
    const lastIds = server.heard.map(({ headers }) => headers['last-event-id']);
    expect(lastIds).toEqual([undefined, '2', '4']);
  });

  it('comes back to where the server said it was, although nothing was for it', async () => {
    await using server = await ScriptedServer.start(
      stream(['id: 17\n\n', ': ping\n\nid: 19\n\n'], 'ended'),
      stream([frame('20')]),
    );
    const seen = await some(clientOf(server), 1);
    expect(positions(seen)).toEqual(['20']);
    expect(server.heard[1]?.headers['last-event-id']).toBe('19');
  });

  it('is told of a gap, and not of good-byes', async () => {
    await using server = await ScriptedServer.start(
      stream(
        ['event: gap\ndata: {}\n\n', frame('5'), 'event: bye\ndata: {"reason":"closing"}\n\n'],
        'ended',
      ),
      stream([frame('6')]),
    );
    const seen = await some(clientOf(server), 3, { after: '1' });
    expect(positions(seen)).toEqual(['gap', '5', '6']);
  });

  it('waits while the server is away, as long as that says', async () => {
    await using server = await ScriptedServer.start(
      problem(503, 'not-ready'),
      (response) => response.destroy(),
      problem(429, 'too-many-requests', { 'retry-after': '1' }),
      stream([frame('1')]),
    );
    const startMs = performance.now();
    expect(positions(await some(clientOf(server), 1))).toEqual(['1']);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(990);
  });

  it.each([400, 401, 403, 404, 500])('is told what will not get better: %i', async (status) => {
    await using server = await ScriptedServer.start(problem(status, 'unauthenticated'));
    const call = some(clientOf(server), 1);
    await expect(call).rejects.toMatchObject({ status, code: 'UNAUTHENTICATED' });
    expect(server.heard).toHaveLength(1);
  });

  it.each([
    ['no stream', json(200, {})],
    ['no JSON', stream(['data: {\n\n'])],
  ])('is told of an answer that is %s', async (_, step) => {
    await using server = await ScriptedServer.start(step);
    const call = some(clientOf(server), 1);
    await expect(call).rejects.toMatchObject({ code: 'UNEXPECTED_ANSWER' });
  });

  it('takes a stream that says nothing at all for dead, and comes back', async () => {
    await using server = await ScriptedServer.start(
      stream([frame('1')]),
      silence,
      stream([frame('2')]),
    );
    const clock = new FakeClock();
    const over = new AbortController();
    const seen: FollowedEvent[] = [];
    const following = (async () => {
      for await (const one of clientOf(server, { clock }).events({ signal: over.signal }))
        seen.push(one);
    })();
    await until(() => seen.length === 1, { what: 'the first event' });
    await clock.advance(44_999);
    expect(server.heard).toHaveLength(1);
    await clock.advance(1);
    const asked = (count: number) =>
      until(
        async () => {
          await clock.advance(0);
          return server.heard.length >= count;
        },
        { what: `request ${count}` },
      );
    await asked(2);
    // This one does not even answer.
    await clock.advance(10_000);
    await asked(3);
    await until(() => seen.length === 2, { what: 'the second event' });
    over.abort();
    await following;
    expect(positions(seen)).toEqual(['1', '2']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is ended by its signal, quietly, wherever it is', async () => {
    await using server = await ScriptedServer.start(
      stream([frame('1')]),
      problem(503, 'not-ready', { 'retry-after': '3600' }),
    );
    const over = new AbortController();
    for await (const _ of clientOf(server).events({ signal: over.signal })) over.abort();
    await until(() => server.left === 1, { what: 'the stream to be left' });
    const other = new AbortController();
    const waiting = some(clientOf(server), 1, { signal: other.signal });
    await until(() => server.heard.length === 2, { what: 'the refusal' });
    other.abort();
    expect(await waiting).toEqual([]);
    expect(await some(clientOf(server), 1, { signal: AbortSignal.abort() })).toEqual([]);
    expect(server.heard).toHaveLength(2);
  });
});
