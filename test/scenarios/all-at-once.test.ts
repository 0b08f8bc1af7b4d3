import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { hostMs } from '../support/host-clock.ts';
import { firstPolls, moves } from '../support/poll-record.ts';
import { CALM_MS, CRASH_MS, TTL_MS } from './support/fleet.ts';
import { STORES, useFleet } from './support/story.ts';
import { deviceIds, prefixedIds, uuids } from './support/target-ids.ts';

leaveNothingBehind();

/** `{name}-{boot ns}-{8 hex}`. */
const INSTANCE_ID = /^m\d+-\d{19}-[0-9a-f]{8}$/;

describe.each(STORES)('five instances on %s', (kind) => {
  const use = useFleet(kind);
  const ids = deviceIds(10);

  it('US3.1 SC-001 start at once on ten targets: each has one owner, and each owner two', async () => {
    const fleet = use();
    await fleet.add(ids);
    await fleet.start(5);
    const owners = await fleet.untilSteady();
    expect(new Set(owners.values()).size).toBe(5);
    fleet.phase('calm', CALM_MS);
  });

  it('US3.2 US3.3 FR-001 FR-002 FR-003 who does not own a target can neither take it nor end its lease', async () => {
    const fleet = use();
    const before = await fleet.untilBalanced();
    const [id = ''] = ids;
    for (const member of fleet.members) {
      const isOwner = before.get(id) === member.id;
      expect(await member.tell('tryAcquire', { id })).toMatchObject({ acquired: isOwner });
      if (!isOwner) await member.tell('release', { id });
      const state = isOwner ? 'owned' : 'other';
      expect(await member.tell('info', { id })).toMatchObject({
        isOwned: isOwner,
        info: { sessionId: id, ownerId: before.get(id), state },
      });
    }
    expect(await fleet.untilSteady()).toEqual(before);
  });

  it('E5 US2.3 E3 FR-005 are all killed and restarted at once: with new ids they wait for the old leases to end, and own everything', async () => {
    const fleet = use();
    const before = [...fleet.members];
    fleet.phase('all restart', CRASH_MS);
    const killedMs = await fleet.kill(...before);
    const after = await fleet.start(5);
    await fleet.untilSteady();
    const names = [...before, ...after].map(({ id }) => id);
    expect(new Set(names).size).toBe(10);
    expect(names.filter((name) => !INSTANCE_ID.test(name))).toEqual([]);
    const waits = [...firstPolls(fleet.polls, { fromMs: killedMs }).values()].map(
      ({ startMs }) => startMs - killedMs,
    );
    // Renewed every third of the TTL, so none had less than half of it left.
    expect(Math.min(...waits)).toBeGreaterThan(TTL_MS / 2);
    expect(Math.max(...waits)).toBeLessThan(TTL_MS + 1_000);
  });

  it('SC-006 P-03 are restarted one after the other: nothing is missed, and each target moves a few times at most', async () => {
    const fleet = use();
    await fleet.untilSteady();
    fleet.phase('a rolling restart', CALM_MS);
    const fromMs = hostMs();
    for (const member of [...fleet.members]) {
      await fleet.start(1);
      await fleet.stop(member);
    }
    await fleet.untilSteady();
    // For each that leaves and each that comes, its share; a little more where one leaves before all is even again.
    const most = 2 * ids.length + 2 * 5;
    const since = fleet.polls.filter(({ startMs }) => startMs >= fromMs);
    expect(moves(since)).toBeLessThanOrEqual(most);
  });
});

describe.each([
  ['numbered', deviceIds(9)],
  ['random', uuids(9)],
  ['alike but for their end', prefixedIds(9)],
])('ids that are %s', (_, ids) => {
  const use = useFleet('redis');

  it('US4.1 SC-004 three instances own three of nine targets each', async () => {
    const fleet = use();
    await fleet.add(ids);
    await fleet.start(3);
    const owners = await fleet.untilSteady();
    fleet.phase('calm', CALM_MS);
    const shares = [...fleet.members].map(
      ({ id }) => [...owners.values()].filter((owner) => owner === id).length,
    );
    expect(shares).toEqual([3, 3, 3]);
  });
});
