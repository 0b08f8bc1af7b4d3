import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { hostMs } from '../support/host-clock.ts';
import { firstPolls, moves, type Poll } from '../support/poll-record.ts';
import { until } from '../support/until.ts';
import { CALM_MS, CRASH_MS, type TestFleet, TTL_MS } from './support/fleet.ts';
import type { Member } from './support/member.ts';
import { STORES, useFleet } from './support/story.ts';
import { deviceIds } from './support/target-ids.ts';

leaveNothingBehind();

const IDS = deviceIds(30);

/** The one that has taken part for longest. */
function oldestOf(fleet: TestFleet): Member {
  const [member] = fleet.members;
  if (member === undefined) throw new Error('nobody is left');
  return member;
}

function ownedBy(owners: ReadonlyMap<string, string>, { id }: Member): string[] {
  return [...owners].filter(([, owner]) => owner === id).map(([target]) => target);
}

/** How long after a moment each of the targets was polled by somebody else, at worst. */
function worstTakeoverMs(
  polls: readonly Poll[],
  { targets, fromMs, from }: { targets: readonly string[]; fromMs: number; from: Member },
): number {
  const first = firstPolls(polls, { fromMs, except: from.id });
  const waits = targets.map((target) => (first.get(target)?.startMs ?? Infinity) - fromMs);
  return Math.max(...waits);
}

