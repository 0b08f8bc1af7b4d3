import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { hostMs } from '../support/host-clock.ts';
import { firstPolls, moves } from '../support/poll-record.ts';
import { until } from '../support/until.ts';
import { CALM_MS, CRASH_MS, TTL_MS } from './support/fleet.ts';
import type { Member } from './support/member.ts';
import { STORES, useFleet } from './support/story.ts';
import { deviceIds, uuids } from './support/target-ids.ts';

leaveNothingBehind();

describe.each(STORES)('a ghost on %s, that beats and asks for nothing', (kind) => {
  const use = useFleet(kind);

  it('P-03 FR-014 costs nothing: others take what would be its share, and keep it', async () => {
    const fleet = use();
    await fleet.startOther('fleet-ghost.mjs', { ttlMs: TTL_MS });
    const ids = deviceIds(12);
    await fleet.add(ids);
    const ours = await fleet.start(3);
    await fleet.untilOwned(ours);
    await fleet.untilPolled();
    fleet.phase('with a ghost', CALM_MS);
    await fleet.untilStill();
    const fromMs = hostMs();
    await fleet.untilPolled(ids, 8);
    expect(moves(fleet.polls.filter(({ startMs }) => startMs >= fromMs))).toBe(0);
    // From whoever came first to where it stays, and not round in circles before that.
    expect(moves(fleet.polls)).toBeLessThanOrEqual(2 * ids.length);
  });

  it('FR-018 nor when one of the others is killed', async () => {
    const fleet = use();
    const [victim, ...others] = fleet.members;
    // The ghost is the first choice of some, and the next choice waits for it a little.
    fleet.phase('one is killed', CRASH_MS + 500);
    if (victim !== undefined) await fleet.kill(victim);
    await fleet.untilOwned(others);
    await fleet.untilPolled();
  });
});

describe('another implementation on the same Redis, that knows only the seeds', () => {
  const use = useFleet('redis', { poller: { discovery: 500 } });
  const ids = uuids(20);
  let foreign: Member | undefined;

  const ownedByForeign = async () => [...((await foreign?.owned()) ?? [])].sort();

  it('FR-007 FR-011 keeps what it holds when ours join, and ours take what it lets go of', async () => {
    const fleet = use();
    for (const id of ids) {
      const session = JSON.stringify({ id, url: fleet.server.urlOf(id) });
      await fleet.redis.cli('SET', `session:${id}`, session);
    }
    foreign = await fleet.startOther('fleet-foreign.mjs', { ttlMs: TTL_MS });
    await fleet.untilPolled(ids);
    fleet.want(ids);
    // It lets go at a tick of its own, and knows no signals: ours look again when its lease would have run out.
    fleet.phase('ours join', CRASH_MS);
    const ours = await fleet.start(2);
    const isShared = async () => {
      const owners = await fleet.untilOwned([foreign as Member, ...ours]);
      return new Set(owners.values()).size === 3;
    };
    await until(isShared, { what: 'all three to have some', deadlineMs: 15_000 });
    await fleet.untilStill();
    const held = await ownedByForeign();
    await fleet.untilPolled(ids, 8);
    expect(await ownedByForeign()).toEqual(held);
    expect(held.length).toBeGreaterThan(0);
    const { fleet: seen } = await fleet.operator();
    const { members } = await seen.view();
    expect(members.find(({ id }) => id === foreign?.id)).toMatchObject({
      isForeign: true,
      quota: 0,
    });
  });

  it('FR-001 FR-006 finds our leases and heartbeats under the names that it knows', async () => {
    const fleet = use();
    for (const member of fleet.members) {
      const beat = JSON.parse(String(await fleet.redis.cli('GET', `poll:node:${member.id}`)));
      expect(beat).toMatchObject({ weight: 1 });
      expect(await fleet.redis.cli('PTTL', `poll:node:${member.id}`)).toBeGreaterThan(0);
      for (const id of await member.owned()) {
        expect(await fleet.redis.cli('GET', `poll:lease:${id}`)).toBe(member.id);
        const leftMs = Number(await fleet.redis.cli('PTTL', `poll:lease:${id}`));
        expect(leftMs).toBeGreaterThan(0);
        expect(leftMs).toBeLessThanOrEqual(TTL_MS);
      }
    }
  });

  it('US2.1 is killed: ours poll its targets within the TTL and a second; back again, it is given nothing', async () => {
    const fleet = use();
    const held = await ownedByForeign();
    fleet.phase('the foreign one is killed', CRASH_MS);
    const fromMs = hostMs();
    if (foreign !== undefined) await fleet.kill(foreign);
    await fleet.untilBalanced();
    await fleet.untilPolled();
    const first = firstPolls(fleet.polls, { fromMs });
    const waits = held.map((id) => (first.get(id)?.startMs ?? Infinity) - fromMs);
    expect(Math.max(...waits)).toBeLessThan(TTL_MS + 1_000);
    foreign = await fleet.startOther('fleet-foreign.mjs', { ttlMs: TTL_MS });
    fleet.phase('it is back', CALM_MS);
    await fleet.untilPolled(ids, 10);
    expect(await ownedByForeign()).toEqual([]);
    await fleet.untilSteady();
  });
});
