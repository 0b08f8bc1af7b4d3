import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { hostMs } from '../support/host-clock.ts';
import { byTarget } from '../support/poll-record.ts';
import { until } from '../support/until.ts';
import { CALM_MS, CRASH_MS, type TestFleet } from './support/fleet.ts';
import { STORES, useFleet } from './support/story.ts';
import { deviceIds, prefixedIds, uuids } from './support/target-ids.ts';

leaveNothingBehind();

/** Many targets and few processors: polled less often than elsewhere. */
const EVERY_MS = 500;
const GAP_MS = CALM_MS + EVERY_MS;

/** Waits until all have been polled; says how long each took from the moment it was asked for, the shortest first. */
async function waitsOf(fleet: TestFleet, asked: ReadonlyMap<string, number>): Promise<number[]> {
  await fleet.untilPolled([...asked.keys()]);
  const known = byTarget(fleet.polls);
  const waits = [...asked].map(([id, askedMs]) => {
    const first = known.get(id)?.find(({ startMs }) => startMs >= askedMs);
    return (first?.startMs ?? Infinity) - askedMs;
  });
  return waits.sort((a, b) => a - b);
}

/** In well under a second; those at the end of a line on a busy machine may take longer. */
function expectSoon(waits: readonly number[]): void {
  expect(waits[Math.floor(waits.length / 2)]).toBeLessThan(500);
  expect(waits.at(-1)).toBeLessThan(2_000);
}

/** Waits until nobody owns any of them, and sees that nobody polls them from then on. */
async function untilLeftAlone(fleet: TestFleet, ids: readonly string[]): Promise<void> {
  const gone = new Set(ids);
  const isReleased = async () => {
    const owned = await Promise.all([...fleet.members].map((member) => member.owned()));
    return !owned.flat().some((id) => gone.has(id));
  };
  await until(isReleased, { what: `${ids.length} targets to be let go of`, deadlineMs: 5_000 });
  const fromMs = hostMs();
  await fleet.untilPolled();
  const late = fleet.polls.filter(({ target, startMs }) => gone.has(target) && startMs >= fromMs);
  expect(late).toEqual([]);
}

describe.each(STORES)('two hundred targets on %s', (kind) => {
  const use = useFleet(kind, { poller: { every: EVERY_MS } });
  const first = [...deviceIds(70), ...uuids(50), ...prefixedIds(30)];
  const later = deviceIds(50, 1_000);

  it('FR-011 are shared by three as they are added', async () => {
    const fleet = use();
    await fleet.add(first);
    await fleet.start(3);
    await fleet.untilSteady();
    fleet.phase('fifty more', GAP_MS);
    const askedMs = hostMs();
    await fleet.add(later);
    expectSoon(await waitsOf(fleet, new Map(later.map((id) => [id, askedMs]))));
    await fleet.untilSteady();
  });

  it('P-02 are paused while one joins: their leases are released, and the rest is shared; resumed, they are polled at once', async () => {
    const fleet = use();
    const { targets: sessions } = await fleet.operator();
    const paused = first.slice(0, 40);
    const joining = fleet.start(1);
    fleet.unwant(paused);
    for (const id of paused) await sessions.pause(id);
    await untilLeftAlone(fleet, paused);
    await joining;
    await fleet.untilSteady();
    const asked = new Map<string, number>();
    for (const id of paused) {
      asked.set(id, hostMs());
      await sessions.resume(id);
    }
    fleet.want(paused);
    expectSoon(await waitsOf(fleet, asked));
    await fleet.untilSteady();
  });

  it('P-02 SC-006 are deleted while one is killed and one is stopped', async () => {
    const fleet = use();
    const { targets: sessions } = await fleet.operator();
    const removed = [...later, ...first.slice(100, 120)];
    const [killed, stopped] = fleet.members;
    fleet.phase('one is killed, one is stopped', CRASH_MS + EVERY_MS);
    fleet.unwant(removed);
    const leaving = [killed && fleet.kill(killed), stopped && fleet.stop(stopped)];
    for (const id of removed) await sessions.remove(id);
    await Promise.all(leaving);
    await untilLeftAlone(fleet, removed);
    await fleet.untilSteady();
  });
});

describe('sessions that another program writes', () => {
  const use = useFleet('redis', { poller: { discovery: 500 } });
  const ids = uuids(4);
  /** Found at the next heartbeat, which is a third of the TTL away, and then polled. */
  const FOUND_MS = 2_500;

  const write = (id: string, value: unknown) =>
    use().redis.cli(
      'SET',
      `session:${id}`,
      typeof value === 'string' ? value : JSON.stringify(value),
    );

  it('FR-011 are found, as are their changes', async () => {
    const fleet = use();
    await fleet.start(2);
    const askedMs = hostMs();
    for (const id of ids) await write(id, { url: fleet.server.urlOf(id), isPaused: false });
    fleet.want(ids);
    const waits = await waitsOf(fleet, new Map(ids.map((id) => [id, askedMs])));
    expect(Math.max(...waits)).toBeLessThan(FOUND_MS);
    await fleet.untilSteady();
    const [paused = '', removed = ''] = ids;
    fleet.phase('calm', CALM_MS);
    fleet.unwant([paused, removed]);
    await write(paused, { url: fleet.server.urlOf(paused), isPaused: true });
    await fleet.redis.cli('DEL', `session:${removed}`);
    await untilLeftAlone(fleet, [paused, removed]);
  });

  it('P-04 and can not be read are reported and skipped: the others go on, and what could be read before is not deleted', async () => {
    const fleet = use();
    const known = ids[2] ?? '';
    await write(known, 'no JSON at all');
    await write('broken', { url: 5 });
    const isReported = () => {
      const told = [...fleet.members].flatMap((member) => member.told('session.unreadable'));
      const reported = new Set(told.map(({ session }) => session));
      return reported.has(known) && reported.has('broken');
    };
    await until(isReported, { what: 'both to be reported' });
    await fleet.untilSteady();
    expect(fleet.polls.filter(({ target }) => target === 'broken')).toEqual([]);
  });
});
