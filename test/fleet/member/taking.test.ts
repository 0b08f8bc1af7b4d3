import { describe, expect, it } from 'vitest';
import type { Events } from '../../../src/core/events.ts';
import { seededRandom } from '../../../src/core/random.ts';
import { open } from '../../../src/holdfast.ts';
import { sentenceOf } from '../../../src/telemetry/sentences.ts';
import { fleetWorld, type Instance } from '../../support/fleet-world.ts';

type Taken = Events['target.taken'] & { atMs: number };

const TTL_MS = 3_000;

function takenBy({ happened }: Instance): Taken[] {
  return happened.filter(({ name }) => name === 'target.taken') as Taken[];
}

describe('target.taken', () => {
  it('a target without an owner before: the first owner', async () => {
    const world = fleetWorld();
    await world.add(2);
    const a = await world.start();
    const fences = world.instances.flatMap(takenBy).map(({ fence }) => fence);
    expect(fences.every((fence) => fence > 0)).toBe(true);
    expect(takenBy(a)).toMatchObject(
      ['device-000000', 'device-000001'].map((target) => ({
        ...{ target, from: null, how: 'first' },
        ...{ gapMs: 0, silentMs: 0, wakeMs: 0, grantMs: 0 },
      })),
    );
  });

  it('its owner transferred it: a handover, from which owner, without a gap', async () => {
    const world = fleetWorld();
    await world.add(6);
    const a = await world.start();
    const b = await world.start();
    await world.clock.advance(2_000);
    expect(b.owned()).toHaveLength(3);
    expect(takenBy(b)).toMatchObject(
      takenBy(b).map(() => ({ from: a.id, how: 'handover', gapMs: 0 })),
    );
  });

  it('a handover without a signal is found in the store, and is reported as one', async () => {
    const world = fleetWorld();
    await world.add(2);
    const { publish } = world.store.signals;
    const a = await world.start();
    const b = await world.start();
    world.store.signals.publish = async (topic, message) => {
      if (topic.startsWith('ask:')) await publish.call(world.store.signals, topic, message);
    };
    await world.clock.advance(3_000);
    expect(takenBy(b)).toMatchObject([{ from: a.id, how: 'handover' }]);
  });

  it('its owner released it early: a handover, and how long it had no owner', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    const b = await world.start();
    await world.clock.advance(2_000);
    const [owner, other] = a.owned().length === 1 ? [a, b] : [b, a];
    await owner.poller.manager.release(id);
    await world.clock.advance(900);
    const [taken] = takenBy(other);
    expect(taken).toMatchObject({ from: owner.id, how: 'handover', grantMs: 0 });
    expect(taken?.gapMs).toBeLessThan(900);
  });

  it('B-08 its owner died: a failover, from its last renewal on, as what was left of its lease, waking up and being granted it', async () => {
    const world = fleetWorld();
    await world.add(8);
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(2_000);
    const orphans = a.owned();
    expect(orphans).toHaveLength(4);
    const { acquire } = world.store.leases;
    world.store.leases.acquire = async (requests, call) => {
      await world.clock.sleep(40);
      return acquire.call(world.store.leases, requests, call);
    };
    a.faults.refuse = true;
    const keys = orphans.map((id) => `poll:lease:${id}`);
    const left = await world.store.leases.read(keys, { timeoutMs: 1_000 });
    const atMs = world.clock.monotonicMs();
    const ends = left.map((reply) => atMs + (reply.kind === 'held' ? reply.expiresInMs : 0));
    await world.clock.advance(TTL_MS + 1_000);
    const failovers = takenBy(b).filter(({ how }) => how === 'failover');
    expect(failovers.map(({ target }) => target).sort()).toEqual(orphans);
    for (const { target, from, gapMs, silentMs, wakeMs, grantMs, atMs } of failovers) {
      expect(from).toBe(a.id);
      expect(silentMs + wakeMs + grantMs).toBe(gapMs);
      expect(grantMs).toBe(40);
      expect(silentMs).toBe(TTL_MS);
      const endedAtMs = ends[orphans.indexOf(target)] ?? 0;
      expect(atMs - gapMs).toBeCloseTo(endedAtMs - TTL_MS, -1);
      // Nobody polled it for nearly as long: it was polled last when it was renewed, or a little later.
      const polls = world.polls.filter((poll) => poll.target === target);
      const [last, first] = [polls.findLast(({ by }) => by === a.id), polls.at(-1)];
      expect(first?.by).toBe(b.id);
      expect(atMs - (last?.endMs ?? 0)).toBeLessThanOrEqual(gapMs);
    }
  });

  it('it was revoked: a failover, not a handover', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    const b = await world.start();
    await world.clock.advance(1_000);
    const [owner, other] = a.owned().length === 1 ? [a, b] : [b, a];
    owner.faults.refuse = true;
    const operator = await open(world.store, { clock: world.clock, random: seededRandom(7) });
    await operator.revoke(id, { class: 'poll', reason: 'stuck', force: false });
    await world.clock.advance(TTL_MS + 1_000);
    expect(takenBy(other)).toMatchObject([{ from: owner.id, how: 'failover' }]);
  });

  it('this instance had lost it, and has it again: a failover from itself', async () => {
    const world = fleetWorld();
    await world.add(1);
    const a = await world.start();
    await world.clock.advance(1_000);
    a.faults.refuse = true;
    await world.clock.advance(5_000);
    a.faults.refuse = false;
    await world.clock.advance(5_000);
    const [, again] = takenBy(a);
    expect(again).toMatchObject({ from: a.id, how: 'failover' });
    expect(again?.silentMs).toBe(0);
    expect(again?.gapMs).toBe((again?.wakeMs ?? 0) + (again?.grantMs ?? 0));
    expect(again?.gapMs).toBeGreaterThan(1_000);
  });

  it('B-08 a process that stood still says how late it noticed, and counts the gap from its deadline', async () => {
    const world = fleetWorld();
    await world.add(1);
    const a = await world.start();
    await world.clock.advance(1_000);
    world.clock.block(10_000);
    await world.clock.advance(1_000);
    const lost = a.happened.find(({ name }) => name === 'lease.lost') as Events['lease.lost'];
    // A lease of 3 s that was renewed less than a second before it stood still, less the guard.
    expect(lost.lateMs).toBeGreaterThan(7_000);
    expect(lost.lateMs).toBeLessThan(8_200);
    expect(sentenceOf('lease.lost', { ...lost })).toMatch(/ late: its process stood still$/);
    const [, again] = takenBy(a);
    expect(again?.gapMs).toBeGreaterThanOrEqual(Math.floor(lost.lateMs));
  });

  it('it is in the shared log, with numbers that add up, and as a sentence', async () => {
    const world = fleetWorld();
    await world.add(1);
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(1_000);
    const [owner, other] = a.owned().length === 1 ? [a, b] : [b, a];
    owner.faults.refuse = true;
    await world.clock.advance(TTL_MS + 1_000);
    const { entries } = await other.holdfast.log.recall({});
    const taken = entries.find(({ event, how }) => event === 'target.taken' && how === 'failover');
    expect(taken).toMatchObject({
      instance: other.id,
      target: 'device-000000',
      fence: expect.any(String),
    });
    const { gapMs, silentMs, wakeMs, grantMs } = taken as unknown as Taken;
    expect(silentMs).toBe(TTL_MS);
    expect(gapMs).toBe(silentMs + wakeMs + grantMs);
    expect(sentenceOf('target.taken', { ...taken })).toMatch(
      /^took device-000000 after a gap of 3\.?\d* s, from api\d-[0-9a-f]{8}$/,
    );
  });
});
