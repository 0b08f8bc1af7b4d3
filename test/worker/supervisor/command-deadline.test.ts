import { describe, expect, it } from 'vitest';
import { confirmationNow } from '../../../src/core/validity.ts';
import { Tenure } from '../../../src/lease/tenure.ts';
import { deriveTimings, LEASE_CLASSES } from '../../../src/lease/timings.ts';
import { LONGEST_TTL_MS } from '../../../src/store/port/keyspaces.ts';
import {
  type CommandDeadline,
  graceLeftMs,
  hasDoubt,
  leftMs,
  standingOf,
} from '../../../src/worker/supervisor/command-deadline.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { deadlineIn } from '../../support/deadline-in.ts';
import fc from '../../support/fast-check.ts';
import { testRuntime } from '../../support/runtime.ts';

/** As the supervisor gets it. */
const told = (deadline: CommandDeadline) => JSON.parse(JSON.stringify(deadline)) as CommandDeadline;

function makeTenure(clock: FakeClock): Tenure {
  const timings = deriveTimings(
    { ttl: '30s', guard: '7s', operationTimeout: '4s' },
    {},
    LONGEST_TTL_MS,
  );
  const policy = { leaseClass: LEASE_CLASSES.resource, timings, maxTtlMs: LONGEST_TTL_MS };
  const claim = { policy, key: 'k', storeKey: 'lease:k', holder: 'h' };
  const renewer = { renew: () => Promise.resolve(false), renewNow: () => {}, remove: () => {} };
  const grant = { fence: 7, sent: confirmationNow(clock) };
  return new Tenure(testRuntime({ clock }), renewer, claim, grant);
}

describe('the deadline of a command', () => {
  it('K-04 is the same for a lease and for the supervisor of its command, whatever the clocks do', () => {
    const ms = fc.integer({ min: -60_000, max: 60_000 });
    const steps = fc.array(fc.tuple(fc.constantFrom('runs', 'is set', 'is renewed'), ms), {
      maxLength: 10,
    });
    fc.assert(
      fc.property(steps, (all) => {
        const clock = new FakeClock();
        const tenure = makeTenure(clock);
        for (const [what, byMs] of all) {
          if (what === 'runs') clock.block(Math.abs(byMs));
          else if (what === 'is set') clock.jumpWall(byMs);
          else tenure.confirm(confirmationNow(clock));
          expect(leftMs(told([tenure.deadline]), clock)).toBe(tenure.remainingMs());
          if (tenure.isHeld()) expect(hasDoubt([tenure.deadline], clock)).toBe(false);
        }
      }),
    );
  });

  it('K-04 leaves lease and command no time when the wall clock is set back by 40 s, and neither is over', () => {
    const clock = new FakeClock();
    const tenure = makeTenure(clock);
    clock.jumpWall(-40_000);
    expect([tenure.remainingMs(), leftMs([tenure.deadline], clock)]).toEqual([0, 0]);
    expect([tenure.state, standingOf([tenure.deadline], clock)]).toEqual(['held', 'unproven']);
    clock.block(23_000);
    expect([tenure.state, standingOf([tenure.deadline], clock)]).toEqual(['lost', 'over']);
  });

  it('K-08 leaves the command no time after a lease was released or lost', () => {
    const clock = new FakeClock();
    const [given, lost] = [makeTenure(clock), makeTenure(clock)];
    given.beginRelease();
    given.handIn();
    lost.lose('taken_over');
    expect([given, lost].map(({ deadline }) => leftMs([deadline], clock))).toEqual([0, 0]);
  });

  it('is that of the first lease that is over; without a lease there is no time', () => {
    const clock = new FakeClock();
    const both = [...deadlineIn(clock, 5_000), ...deadlineIn(clock, 2_000)];
    expect(leftMs(both, clock)).toBe(2_000);
    clock.block(2_000);
    expect(standingOf(both, clock)).toBe('over');
    expect([leftMs([], clock), standingOf([], clock)]).toEqual([0, 'over']);
  });

  it('has a grace that counts from the stop or from the deadline, whichever comes first', () => {
    const clock = new FakeClock();
    const deadline = deadlineIn(clock, 1_000);
    clock.block(200);
    const stopped = confirmationNow(clock);
    expect(graceLeftMs(deadline, 500, stopped, clock)).toBe(500);
    clock.block(1_100);
    expect(graceLeftMs(deadline, 500, confirmationNow(clock), clock)).toBe(200);
    expect(graceLeftMs([], 500, stopped, clock)).toBe(0);
  });

  it('has a grace that a wall clock set back does not change, and that a sleep ends', () => {
    const clock = new FakeClock();
    const deadline = deadlineIn(clock, 60_000);
    const stopped = confirmationNow(clock);
    clock.jumpWall(-40_000);
    clock.block(100);
    expect(graceLeftMs(deadline, 500, stopped, clock)).toBe(400);
    clock.jumpWall(80_000);
    expect(graceLeftMs(deadline, 500, stopped, clock)).toBe(0);
  });
});
