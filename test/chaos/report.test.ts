import { expect, it } from 'vitest';
import { check } from '../../chaos/checker.ts';
import { countsOf } from '../../chaos/counts.ts';
import type { Entry } from '../../chaos/history.ts';
import { asJson, summary } from '../../chaos/report.ts';
import type { RunReport } from '../../chaos/run.ts';

const fault = { fault: 1, kind: 'freeze', victim: 'a', recoveryMs: 7_000, mayBreak: [] };
const lease = { target: 'target-1', deadlineMs: 4_000 };
const HISTORY: Entry[] = [
  { atMs: 1_000, who: 'harness', what: 'run.began', targets: ['target-1'] },
  { atMs: 1_100, who: 'a', what: 'lease.acquired', ...lease, fence: 10 },
  { atMs: 1_200, who: 'nemesis', what: 'fault.began', ...fault },
  { atMs: 1_500, who: 'b', what: 'lease.acquired', ...lease, fence: 11 },
  { atMs: 1_600, who: 'b', what: 'lease.acquired', ...lease, target: 'target-2', fence: 12 },
  { atMs: 1_700, who: 'nemesis', what: 'fault.ended', fault: 1, kind: 'freeze' },
];

function reportOf(history: Entry[], options: Partial<RunReport> = {}): RunReport {
  return {
    ...{ topology: 'single', variant: 'holdfast', seed: 77, seconds: 60, commit: 'abc1234' },
    ...{ isInterrupted: false, tookMs: 1_000, history },
    verdict: check(history),
    counts: countsOf(history, ['freeze', 'kill']),
    ...options,
  };
}

it('a violation is told with seed, commit, the faults around it, and what happened to its target', () => {
  const text = summary(reportOf(HISTORY));
  expect(text).toContain('Holdfast on single, 60 s of faults, seed 77, commit abc1234');
  expect(text).toContain('1 VIOLATIONS');
  expect(text).toContain('0.500 s  exclusion: target-1 b (fence 11) was valid while a (fence 10)');
  expect(text).toContain('0.200 s  freeze, a, to 0.700 s');
  const excerpt = text.slice(text.indexOf('What happened'));
  expect(excerpt).toContain('"fence":10');
  expect(excerpt).not.toContain('"fence":12');
});

it('a kind of fault that never came in a whole minute is named', () => {
  expect(summary(reportOf(HISTORY))).toContain('Never came: kill.');
  expect(summary(reportOf(HISTORY, { seconds: 59 }))).not.toContain('Never came');
});

it('the naive variant fails by not being found out', () => {
  const quiet = HISTORY.slice(0, 2);
  expect(summary(reportOf(quiet))).toContain('No violation.');
  expect(summary(reportOf(quiet, { variant: 'naive' }))).toContain('this harness is blind');
  expect(summary(reportOf(HISTORY, { variant: 'naive' }))).toContain('Found out, as it has to be');
});

it('machines get everything but the history, and where that is', () => {
  const told: unknown = JSON.parse(asJson(reportOf(HISTORY), '/somewhere'));
  expect(told).toMatchObject({
    ...{ seed: 77, historyEntries: HISTORY.length, historyPath: '/somewhere' },
    verdict: { violations: [{ invariant: 'exclusion', target: 'target-1' }] },
  });
  expect(told).not.toHaveProperty('history');
});
