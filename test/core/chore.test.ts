import { describe, expect, it } from 'vitest';
import { Loop } from '../../src/core/loop.ts';
import { seededRandom } from '../../src/core/random.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const EVERY_MS = 1_000;

function chore(round: () => Promise<number | undefined>) {
  const clock = new FakeClock();
  const stalls: unknown[] = [];
  const chore = new Loop(
    { clock, random: seededRandom(1) },
    { everyMs: EVERY_MS, round, onStalled: (error) => stalls.push(error), onResumed: () => {} },
  );
  return { clock, chore, stalls };
}

describe('a chore', () => {
  it('is done at the start, on a hint, and else after a while', async () => {
    let rounds = 0;
    const { clock, chore: it } = chore(async () => {
      rounds += 1;
      return undefined;
    });
    await it.start();
    expect(rounds).toBe(1);
    it.hint();
    it.hint();
    await clock.advance(0);
    expect(rounds).toBe(2);
    await clock.advance(EVERY_MS);
    expect(rounds).toBe(3);
  });

  it('heeds a hint at whatever moment it comes', async () => {
    // As many turns of the queue of promises after a round as it may take until the next is waited for.
    for (let turns = 0; turns < 12; turns++) {
      let rounds = 0;
      const { clock, chore: it } = chore(async () => {
        rounds += 1;
        return undefined;
      });
      const started = it.start();
      for (let turn = 0; turn < turns; turn++) await null;
      it.hint();
      await started;
      await clock.advance(0);
      expect({ turns, rounds }).toEqual({ turns, rounds: 2 });
      it.hint();
      await clock.advance(0);
      expect({ turns, rounds }).toEqual({ turns, rounds: 3 });
    }
  });

  it('is tried again after a failure, which is told once', async () => {
    let rounds = 0;
    const {
      clock,
      chore: it,
      stalls,
    } = chore(async () => {
      rounds += 1;
      if (rounds < 3) throw new Error('not now');
      return undefined;
    });
    await it.start();
    await clock.advance(EVERY_MS);
    expect(rounds).toBeGreaterThanOrEqual(3);
    expect(stalls).toHaveLength(1);
  });
});
