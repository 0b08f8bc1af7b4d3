import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { apiErrorOf } from '../../src/client/api-error.ts';
import type { EventsQuery, FollowedEvent } from '../../src/client/messages.ts';
import { ANA, entry } from '../support/log-entries.ts';

// What the page knows asks the browser where it is.
vi.stubGlobal('location', { href: 'http://localhost/', hash: '' });
vi.stubGlobal('addEventListener', () => {});
const kept = { getItem: () => null, removeItem: () => {} };
vi.stubGlobal('sessionStorage', kept);
vi.stubGlobal('localStorage', kept);

const { access, client } = await import('../../dashboard/src/data/access.ts');
const { events, feedLostAtMs, followEvents } = await import('../../dashboard/src/data/events.ts');
const { seenAtMs, followFleet, trouble } = await import('../../dashboard/src/data/fleet.ts');
const { hearServerTime, serverWallOf } = await import('../../dashboard/src/data/server-time.ts');

let page: AbortController;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  page = new AbortController();
  events.length = 0;
  feedLostAtMs.value = null;
  access.value = { kind: 'entering' };
});
afterEach(() => {
  page.abort();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const refusal = (status: number) => apiErrorOf(status, '{}', null);

/** A stream that is connected, brings these, and stays open; or fails with an error. */
function streams(...each: readonly (readonly FollowedEvent[] | Error)[]) {
  const queries: EventsQuery[] = [];
  vi.spyOn(client, 'events').mockImplementation(async function* (query: EventsQuery = {}) {
    const brings = each[queries.length] ?? [];
    queries.push(query);
    if (brings instanceof Error) throw brings;
    query.onConnection?.('connected');
    yield* brings;
    await new Promise((resolve) => query.signal?.addEventListener('abort', resolve));
  });
  return queries;
}

it('the page follows events for as long as it is open, though the first requests failed', async () => {
  const first = entry('member.joined', 1, ANA);
  const history = vi.spyOn(client, 'history');
  history.mockRejectedValueOnce(new Error('no answer')).mockResolvedValue({ events: [first] });
  const second = entry('member.left', 2, ANA);
  const queries = streams(refusal(500), [{ kind: 'event', event: second }]);
  void followEvents(page.signal);
  await vi.advanceTimersByTimeAsync(100);
  expect(feedLostAtMs.value).not.toBeNull();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(history).toHaveBeenCalledTimes(2);
  expect(queries.map(({ after }) => after)).toEqual([first.position, first.position]);
  expect(events).toEqual([first, second]);
  expect(feedLostAtMs.value).toBeNull();
});

it('the page says for how long no events have come, and asks for nobody’s token twice', async () => {
  vi.spyOn(client, 'history').mockResolvedValue({ events: [] });
  const queries = streams(refusal(500), refusal(500), refusal(401));
  void followEvents(page.signal);
  await vi.advanceTimersByTimeAsync(0);
  const lostAtMs = feedLostAtMs.value;
  await vi.advanceTimersByTimeAsync(3_000);
  expect([feedLostAtMs.value, lostAtMs === null]).toEqual([lostAtMs, false]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(queries).toHaveLength(3);
  expect(access.value.kind).toBe('out');
});

it('the page follows the fleet again after an answer that it did not expect', async () => {
  let asked = 0;
  const picture = { at: 5_000_000, roundTripMs: 1, members: [], targets: [] };
  vi.spyOn(client, 'fleetLive').mockImplementation(async function* () {
    asked++;
    if (asked === 1) throw refusal(500);
    yield { kind: 'picture', picture };
    await new Promise(() => {});
  });
  void followFleet(page.signal);
  await vi.advanceTimersByTimeAsync(0);
  expect([trouble.value === null, seenAtMs.value]).toEqual([false, null]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(trouble.value).toBeNull();
  expect(seenAtMs.value).not.toBeNull();
});

it('times of instances are compared with the server’s clock, not with that of a browser an hour behind', () => {
  const nowMs = performance.now();
  const serverMs = performance.timeOrigin + nowMs + 3_600_000;
  hearServerTime(serverMs, nowMs);
  expect(serverWallOf(nowMs)).toBe(serverMs);
  // What the network adds does not make times jump.
  hearServerTime(serverMs + 500, nowMs);
  expect(serverWallOf(nowMs)).toBe(serverMs);
});
