import { describe, expect, it } from 'vitest';
import { fenceTime } from '../../src/store/fence-time.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

/** A host whose wall clock shows whole milliseconds, as that of Node does. */
class CoarseClock extends FakeClock {
  override wallMs(): number {
    return Math.floor(super.wallMs());
  }
}

describe('the time for a fence', () => {
  it('K-02 differs for two processes that ask in the same millisecond', () => {
    const [one, two] = [new CoarseClock(), new CoarseClock()];
    one.block(0.2);
    two.block(0.7);
    expect(one.wallMs()).toBe(two.wallMs());
    expect(fenceTime(two) - fenceTime(one)).toBe(500);
  });

  it('K-02 grows with every call of a process, even if no time passes', () => {
    const clock = new CoarseClock();
    const times = Array.from({ length: 2_000 }, (_, n) => {
      if (n % 3 === 0) clock.block(0.0004);
      return fenceTime(clock);
    });
    expect(new Set(times).size).toBe(2_000);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it('K-02 is the time again after the clock was an hour ahead and was set right', () => {
    const clock = new CoarseClock();
    clock.jumpWall(3_600_000);
    fenceTime(clock);
    clock.jumpWall(-3_600_000);
    expect(Math.floor(fenceTime(clock) / 1_000)).toBe(clock.wallMs());
  });
});
