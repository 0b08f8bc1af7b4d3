import { describe, expect, it } from 'vitest';
import {
  confirmationNow,
  type Deadline,
  elapsedMs,
  endsAtMs,
  isInDoubt,
  jumpMs,
  remainingMs,
  standing,
  toleratedJumpMs,
} from '../../src/core/validity.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import fc from '../support/fast-check.ts';

const VALID_MS = 23_000;
const JUMP_MS = 1_000;

/** What happens to a host, in milliseconds: it runs; it sleeps, and its monotonic clock stands still; somebody sets its clock. */
type Step = readonly ['runs' | 'sleeps' | 'is set', number];

const spans = fc.integer({ min: 0, max: 40_000 });
const runs = spans.map((ms): Step => ['runs', ms]);
const sleeps = spans.map((ms): Step => ['sleeps', ms]);
const isSet = fc.integer({ min: -90_000, max: 90_000 }).map((ms): Step => ['is set', ms]);
const host = (...steps: fc.Arbitrary<Step>[]) => fc.array(fc.oneof(...steps), { maxLength: 8 });

function play(steps: readonly Step[]) {
  const clock = new FakeClock();
  const deadline: Deadline = { ...confirmationNow(clock), validMs: VALID_MS, jumpMs: JUMP_MS };
  const total = { runs: 0, sleeps: 0, 'is set': 0 };
  for (const [what, ms] of steps) {
    total[what] += ms;
    if (what === 'runs') clock.block(ms);
    else clock.jumpWall(ms);
  }
  const leftMs = remainingMs(deadline, deadline, clock);
  return { clock, deadline, total, leftMs, standing: standing(deadline, deadline, clock) };
}

describe('K-04 the rule of the two clocks', () => {
  it('K-04 no lease lasts longer than the monotonic clock says, whatever the wall clock does', () => {
    fc.assert(
      fc.property(host(runs, sleeps, isSet), (steps) => {
        const { total, leftMs, standing: stands } = play(steps);
        expect(leftMs).toBeGreaterThanOrEqual(0);
        expect(leftMs).toBeLessThanOrEqual(Math.max(0, VALID_MS - total.runs));
        expect(leftMs > 0).toBe(stands === 'good');
        if (total.runs >= VALID_MS) expect(stands).toBe('over');
      }),
    );
  });

  it('K-04 a host that sleeps and whose clock is not set never counts on more than the real time left, plus the tolerance', () => {
    fc.assert(
      fc.property(host(runs, sleeps), (steps) => {
        const { total, leftMs } = play(steps);
        const trulyMs = VALID_MS - total.runs - total.sleeps;
        expect(leftMs).toBeLessThanOrEqual(Math.max(0, trulyMs) + JUMP_MS);
        if (total.sleeps > JUMP_MS) expect(leftMs).toBe(Math.max(0, trulyMs));
      }),
    );
  });

  it('K-04 a wall clock that differs by no more than the tolerance decides nothing', () => {
    const slewed = fc.integer({ min: -JUMP_MS, max: JUMP_MS });
    fc.assert(
      fc.property(slewed, fc.integer({ min: 0, max: VALID_MS }), (byMs, ranMs) => {
        const { clock, deadline, leftMs } = play([
          ['is set', byMs],
          ['runs', ranMs],
        ]);
        expect(leftMs).toBe(VALID_MS - ranMs);
        expect(isInDoubt(deadline, deadline, clock)).toBe(false);
      }),
    );
  });

  it('K-04 at its very end a confirmation is over, and a clock set back by just the tolerance decides nothing', () => {
    expect(play([['runs', VALID_MS]]).standing).toBe('over');
    const { leftMs, standing: stands } = play([['is set', -JUMP_MS]]);
    expect([leftMs, stands]).toEqual([VALID_MS, 'good']);
  });

  it('K-04 after the wall clock was set back no time is left, and the time is not over', () => {
    const backMs = fc.integer({ min: JUMP_MS + 1, max: 3_600_000 });
    fc.assert(
      fc.property(backMs, fc.integer({ min: 0, max: 2 * VALID_MS }), (byMs, ranMs) => {
        const {
          clock,
          deadline,
          leftMs,
          standing: stands,
        } = play([
          ['is set', -byMs],
          ['runs', ranMs],
        ]);
        expect(leftMs).toBe(0);
        expect(stands).toBe(ranMs < VALID_MS ? 'unproven' : 'over');
        expect(elapsedMs(deadline, deadline, clock)).toBe(ranMs);
        expect(jumpMs(deadline, clock)).toBe(-byMs);
        expect(isInDoubt(deadline, deadline, clock)).toBe(true);
      }),
    );
  });

  it('K-04 the clocks may disagree by half of the guard, and by a second at most', () => {
    expect([200, 2_000, 7_000].map(toleratedJumpMs)).toEqual([100, 1_000, 1_000]);
  });

  it('K-04 a timer is set by the monotonic clock', () => {
    const { deadline } = play([]);
    expect(endsAtMs(deadline, deadline)).toBe(deadline.sentAtMs + VALID_MS);
  });
});
