import { describe, expect, it } from 'vitest';
import { Loop } from '../../src/core/loop.ts';
import { seededRandom } from '../../src/core/random.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const EVERY_MS = 1_000;

function loopOf(round: () => Promise<number | undefined>) {
  const clock = new FakeClock();
  const stalls: unknown[] = [];
  const resumes: number[] = [];
  const loop = new Loop(
    { clock, random: seededRandom(1) },
    {
      everyMs: EVERY_MS,
      round,
      onStalled: (error) => stalls.push(error),
      onResumed: (afterMs) => resumes.push(afterMs),
    },
  );
  return { clock, loop, stalls, resumes };
}

describe('Loop', () => {
  it('runs a round at start, after wake, and otherwise after everyMs', async () => {
    let rounds = 0;
    const { clock, loop } = loopOf(async () => {
      rounds += 1;
      return undefined;
    });
    await loop.start();
    expect(rounds).toBe(1);
    loop.wake();
    loop.wake();
    await clock.advance(0);
    expect(rounds).toBe(2);
    await clock.advance(EVERY_MS);
    expect(rounds).toBe(3);
  });

  it('runs another round whenever wake is called', async () => {
    // Each number of turns of the promise queue is another moment between a round and the next timer.
    for (let turns = 0; turns < 12; turns++) {
      let rounds = 0;
      const { clock, loop } = loopOf(async () => {
        rounds += 1;
        return undefined;
      });
      const started = loop.start();
      for (let turn = 0; turn < turns; turn++) await null;
      loop.wake();
      await started;
      await clock.advance(0);
      expect({ turns, rounds }).toEqual({ turns, rounds: 2 });
      loop.wake();
      await clock.advance(0);
      expect({ turns, rounds }).toEqual({ turns, rounds: 3 });
    }
  });

  it('runs the next round earlier when a round asks for it', async () => {
    let rounds = 0;
    const { clock, loop } = loopOf(async () => {
      rounds += 1;
      return 10;
    });
    await loop.start();
    await clock.advance(30);
    expect(rounds).toBe(4);
  });

  it('retries a failed round after a pause, and reports the streak of failures once', async () => {
    let rounds = 0;
    const { clock, loop, stalls, resumes } = loopOf(async () => {
      rounds += 1;
      if (rounds < 3) throw new Error('not now');
      return undefined;
    });
    await loop.start();
    await clock.advance(EVERY_MS);
    expect(rounds).toBeGreaterThanOrEqual(3);
    expect(stalls).toHaveLength(1);
    expect(resumes).toHaveLength(1);
  });

  it('counts a failure outside a round towards the same streak', async () => {
    const { clock, loop, stalls, resumes } = loopOf(async () => undefined);
    await loop.start();
    expect(loop.failed(new Error('a write'))).toBeLessThanOrEqual(100);
    expect(loop.failed(new Error('a write'))).toBeGreaterThan(100);
    await clock.advance(EVERY_MS);
    expect(stalls).toHaveLength(1);
    expect(resumes).toEqual([EVERY_MS]);
  });

  it('leaves no timer after stop, and ignores wake from then on', async () => {
    let rounds = 0;
    const { clock, loop } = loopOf(async () => {
      rounds += 1;
      return undefined;
    });
    await loop.start();
    await loop.stop();
    loop.wake();
    await clock.advance(3 * EVERY_MS);
    expect(rounds).toBe(1);
  });
});