describe.each(STORES)('a fleet on %s', (kind) => {
  const use = useFleet(kind);

  it('US1.1 FR-009 the first instance owns and polls every target at once', async () => {
    const fleet = use();
    await fleet.add(IDS);
    const [first] = await fleet.start(1);
    await fleet.untilSteady();
    const polled = firstPolls(fleet.polls, { fromMs: 0 });
    const waits = IDS.map((id) => (polled.get(id)?.startMs ?? Infinity) - (first?.readyMs ?? 0));
    expect(Math.max(...waits)).toBeLessThan(1_000);
  });

  it('FR-006 FR-007 FR-013 a second one has half of them, and both know of each other', async () => {
    const fleet = use();
    fleet.phase('a second joins', CALM_MS);
    await fleet.start(1);
    await fleet.untilSteady();
    const ids = [...fleet.members].map(({ id }) => id).sort();
    for (const member of fleet.members) {
      const { live } = await member.tell('live');
      expect([...(live as string[])].sort()).toEqual(ids);
      const { owner } = await member.tell('preferred', { id: IDS[0] });
      expect(ids).toContain(owner);
    }
  });

  it('US1.2 US4.2 US4.3 FR-015 a third gets its third, taken from those who had too many and from nobody else', async () => {
    const fleet = use();
    const before = await fleet.untilBalanced();
    fleet.phase('a third joins', CALM_MS);
    const [third] = await fleet.start(1);
    const after = await fleet.untilSteady();
    const moved = IDS.filter((id) => before.get(id) !== after.get(id));
    expect(moved.map((id) => after.get(id))).toEqual(Array(10).fill(third?.id));
  });

  it('SC-003 SC-004 ten share them: three each', async () => {
    const fleet = use();
    fleet.phase('seven more join', CALM_MS);
    await fleet.start(7);
    const owners = await fleet.untilSteady();
    expect([...fleet.members].map((member) => ownedBy(owners, member).length)).toEqual(
      Array(10).fill(3),
    );
  });

  it('US1.3 SC-006 one is stopped: it hands over, and the others poll within a second', async () => {
    const fleet = use();
    const owners = await fleet.untilBalanced();
    const leaving = oldestOf(fleet);
    fleet.phase('one is stopped', CALM_MS);
    const fromMs = await fleet.stop(leaving);
    const after = await fleet.untilSteady();
    const targets = ownedBy(owners, leaving);
    expect(targets).toHaveLength(3);
    for (const target of targets) {
      const own = fleet.polls.filter((poll) => poll.target === target);
      const last = own.findLast(({ instance }) => instance === leaving.id);
      const settledMs = Math.max(fromMs, last?.endMs ?? 0);
      const next = own.find(
        ({ startMs, instance }) => startMs >= settledMs && instance !== leaving.id,
      );
      expect((next?.startMs ?? Infinity) - settledMs).toBeLessThan(1_000);
    }
    // Nobody else had to move.
    const stayed = IDS.filter((id) => owners.get(id) !== leaving.id);
    expect(stayed.filter((id) => owners.get(id) !== after.get(id))).toEqual([]);
  });

  it('US2.1 SC-002 FR-008 FR-017 FR-018 one is killed: the others poll its targets within the TTL and a second', async () => {
    const fleet = use();
    const owners = await fleet.untilBalanced();
    const victim = oldestOf(fleet);
    fleet.phase('one is killed', CRASH_MS);
    const fromMs = await fleet.kill(victim);
    const targets = ownedBy(owners, victim);
    await fleet.untilSteady();
    expect(targets.length).toBeGreaterThanOrEqual(3);
    const worstMs = worstTakeoverMs(fleet.polls, { targets, fromMs, from: victim });
    expect(worstMs).toBeLessThan(TTL_MS + 1_000);
    const isForgotten = async () => {
      const { live } = await oldestOf(fleet).tell('live');
      return !(live as string[]).includes(victim.id);
    };
    await until(isForgotten, { what: 'its heartbeat to be gone' });
  });

  it('FR-012 one is frozen for longer than its TTL: the others take over, and on waking it polls nothing that it has lost', async () => {
    const fleet = use();
    const owners = await fleet.untilBalanced();
    const sleeper = oldestOf(fleet);
    const targets = ownedBy(owners, sleeper);
    fleet.phase('one is frozen', CRASH_MS);
    const fromMs = hostMs();
    const thaw = await fleet.freeze(sleeper);
    const isTaken = () =>
      worstTakeoverMs(fleet.polls, { targets, fromMs, from: sleeper }) < TTL_MS + 1_000;
    await until(isTaken, { what: 'its targets to be polled', deadlineMs: TTL_MS + 2_000 });
    await thaw();
    await fleet.untilSteady();
    expect(sleeper.told('lease.lost')).toHaveLength(targets.length);
  });

  it('FR-010 FR-012 the event loop of one is blocked for longer than its TTL: its very next poll is of something it owns', async () => {
    const fleet = use();
    const owners = await fleet.untilBalanced();
    const blocked = oldestOf(fleet);
    const targets = ownedBy(owners, blocked);
    fleet.phase('one is blocked', CRASH_MS);
    const fromMs = hostMs();
    await fleet.block(blocked, TTL_MS + 500);
    const others = firstPolls(fleet.polls, { fromMs, except: blocked.id });
    expect(targets.filter((target) => others.has(target))).toEqual(targets);
    await fleet.untilSteady();
  });

  it('one is frozen for less than its deadline: it keeps everything', async () => {
    const fleet = use();
    const owners = await fleet.untilSteady();
    const napper = oldestOf(fleet);
    fleet.phase('one is frozen for a moment', CALM_MS + 1_000);
    const thaw = await fleet.freeze(napper);
    const wakeMs = hostMs() + 1_000;
    await until(() => hostMs() > wakeMs, { what: 'a second to pass' });
    await thaw();
    expect(await fleet.untilSteady()).toEqual(owners);
  });

  it('P-03 one flaps: each time its share moves and nothing else, and in the end all is as it was', async () => {
    const fleet = use();
    await fleet.untilSteady();
    const fromMs = hostMs();
    const flaps = 3;
    // One target may come to each of them in turn, and each may die with it.
    fleet.phase('one flaps', flaps * CRASH_MS);
    for (let i = 0; i < flaps; i++) {
      const [flapping] = await fleet.start(1);
      const hasSome = async () => ((await flapping?.owned())?.length ?? 0) > 0;
      await until(hasSome, { what: 'the newcomer to own something' });
      if (flapping !== undefined) await fleet.kill(flapping);
    }
    await fleet.untilSteady();
    const since = fleet.polls.filter(({ startMs }) => startMs >= fromMs);
    const share = Math.ceil(IDS.length / (fleet.members.size + 1));
    expect(moves(since)).toBeLessThanOrEqual(flaps * 2 * share);
  });

  it('all are stopped at once: each ends with 0, and leaves no lease behind', async () => {
    const fleet = use();
    fleet.unwant(IDS);
    await Promise.all([...fleet.members].map((member) => fleet.stop(member)));
    const { fleet: seen } = await fleet.operator();
    const { members, targets } = await seen.view();
    expect(members).toEqual([]);
    // What was handed to one that was leaving too runs out after its claim window.
    const isFree = async () => (await seen.view()).targets.every(({ owner }) => owner === null);
    expect(targets).toHaveLength(IDS.length);
    await until(isFree, { what: 'every lease to be free' });
  });
});
