import { expect, it } from 'vitest';
import { planRun } from '../../src/cli/commands/run/plan.ts';
import { deriveTimings } from '../../src/lease/timings.ts';
import { LONGEST_TTL_MS } from '../../src/store/port/keyspaces.ts';

const message = (flags: Parameters<typeof planRun>[0]) => {
  try {
    planRun(flags);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
};

it('by default a lease lasts 30 s and the command has 5 s to stop; a short one leaves less', () => {
  expect(planRun({})).toMatchObject({
    timings: { ttl: 30_000, operationTimeout: 4_000 },
    graceMs: 5_000,
    waitMs: 0,
  });
  expect(planRun({ ttl: '6s' })).toMatchObject({
    timings: { ttl: 6_000 },
    graceMs: 1_000,
  });
  expect(planRun({ ttl: '1h', wait: '2m' })).toMatchObject({
    waitMs: 120_000,
  });
});

it.each([
  ['600ms', undefined],
  ['601ms', undefined],
  ['3s', '500ms'],
  ['3s', '1250ms'],
  ['30s', '12.5s'],
  ['12h', '10m'],
  ['30s', '0s'],
])('what fits is what the library accepts: --ttl %s --grace %s', (ttl, grace) => {
  const plan = planRun({ ttl, ...(grace !== undefined && { grace }) });
  const { guardMs } = deriveTimings(plan.timings, {}, LONGEST_TTL_MS);
  expect(guardMs).toBeGreaterThanOrEqual(plan.graceMs + 100);
});

it.each([
  [{ ttl: '500ms' }, /^--ttl is "500ms": a lease lasts from 600ms to 12h/],
  [{ ttl: '13h' }, /^--ttl is "13h"/],
  [{ ttl: 'soon' }, /^--ttl is "soon": a duration is/],
  [{ wait: '-1s' }, /^--wait is "-1s"/],
  [{ grace: '5 s' }, /^--grace is "5 s"/],
  [{ ttl: '3s', grace: '5s' }, /^--grace is "5s": with --ttl 3s at most 1250ms .* lower --grace/],
])('what does not fit is refused in the words of the flags: %j', (flags, expected) => {
  expect(message(flags)).toMatch(expected);
});

it.each([
  [
    { oncePer: '1m', tolerance: '30s' },
    /^--once-per is "1m": a period is longer than twice the --tol/,
  ],
  [{ oncePer: 'daily' }, /^--once-per is "daily": a duration/],
  [{ tolerance: '30s' }, /^--tolerance is "30s": it needs --once-per/],
  [{ onCrash: 'skip' as const }, /^--on-crash is "skip": it needs --once-per/],
  [
    { oncePer: '1h', onCrash: 'maybe' as 'skip' },
    /^--on-crash is "maybe": it must be 'skip' or 'retry'/,
  ],
  [{ oncePer: '1h', holdAtLeast: '1m' }, /^--hold-at-least is "1m": not with --once-per/],
])('B-09 refuses %j, with field, value and rule', (flags, rule) => {
  expect(message(flags)).toMatch(rule);
});

it('B-09 B-10 a plan has its period, and how long the lease stays taken', () => {
  const { period } = planRun({ oncePer: '1h', onCrash: 'retry' });
  expect(period).toEqual({ per: '1h', tolerance: undefined, onCrash: 'retry' });
  expect(planRun({ holdAtLeast: '1m' })).toMatchObject({ period: null, holdAtLeastMs: 60_000 });
});
