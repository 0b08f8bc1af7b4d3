import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { earlierCommits } from '../../chaos/upgrade-builds.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Two builds of earlier commits come first. */
const TIMEOUT_MS = 240_000;

/** As `npm run upgrade-test` does, without building. */
function upgradeTest(...args: string[]) {
  return spawnSync(process.execPath, ['chaos/upgrade.mjs', ...args], {
    ...{ cwd: ROOT, encoding: 'utf8', timeout: TIMEOUT_MS },
  });
}

// A slice of `npm run upgrade-test`, which has other stores and more time.
describe('two builds on one store', () => {
  it(
    'K-01 instances replaced there, back and there again never work on one thing at once, finish all that was accepted, and refuse another format untouched',
    () => {
      const { status, stdout, stderr } = upgradeTest(
        ...['--store', 'sqlite', '--dwell', '1', '--seed', '7', '--json'],
      );
      expect(status, stderr).toBe(0);
      // An unpacked archive has no earlier commits to build, and the command says so.
      if (earlierCommits('sqlite') === null) return expect(stdout).toContain('no git history');
      const { beliefs, kills, stops, violations, problems, refusals } = JSON.parse(stdout);
      expect({ violations, problems }).toEqual({ violations: [], problems: [] });
      expect(kills).toBeGreaterThan(0);
      expect(stops).toBeGreaterThan(0);
      expect(beliefs).toBeGreaterThan(0);
      for (const { code, isChanged } of refusals)
        expect({ code, isChanged }).toEqual({ code: 'STORE_UNSUITABLE', isChanged: false });
    },
    TIMEOUT_MS,
  );

  it('a store that it does not know is refused, with the value and the rule', () => {
    const { status, stderr } = upgradeTest('--store', 'mysql');
    expect(status).toBe(64);
    expect(stderr).toContain("--store is 'mysql': it must be one of sqlite, redis, postgres");
  });
});
