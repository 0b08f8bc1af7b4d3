import { describe, expect, it } from 'vitest';
import {
  nextPeriodAtMs,
  type PeriodRules,
  periodToRun,
  type RunRecord,
  readPeriod,
} from '../../src/lease/period.ts';
import fc from '../support/fast-check.ts';

const RULES: PeriodRules = { perMs: 1_000, toleranceMs: 100, onCrash: 'skip' };

function ran(periodAtMs: number, endedAtMs: number | null = periodAtMs): RunRecord {
  return { periodAtMs, startedAtMs: periodAtMs, endedAtMs, holder: 'h' };
}

describe('readPeriod', () => {
  it('B-09 the tolerance is a quarter of the period unless it is given', () => {
    expect(readPeriod({ per: '1d' })).toEqual({
      perMs: 86_400_000,
      toleranceMs: 21_600_000,
      onCrash: 'skip',
    });
    expect(readPeriod({ per: '1h', tolerance: '1m', onCrash: 'retry' })).toEqual({
      perMs: 3_600_000,
      toleranceMs: 60_000,
      onCrash: 'retry',
    });
  });

  it('B-09 a period of at most twice the tolerance is refused with field, value and rule', () => {
    expect(() => readPeriod({ per: '2m', tolerance: '1m' })).toThrow(
      /^per is "2m": a period is longer than twice the tolerance, which is 60000 ms here/,
    );
    expect(() => readPeriod({ per: 0 })).toThrow(/^per is 0: a period is longer/);
    expect(() => readPeriod({ per: 'daily' })).toThrow(/^per is "daily": a duration/);
    expect(() => readPeriod({ per: '1h', tolerance: -1 })).toThrow(/^tolerance is -1: a duration/);
    expect(() => readPeriod({ per: '1h', onCrash: 'again' as 'retry' })).toThrow(
      /^onCrash is "again": it must be 'skip' or 'retry'/,
    );
  });
});

describe('periodToRun', () => {
  it('B-09 the first call runs, and begins the first period', () => {
    expect(periodToRun(null, 5_000, RULES)).toBe(5_000);
  });

  it('B-09 a call runs the next period from a tolerance before its beginning', () => {
    expect(periodToRun(ran(5_000), 5_899, RULES)).toBeNull();
    expect(periodToRun(ran(5_000), 5_900, RULES)).toBe(6_000);
    expect(periodToRun(ran(5_000), 6_070, RULES)).toBe(6_070);
  });

  it('B-09 a crashed run is the run of its period with skip, and is started over in it with retry', () => {
    const retry: PeriodRules = { ...RULES, onCrash: 'retry' };
    expect(periodToRun(ran(5_000, null), 5_500, RULES)).toBeNull();
    expect(periodToRun(ran(5_000, null), 5_500, retry)).toBe(5_000);
    expect(periodToRun(ran(5_000, null), 6_000, RULES)).toBe(6_000);
    expect(periodToRun(ran(5_000), 5_500, retry)).toBeNull();
  });

  it('B-09 a longer or a shorter period counts from the last run', () => {
    expect(periodToRun(ran(5_000), 7_000, { ...RULES, perMs: 5_000 })).toBeNull();
    expect(periodToRun(ran(5_000), 5_350, { ...RULES, perMs: 400 })).toBe(5_400);
  });

  it('B-09 a record from the future is waited for', () => {
    expect(periodToRun(ran(9_000), 5_000, RULES)).toBeNull();
    expect(periodToRun(ran(9_000), 9_900, RULES)).toBe(10_000);
  });

  it('B-09 calls at any times: periods do not overlap, each has one run, and m + 1 runs take m periods less a tolerance', () => {
    const calls = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 80 });
    fc.assert(
      fc.property(calls, fc.integer({ min: 0, max: 499 }), (gaps, toleranceMs) => {
        const rules = { ...RULES, toleranceMs };
        const runs: { startedAtMs: number; periodAtMs: number }[] = [];
        let nowMs = 0;
        let last: RunRecord | null = null;
        for (const gapMs of gaps) {
          nowMs += gapMs;
          const periodAtMs = periodToRun(last, nowMs, rules);
          if (periodAtMs === null) continue;
          last = { periodAtMs, startedAtMs: nowMs, endedAtMs: nowMs, holder: 'h' };
          runs.push({ startedAtMs: nowMs, periodAtMs });
        }
        for (const [i, { startedAtMs, periodAtMs }] of runs.entries()) {
          expect(periodAtMs - startedAtMs).toBeGreaterThanOrEqual(0);
          expect(periodAtMs - startedAtMs).toBeLessThanOrEqual(toleranceMs);
          for (const [j, later] of runs.entries()) {
            if (j <= i) continue;
            expect(later.periodAtMs - periodAtMs).toBeGreaterThanOrEqual((j - i) * rules.perMs);
            expect(later.startedAtMs - startedAtMs).toBeGreaterThanOrEqual(
              (j - i) * rules.perMs - toleranceMs,
            );
          }
        }
      }),
    );
  });

  it('B-09 fires one period apart, on hosts whose clocks and delays differ by at most the tolerance: one run per fire', () => {
    const spread = fc.integer({ min: 0, max: 100 });
    const fires = fc.array(fc.array(spread, { minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(fires, (all) => {
        let last: RunRecord | null = null;
        for (const [n, hosts] of all.entries()) {
          let runs = 0;
          for (const lateMs of [...hosts].sort((a, b) => a - b)) {
            const nowMs = n * RULES.perMs + lateMs;
            const periodAtMs = periodToRun(last, nowMs, RULES);
            if (periodAtMs === null) continue;
            last = { periodAtMs, startedAtMs: nowMs, endedAtMs: nowMs, holder: 'h' };
            runs++;
          }
          expect(runs).toBe(1);
        }
      }),
    );
  });

  it('B-09 a run that began too late costs at most one fire, and none if it was late by less than the tolerance', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 899 }), (lateMs) => {
        let last = ran(lateMs);
        const ranAt: number[] = [];
        for (let n = 1; n <= 5; n++) {
          const periodAtMs = periodToRun(last, n * RULES.perMs, RULES);
          if (periodAtMs === null) continue;
          last = ran(periodAtMs);
          ranAt.push(n);
        }
        expect(ranAt.length).toBe(lateMs <= RULES.toleranceMs ? 5 : 4);
        expect(nextPeriodAtMs(last, RULES)).toBeGreaterThan(5_000);
      }),
    );
  });
});
