// Runs unit tests over mutated files: scripts/mutants/judge.mjs starts it, and scripts/mutants/runner.mjs runs the tests.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const { HOLDFAST_MUTANTS = '' } = process.env;
const root = fileURLToPath(new URL('../..', import.meta.url));
const { sources, tests, runner, workers } = JSON.parse(
  readFileSync(join(HOLDFAST_MUTANTS, 'run.json'), 'utf8'),
);
const mutated = new Map(sources.map(([file, source]) => [join(root, file), source]));

export default defineConfig({
  root,
  plugins: [{ name: 'mutants', enforce: 'pre', load: (id) => mutated.get(id.split('?')[0]) }],
  test: {
    include: tests,
    pool: 'forks',
    maxWorkers: workers,
    // The runner has its own limit for the tests, which a machine that stands still does not shorten.
    testTimeout: runner === undefined ? 30_000 : 0,
    hookTimeout: 30_000,
    ...(runner === undefined ? { bail: 1 } : { runner }),
  },
});
