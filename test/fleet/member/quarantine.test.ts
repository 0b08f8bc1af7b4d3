/** A fleet on a Redis that was restarted with all its data: for a TTL and a second it makes no new grants. */
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { fleetWorld, type Instance } from '../../support/fleet-world.ts';
import { restartingRedis } from '../../support/restarting-redis.ts';

const TARGETS = 40;
/** TTL 3 s, and a second. */
const QUARANTINE_MS = 4_000;
const CLAIM_WINDOW_MS = 2_000;
/** Polls come every 200 ms, and a handover takes half a second at most. */
const NO_GAP_MS = 1_000;

async function fleet(size: number) {
  const clock = new FakeClock();
  const { connect, restart } = await restartingRedis(clock);
  const world = fleetWorld({ clock, connect: () => connect() });
  const instances: Instance[] = [];
  for (let i = 0; i < size; i++) instances.push(await world.start());
  const targets = await world.add(TARGETS);
  await clock.advance(5_000);
  expect(world.loads(instances).reduce((sum, load) => sum + load)).toBe(TARGETS);
  /** The longest time from a moment on in which a target was not polled. */
  const longestGapMs = (fromMs: number, of: readonly string[] = targets) =>
    Math.max(
      ...of.map((id) => {
        const begun = world.polls.flatMap(({ target, startMs }) =>
          target === id && startMs >= fromMs ? [startMs] : [],
        );
        const moments = [fromMs, ...begun, clock.monotonicMs()];
        return Math.max(...moments.slice(1).map((atMs, i) => atMs - (moments[i] ?? 0)));
      }),
    );
  return { ...world, instances, restart, longestGapMs };
}

describe('a fleet in a quarantine', () => {
  it('B-07 hands a member that joins its share, and polls every target throughout', async () => {
    const { clock, instances, restart, start, loads, longestGapMs, overlaps } = await fleet(2);
    restart();
    await clock.advance(500);
    const fromMs = clock.monotonicMs();
    const third = await start();
    await clock.advance(2_500);
    expect(loads([...instances, third]).sort()).toEqual([13, 13, 14]);
    expect(longestGapMs(fromMs)).toBeLessThan(NO_GAP_MS);
    expect(overlaps()).toEqual([]);
  });

  it('B-07 takes over from a member that stops, and polls every target throughout', async () => {
    const { clock, instances, restart, loads, longestGapMs, overlaps } = await fleet(3);
    const [first, ...others] = instances;
    restart();
    await clock.advance(500);
    const fromMs = clock.monotonicMs();
    void first?.poller.stop();
    await clock.advance(2_500);
    expect(loads(others)).toEqual([20, 20]);
    expect(longestGapMs(fromMs)).toBeLessThan(NO_GAP_MS);
    expect(overlaps()).toEqual([]);
  });

  it('B-07 takes over a target that a stopping member has transferred to one that never claims it', async () => {
    const { clock, instances, restart, longestGapMs } = await fleet(3);
    const [first, second, third] = instances;
    const left = first?.owned() ?? [];
    restart();
    await clock.advance(500);
    if (second !== undefined) second.faults.hang = true;
    const fromMs = clock.monotonicMs();
    void first?.poller.stop();
    await clock.advance(QUARANTINE_MS - 1_000);
    expect(third?.owned()).toEqual(expect.arrayContaining(left));
    expect(longestGapMs(fromMs, left)).toBeLessThan(CLAIM_WINDOW_MS + NO_GAP_MS);
  });
});

describe('a member that stops', () => {
  it('B-07 transfers the targets that no member has asked for, and releases none', async () => {
    const world = fleetWorld();
    await world.add(5);
    const a = await world.start();
    const b = await world.start();
    await world.clock.advance(2_000);
    const count = a.owned().length;
    expect(count).toBeGreaterThan(0);
    // It asks nobody whom it does not see.
    b.blindTo.add(a.id);
    await world.clock.advance(1_500);
    void a.poller.stop();
    await world.clock.advance(1_000);
    expect(b.owned()).toHaveLength(5);
    expect([a.count('lease.released'), a.count('lease.abandoned')]).toEqual([0, 0]);
  });
});

it('B-07 a member from which a target was revoked does not ask for it while the store refuses it', async () => {
  const world = fleetWorld();
  const [id = ''] = await world.add(1);
  const a = await world.start();
  const b = await world.start();
  await world.clock.advance(2_000);
  const [owner, other] = a.owned().length > 0 ? [a, b] : [b, a];
  await other.holdfast.fleet.transfer(id, owner.id, { reason: 'pinned where it is' });
  await other.holdfast.revoke(id, { class: 'poll', reason: 'test' });
  const lostMs = () => owner.happened.find(({ name }) => name === 'lease.lost')?.atMs ?? 0;
  const movedMs = () => other.happened.find(({ name }) => name === 'lease.transferred')?.atMs ?? 0;
  await world.clock.advance(8_000);
  expect(owner.owned()).toEqual([id]);
  expect(lostMs()).toBeGreaterThan(0);
  expect(movedMs() - lostMs()).toBeGreaterThanOrEqual(3_000);
});
