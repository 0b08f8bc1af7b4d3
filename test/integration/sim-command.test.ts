import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** As `npm run sim` does, without building. */
function run(file: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`sim/${file}`, ...args], {
    ...{ cwd: ROOT, encoding: 'utf8', timeout: 120_000 },
  });
  return { status, stdout, stderr };
}

describe('npm run sim', () => {
  it('runs worlds for as long as it is told, and says what was reached', () => {
    const { status, stdout } = run(
      'main.mjs',
      '--hours',
      '0.2',
      '--seed',
      '1',
      '--no-save',
      '--json',
    );
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ seed: 1, violations: 0, broken: [] });
    expect(result.hours).toBeGreaterThanOrEqual(0.2);
    expect(result.counts['write accepted']).toBeGreaterThan(0);
    // So short a run can not have been everywhere, and does not pretend to.
    expect(result.missed.length).toBeGreaterThan(0);
    expect(status).toBe(0);
  });

  it('says in words what it did, and what it never reached', () => {
    const { status, stdout } = run(
      'main.mjs',
      '--hours',
      '0.3',
      '--world',
      '0.1',
      '--seed',
      '2',
      '--no-save',
    );
    expect(stdout).toMatch(/^6 worlds from seed 2, .* every promise was kept\.\nNever reached/m);
    expect(status).toBe(0);
  });

  it.each([
    ['main.mjs', ['--hours', 'many'], "--hours is a number above 0, not 'many'"],
    ['main.mjs', ['--jobs', '0'], "--jobs is a number above 0, not '0'"],
    ['main.mjs', ['--world', '0'], "--world is a number above 0, not '0'"],
    ['bugs.mjs', ['--jobs', '0.5'], "--jobs is a number above 0, not '0.5'"],
    ['main.mjs', ['--frobnicate'], '--frobnicate'],
    ['bugs.mjs', ['--only', 'no such bug'], "no bug has 'no such bug' in its name"],
  ])('%s %s is refused, with its help', (file, args, said) => {
    const { status, stderr } = run(file, ...args);
    expect(stderr).toContain(said);
    expect(stderr).toContain('Usage: npm run sim');
    expect(status).toBe(2);
  });
});

interface SeededBug {
  readonly name: string;
  readonly patches: readonly { readonly file: string; readonly find: string }[];
}

async function seededBugs(): Promise<readonly SeededBug[]> {
  const files = ['seeded-bugs', 'workflow-bugs', 'intent-bugs', 'worker-bugs'];
  const lists = await Promise.all(
    files.map(async (file): Promise<Record<string, readonly SeededBug[]>> => {
      return import(new URL(`../../sim/${file}.mjs`, import.meta.url).href);
    }),
  );
  return lists.flatMap((list) => Object.values(list).flat());
}

describe('npm run sim:bugs', () => {
  it('can put every one of its bugs into the code as it is now', async () => {
    const bugs = await seededBugs();
    const lost = bugs.flatMap(({ name, patches }) =>
      patches
        .filter(({ file, find }) => {
          const built = readFileSync(new URL(`../../dist/${file}`, import.meta.url), 'utf8');
          return built.split(find).length !== 2;
        })
        .map(({ file }) => `${name}: ${file}`),
    );
    expect(bugs.length).toBeGreaterThan(30);
    expect(lost).toEqual([]);
  });

  it('K-02 K-15 finds a fence from a counter, and a store without quarantine', () => {
    for (const name of ['fences from a counter', 'no quarantine']) {
      const { status, stdout } = run('bugs.mjs', '--only', name, '--hours', '20', '--json');
      expect(JSON.parse(stdout)).toMatchObject([{ name, unit: 'h simulated', bar: 20, ok: true }]);
      expect(status).toBe(0);
    }
  }, 120_000);
});
