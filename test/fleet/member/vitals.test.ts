import { describe, expect, it } from 'vitest';
import { Emitter } from '../../../src/core/events.ts';
import { startedAtOf } from '../../../src/core/ids.ts';
import { Heartbeat } from '../../../src/fleet/member/heartbeat.ts';
import { hashMember } from '../../../src/fleet/plan/hash.ts';
import { fleetMember } from '../../../src/fleet/view/member.ts';
import { deriveTimings } from '../../../src/lease/timings.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { fleetWorld } from '../../support/fleet-world.ts';
import { testRuntime } from '../../support/test-runtime.ts';

function signs() {
  const clock = new FakeClock();
  const events = new Emitter();
  const timings = deriveTimings({ ttl: 30_000, renewEvery: 10_000 }, {});
  const heartbeat = new Heartbeat(testRuntime({ clock, events }), { weight: 1 }, timings);
  const renewed = (tookMs: number, leaseClass = 'poll') =>
    events.emit('lease.renewed', { leaseClass, count: 1, tookMs });
  return { clock, events, heartbeat, renewed };
}

/** The vitals of a member whose heartbeat has this value there. */
function readVitals(vitals: unknown) {
  const live = { id: 'a', attributes: { vitals }, expiresInMs: 1_000 };
  return fleetMember(live, hashMember('a'), 0).vitals;
}

describe('vital signs', () => {
  it('have no renewal times before the first renewal', () => {
    expect(signs().heartbeat.vitals()).toEqual({
      ...{ ttlMs: 30_000, renewEveryMs: 10_000, loopDelayMs: 0 },
      ...{ renewP50Ms: null, renewP99Ms: null },
    });
  });

  it('say how long the renewals of targets took in the last minutes, and of no other leases', async () => {
    const { clock, heartbeat, renewed } = signs();
    for (let tookMs = 1; tookMs <= 100; tookMs++) renewed(tookMs);
    renewed(5_000, 'lease');
    expect(heartbeat.vitals()).toMatchObject({ renewP50Ms: 50, renewP99Ms: 99 });
    for (let i = 0; i < 1_000; i++) renewed(7.25);
    expect(heartbeat.vitals()).toMatchObject({ renewP50Ms: 7.3, renewP99Ms: 7.3 });
    await clock.advance(5 * 60_000 + 1);
    expect(heartbeat.vitals()).toMatchObject({ renewP50Ms: null, renewP99Ms: null });
  });

  it('say the longest delay of the event loop in the last minute', async () => {
    const { clock, events, heartbeat } = signs();
    events.emit('loop.delayed', { lateMs: 1_500 });
    heartbeat.noteDelay(3);
    expect(heartbeat.vitals().loopDelayMs).toBe(1_500);
    await clock.advance(30_000);
    heartbeat.noteDelay(20);
    expect(heartbeat.vitals().loopDelayMs).toBe(1_500);
    await clock.advance(31_000);
    expect(heartbeat.vitals().loopDelayMs).toBe(20);
    await clock.advance(60_000);
    expect(heartbeat.vitals().loopDelayMs).toBe(0);
  });

  it('do not change after they are closed', () => {
    const { heartbeat, renewed } = signs();
    heartbeat.close();
    renewed(5);
    expect(heartbeat.vitals().renewP50Ms).toBeNull();
  });

  it.each([
    undefined,
    null,
    'well',
    7,
    [],
    {},
    { ttlMs: '3s', renewEveryMs: 1, loopDelayMs: 0 },
    { ttlMs: 3, renewEveryMs: -1, loopDelayMs: 0 },
    { ttlMs: 3, renewEveryMs: 1, loopDelayMs: Number.NaN },
  ])('what makes no sense in a heartbeat is not believed: %j', (value) => {
    expect(readVitals(value)).toBeNull();
  });

  it('fields that another version adds are ignored, and missing ones are null', () => {
    const read = readVitals({
      ttlMs: 3,
      renewEveryMs: 1,
      loopDelayMs: 0,
      renewP50Ms: 'x',
      mood: 1,
    });
    expect(read).toEqual({
      ...{ ttlMs: 3, renewEveryMs: 1, loopDelayMs: 0, renewP50Ms: null, renewP99Ms: null },
    });
  });
});

describe('members', () => {
  it('FR-006 say in their heartbeats how they are doing, how long a heartbeat lasts, and since when they run', async () => {
    const world = fleetWorld();
    await world.add(4);
    const a = await world.start();
    await world.clock.advance(3_500);
    const { members } = await a.holdfast.fleet.view();
    expect(members).toMatchObject([
      {
        ...{ id: a.id, beatTtlMs: 3_000, startedAt: Math.floor(world.clock.startedAtMs) },
        vitals: { ttlMs: 3_000, renewEveryMs: 1_000, renewP50Ms: 0, renewP99Ms: 0 },
      },
    ]);
  });

  it('FR-006 of other programs or versions may say nothing of it, or something invalid', async () => {
    const world = fleetWorld();
    const a = await world.start();
    const call = { ttlMs: 10_000, timeoutMs: 1_000 };
    const attributes = { weight: 1, vitals: { ttlMs: 'long' }, beatTtlMs: {} };
    await world.store.members.beat({ id: 'old-1', attributes: { weight: 1 } }, call);
    await world.store.members.beat({ id: 'odd-1', attributes }, call);
    const { members } = await a.holdfast.fleet.view();
    const silent = { beatTtlMs: null, startedAt: null, vitals: null };
    const others = members.filter(({ id }) => id !== a.id);
    expect(others).toMatchObject([silent, silent]);
  });

  it('have ids that say when they were started', () => {
    expect(startedAtOf('api-7-1794735731650762000-0000000a')).toBe(1_794_735_731_650);
    expect(startedAtOf('some-node-1')).toBeNull();
  });
});
