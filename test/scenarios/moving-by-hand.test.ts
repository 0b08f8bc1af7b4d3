import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { until } from '../support/until.ts';
import { CALM_MS, CRASH_MS } from './support/fleet.ts';
import type { Member } from './support/member.ts';
import { STORES, useFleet } from './support/story.ts';
import { deviceIds } from './support/target-ids.ts';

leaveNothingBehind();

const ARRIVAL_MS = 10_000;

describe.each(STORES)('an operator moves targets by hand on %s', (kind) => {
  const use = useFleet(kind);
  const ids = deviceIds(9);
  /** What was moved, and to whom; the next chapters go on with it. */
  let target = '';
  let pinned: Member;

  async function untilAt(id: string, member: Member): Promise<void> {
    const isThere = async () => (await member.owned()).includes(id);
    await until(isThere, { what: `${id} to be with ${member.id}`, deadlineMs: ARRIVAL_MS });
  }

  /** Somebody other than those given. */
  function another(...not: readonly (Member | undefined)[]): Member {
    const found = [...use().members].find((member) => !not.includes(member));
    if (found === undefined) throw new Error('there is nobody else');
    return found;
  }

  it('P-06 one goes where it is sent, another the other way, and it does not come back', async () => {
    const fleet = use();
    await fleet.add(ids);
    await fleet.start(3);
    const before = await fleet.untilSteady();
    const [from] = fleet.members;
    if (from === undefined) throw new Error('nobody has started');
    pinned = another(from);
    target = (await from.owned())[0] ?? '';
    const { fleet: control } = await fleet.operator();
    fleet.phase('one is moved', CALM_MS);
    const order = await control.transfer(target, pinned.id, { reason: 'nearer to it' });
    expect(order).toEqual({ from: from.id, to: pinned.id });
    await untilAt(target, pinned);
    const after = await fleet.untilSteady();
    expect(after.get(target)).toBe(pinned.id);
    const moved = ids.filter((id) => before.get(id) !== after.get(id));
    expect(moved).toHaveLength(2);
    // Several rounds of every instance: they come once a second.
    await fleet.untilPolled(fleet.targets, 20);
    expect(await fleet.untilBalanced()).toEqual(after);
    const { targets } = await control.view();
    expect(targets.find((one) => one.target === target)).toMatchObject({
      ...{ pinned: pinned.id, owner: pinned.id, planned: pinned.id, reason: 'kept' },
    });
  });

  it('P-06 an owner that is frozen is not forced: the order waits, and is carried out when its lease has run out', async () => {
    const fleet = use();
    const frozen = another(pinned);
    const [id = ''] = await frozen.owned();
    const { fleet: control } = await fleet.operator();
    const to = another(pinned, frozen);
    fleet.phase('one is frozen', CRASH_MS);
    const thaw = await fleet.freeze(frozen);
    expect(await control.transfer(id, to.id)).toEqual({ from: frozen.id, to: to.id });
    // It has its lease yet, whatever was ordered.
    const { targets } = await control.view();
    expect(targets.find((one) => one.target === id)).toMatchObject({ owner: frozen.id });
    await untilAt(id, to);
    await thaw();
    const after = await fleet.untilSteady();
    expect(after.get(id)).toBe(to.id);
    expect(after.get(target)).toBe(pinned.id);
    expect(await control.unpin(id)).toEqual({ changed: true });
  });

  it('P-06 what is unpinned stays where it is while that is even', async () => {
    const fleet = use();
    const { fleet: control } = await fleet.operator();
    fleet.phase('one is unpinned', CALM_MS);
    const before = await fleet.untilSteady();
    expect(await control.unpin(target)).toEqual({ changed: true });
    expect(await control.unpin(target)).toEqual({ changed: false });
    await fleet.untilPolled(fleet.targets, 10);
    expect(await fleet.untilSteady()).toEqual(before);
    await control.transfer(target, pinned.id);
    expect((await fleet.untilSteady()).get(target)).toBe(pinned.id);
  });

  it('P-06 its instance is killed: it goes elsewhere, as everything does, and is pinned no more', async () => {
    const fleet = use();
    const { fleet: control } = await fleet.operator();
    fleet.phase('one is killed', CRASH_MS);
    await fleet.kill(pinned);
    const after = await fleet.untilSteady();
    expect(after.get(target)).not.toBe(pinned.id);
    const isForgotten = async () => {
      const { targets } = await control.view();
      return targets.every((one) => one.pinned === null);
    };
    await until(isForgotten, { what: 'the pin to be forgotten', deadlineMs: ARRIVAL_MS });
  });
});
