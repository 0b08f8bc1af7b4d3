import { describe, expect, it } from 'vitest';
import { Tenancy } from '../../dashboard/src/data/tenures.ts';
import {
  LEASE_STATES,
  MACHINE,
  nextOf,
  STEPS,
  stateOf,
  TARGET_STATES,
  wordsOf,
} from '../../dashboard/src/views/target/machine.ts';
import { progressOf } from '../../dashboard/src/views/target/order.ts';
import { gathered, summaryOf } from '../../dashboard/src/views/target/polls.ts';
import { ANA, BOB, HANDOVER } from '../support/log-entries.ts';

describe('the states of a lease', () => {
  it.each([
    ['kept', 'held'],
    ['late', 'uncertain'],
    ['expiring', 'lost'],
    ['moving', 'moving'],
    ['unplaced', 'free'],
    ['quarantine', 'barred'],
    ['revoked', 'barred'],
    ['paused', 'paused'],
  ] as const)('%s is %s', (reason, state) => {
    expect(stateOf(reason)).toBe(state);
  });

  it('every state can be left, and reached', () => {
    for (const state of TARGET_STATES) {
      expect(nextOf(state)).not.toBe('');
      expect(STEPS.some(({ to }) => to === state)).toBe(true);
    }
  });

  it('a lease that is no target is never paused', () => {
    expect(LEASE_STATES).not.toContain('paused');
    expect(nextOf('held', LEASE_STATES)).not.toContain('paused');
  });

  it('is described in words for screen readers', () => {
    expect(wordsOf('uncertain')).toBe(
      `It is uncertain. ${MACHINE.uncertain.means} Possible next states: held (renewed), lost (deadline).`,
    );
  });
});

describe('how far a transfer is', () => {
  const order = { to: BOB, from: ANA, fence: '100' };
  const done = (steps: readonly { isDone: boolean }[]) => steps.map(({ isDone }) => isDone);
  const tenuresOf = (count: number) => {
    const tenancy = new Tenancy();
    for (const entry of HANDOVER.slice(0, count)) tenancy.add(entry);
    return tenancy.tenures(() => null);
  };

  it('ordered, handed over, taken', () => {
    expect(done(progressOf(order, ANA, tenuresOf(1)))).toEqual([true, false, false]);
    expect(done(progressOf(order, ANA, tenuresOf(2)))).toEqual([true, true, false]);
    expect(done(progressOf(order, BOB, tenuresOf(4)))).toEqual([true, true, true]);
  });

  it('what nobody had is not handed over', () => {
    const steps = progressOf({ ...order, from: null }, null, []);
    expect(steps.map(({ name }) => name)).toEqual(['ordered', 'taken by bob']);
  });
});

describe('polls that were seen', () => {
  const sample = (at: number, tookMs = 10, ok = true) => ({ at, tookMs, ok });

  it('are gathered in order of time, each once', () => {
    const first = gathered([], [sample(1), sample(2)]);
    expect(gathered(first, [sample(2), sample(3)]).map(({ at }) => at)).toEqual([1, 2, 3]);
    expect(gathered(first, [sample(2)])).toBe(first);
  });

  it('those of a new owner whose clock is behind are not lost', () => {
    expect(gathered([sample(5)], [sample(3)]).map(({ at }) => at)).toEqual([3, 5]);
  });

  it('are forgotten when there are very many', () => {
    const many = Array.from({ length: 700 }, (_, at) => sample(at));
    expect(gathered([], many)).toHaveLength(600);
  });

  it('are summed up: failures do not count for how long it takes', () => {
    const samples = [sample(1, 10), sample(2, 900, false), sample(3, 30), sample(4, 20)];
    expect(summaryOf(samples)).toEqual({ count: 4, failed: 1, middleMs: 20, slowestMs: 30 });
    expect(summaryOf([])).toEqual({ count: 0, failed: 0, middleMs: null, slowestMs: null });
  });
});
