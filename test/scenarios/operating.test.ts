import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { hostMs } from '../support/host-clock.ts';
import type { Poll } from '../support/poll-record.ts';
import { until } from '../support/until.ts';
import { CALM_MS, CRASH_MS, TTL_MS } from './support/fleet.ts';
import { STORES, useFleet } from './support/story.ts';
import { deviceIds } from './support/target-ids.ts';

leaveNothingBehind();

describe.each(STORES)('an operator of a fleet on %s', (kind) => {
  const use = useFleet(kind);
  const ids = deviceIds(12);

  it('P-07 gives one twice the weight, and it has twice the share', async () => {
    const fleet = use();
    await fleet.add(ids);
    await Promise.all([fleet.start(1, { weight: 2 }), fleet.start(2)]);
    await fleet.untilSteady();
    const owned = await Promise.all([...fleet.members].map((member) => member.owned()));
    expect(owned.map(({ length }) => length).sort()).toEqual([3, 3, 6]);
  });

  it('P-06 drains one: it hands over everything and takes nothing new; undone, it has its share again', async () => {
    const fleet = use();
    const [drained, ...others] = fleet.members;
    if (drained === undefined) throw new Error('nobody to drain');
    const { fleet: control } = await fleet.operator();
    fleet.phase('one is drained', CALM_MS);
    await control.drain(drained.id);
    fleet.members.delete(drained);
    await fleet.untilSteady();
    expect(await drained.owned()).toEqual([]);
    const more = deviceIds(6, 100);
    await fleet.add(more);
    await fleet.untilSteady();
    expect(await drained.owned()).toEqual([]);
    await control.undrain(drained.id);
    fleet.members.add(drained);
    await fleet.untilSteady();
    expect(others).toHaveLength(2);
  });

  it('P-06 drains all: those who hold keep what they have', async () => {
    const fleet = use();
    const { fleet: control } = await fleet.operator();
    fleet.phase('all are drained', CALM_MS);
    for (const { id } of fleet.members) await control.drain(id);
    const areDraining = async () => {
      const { members } = await control.view();
      return members.length === 3 && members.every(({ isDraining }) => isDraining);
    };
    await until(areDraining, { what: 'all to be draining', deadlineMs: 8_000 });
    // The first may have handed some to those who had not heard yet; now there is nobody left to hand them to.
    await fleet.untilPolled(fleet.targets, 2);
    const before = await fleet.untilOwned();
    await fleet.untilPolled(fleet.targets, 5);
    expect(await fleet.untilOwned()).toEqual(before);
    for (const { id } of fleet.members) await control.undrain(id);
    await fleet.untilSteady();
  });

  it('asks why a target is where it is, and is told', async () => {
    const fleet = use();
    const owners = await fleet.untilSteady();
    const [id = ''] = ids;
    const { fleet: control } = await fleet.operator();
    const { targets } = await control.view();
    const seen = targets.find(({ target }) => target === id);
    expect(seen).toMatchObject({ owner: owners.get(id), planned: owners.get(id) });
    expect(seen?.text).toMatch(/\w+/);
    for (const member of fleet.members) {
      const { explanation } = await member.tell('explain', { id });
      expect(explanation).toMatchObject({ target: id, owner: owners.get(id) });
    }
  });
});

describe.each(STORES)('polls on %s that take long', (kind) => {
  const TIMEOUT_MS = TTL_MS + 1_500;
  const use = useFleet(kind, { poller: { timeout: TIMEOUT_MS } });
  const [slow = '', endless = '', ...others] = deviceIds(6);

  /** Has the targets answer so late, and waits for the end of a poll that was begun since. */
  async function untilAnswered(target: string, latencyMs: number): Promise<Poll> {
    const { server, polls } = use();
    server.slow(target, latencyMs);
    const fromMs = hostMs();
    const found = () =>
      polls.find(
        (poll) => poll.target === target && poll.arrivedMs > fromMs && poll.endMs < Infinity,
      );
    const what = `a slow poll of '${target}' to end`;
    return until(found, { what, deadlineMs: TIMEOUT_MS + 3_000 });
  }

  it('E2 longer than the TTL: the lease is renewed meanwhile, and nobody else polls; longer than their timeout: they are aborted, and tried again', async () => {
    const fleet = use();
    await fleet.add([slow, endless, ...others]);
    await fleet.start(2);
    const before = await fleet.untilSteady();
    fleet.phase('slow polls', CALM_MS);
    const [whole, aborted] = await Promise.all([
      untilAnswered(slow, TTL_MS + 500),
      untilAnswered(endless, Infinity),
    ]);
    expect(whole.endMs - whole.startMs).toBeGreaterThan(TTL_MS + 490);
    expect(aborted.endMs - aborted.startMs).toBeGreaterThan(TIMEOUT_MS - 10);
    expect(aborted.endMs - aborted.startMs).toBeLessThan(TIMEOUT_MS + 500);
    for (const id of [slow, endless]) fleet.server.slow(id, 60);
    expect(await fleet.untilSteady()).toEqual(before);
    // In one tenure: it was never lost and taken again.
    const last = fleet.polls.findLast(({ target }) => target === slow);
    expect(last?.fence).toBe(whole.fence);
  });
});

describe.each(STORES)('a poll on %s that never settles, whatever it is told,', (kind) => {
  const use = useFleet(kind);
  const [hungId = '', ...ids] = deviceIds(4);

  it('E2 is reported; its target is not handed over but left to run out, and its process ends all the same', async () => {
    const fleet = use();
    await fleet.add([hungId, ...ids]);
    fleet.unwant([hungId]);
    const [stuck] = await fleet.start(1, { hung: [hungId], poller: { timeout: 500 } });
    if (stuck === undefined) throw new Error('nobody started');
    const isStuck = () => stuck.told('poll.stuck').some(({ target }) => target === hungId);
    await until(isStuck, { what: 'it to be reported', deadlineMs: 10_000 });
    fleet.phase('one is stopped', CALM_MS);
    await fleet.start(1);
    await fleet.untilPolled(ids);
    const stoppingMs = await fleet.stop(stuck, { within: 1_500 });
    const endedMs = hostMs();
    fleet.want([hungId]);
    fleet.phase('what it left runs out', CRASH_MS);
    await fleet.untilBalanced();
    await fleet.untilPolled([hungId]);
    const polled = fleet.polls.find(({ target }) => target === hungId);
    expect((polled?.startMs ?? 0) - stoppingMs).toBeGreaterThan(TTL_MS / 2);
    expect((polled?.startMs ?? Infinity) - endedMs).toBeLessThan(TTL_MS + 1_000);
  });
});
