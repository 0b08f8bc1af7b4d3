import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { summary } from '../../chaos/report.ts';
import { keepHistory, runChaos } from '../../chaos/run.ts';

// A slice of `npm run chaos`, which has more seeds, more stores and more time.
const SEED = 7;
const SECONDS = 45;
/** Starting, quarantine and recovery come on top of the faults. */
const TIMEOUT_MS = 150_000;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** As `npm run chaos` does: a run in namespaces is a process of its own. */
function chaosInNamespaces(args: readonly string[], enter: readonly string[] = []) {
  const options = { cwd: ROOT, encoding: 'utf8', timeout: TIMEOUT_MS } as const;
  const run = ['chaos/main.mjs', '--topology', 'sentinel-netns', '--seed', String(SEED), '--json'];
  const [program = '', ...words] = [...enter, process.execPath, ...run, ...args];
  return spawnSync(program, words, options);
}

it(
  'SC-001 E1 E4 US2.2 four instances on a Redis, all of them frozen, killed, cut off and restarted for 45 s, are never valid for one target at once, and are all polling again in time',
  async () => {
    const report = await runChaos({ topology: 'single', seconds: SECONDS, seed: SEED });
    const { violations } = report.verdict;
    // Not by `expect`, which would show neither the faults nor what happened around them.
    if (violations.length > 0)
      throw new Error(`${summary(report)}\nthe history: ${keepHistory(report, tmpdir())}`);
    const { faults, states, failedFaults } = report.counts;
    expect(failedFaults).toBe(0);
    const reached = ['lease uncertain', 'lost: expired', 'quarantined', 'handed over'];
    for (const state of reached) expect(states[state], state).toBeGreaterThan(0);
    expect(Object.values(faults).filter((count) => count === 0)).toEqual([]);
  },
  TIMEOUT_MS,
);

it(
  'a lock as people first write it is found out by the same run within 60 s: the harness is not blind',
  async () => {
    const report = await runChaos({
      ...{ topology: 'single', seconds: 60, seed: SEED, variant: 'naive', stopsAtViolation: true },
    });
    expect(report.verdict.violations.length, summary(report)).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);

it(
  'B-22 B-24 four instances on PostgreSQL, half of them behind pgbouncer, commit nothing under a fence after a higher one was granted, and no restart leads to a quarantine',
  async () => {
    const report = await runChaos({ topology: 'postgres', seconds: SECONDS, seed: SEED });
    if (report.verdict.violations.length > 0)
      throw new Error(`${summary(report)}\nthe history: ${keepHistory(report, tmpdir())}`);
    const { states } = report.counts;
    expect(states['commits compared: guarded writes']).toBeGreaterThan(0);
    expect(states['commits compared: grants']).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);

it(
  'B-22 a transaction that asks by SELECT instead of guard is found out within 60 s, by freezes between that and the COMMIT',
  async () => {
    // Only these: of all faults, a minute has too few of them to rely on.
    const faults = ['freeze at write'];
    const report = await runChaos({
      ...{ topology: 'postgres', seconds: 60, seed: SEED, variant: 'naive', faults },
      stopsAtViolation: true,
    });
    const found = report.verdict.violations.map(({ invariant }) => invariant);
    expect(found, summary(report)).toContain('stale commit');
  },
  TIMEOUT_MS,
);

it(
  'G1 G18 SC-001 instances that a network cuts off together with the primary of Sentinel are never seen at one target at once',
  () => {
    const faults = 'primary and half of the clients cut off,requests lost,replies lost,half-open';
    const { status, stdout, stderr } = chaosInNamespaces(['--seconds', '15', '--faults', faults]);
    expect(status, stderr + stdout).toBe(0);
    if (stdout.startsWith('chaos: skipped'))
      return expect(stdout).toContain('no network namespaces here: ');
    const { counts, verdict } = JSON.parse(stdout);
    expect(verdict).toEqual({ violations: [], permitted: [] });
    expect(counts.failedFaults).toBe(0);
    for (const [fault, count] of Object.entries(counts.faults))
      expect(count, fault).toBeGreaterThan(0);
    expect(counts.states['lost: expired']).toBeGreaterThan(0);
    expect(counts.states['poll seen by a target server']).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);

it(
  'a lock as people first write it is found out by a partition within 40 s',
  () => {
    const faults = 'primary and half of the clients cut off';
    const how = ['--naive', '--seconds', '40', '--faults', faults];
    const { status, stdout, stderr } = chaosInNamespaces(how);
    expect(status, stderr + stdout).toBe(0);
    if (stdout.startsWith('chaos: skipped'))
      return expect(stdout).toContain('no network namespaces here: ');
    expect(JSON.parse(stdout).verdict.violations).not.toEqual([]);
  },
  TIMEOUT_MS,
);

it('a process that may make no namespaces says so in one line, and ends with 0', () => {
  const isRoot = process.getuid?.() === 0;
  const powerless = isRoot ? ['setpriv', '--bounding-set=-sys_admin'] : [];
  const { status, stdout } = chaosInNamespaces(['--seconds', '1'], powerless);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^chaos: skipped: no network namespaces here: .+\n$/);
});
