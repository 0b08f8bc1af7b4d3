import { defineConfig } from 'vitest/config';
import { filesOf, suite } from './test/support/suites.ts';

/** Loads every processor: no other file may run beside it. */
const ALONE = ['test/integration/contention.test.ts'];

const integration = {
  globalSetup: 'test/support/require-redis.ts',
  testTimeout: 30_000,
  hookTimeout: 30_000,
  pool: 'forks' as const,
  // For conformance suites against real time: most of their tests wait for a lease to end.
  maxConcurrency: 15,
};

// No retries anywhere: a test that needs a second try has found something.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: suite === 'rest' ? [] : ['test/**/*.test.ts'],
          exclude: ['test/{integration,scenarios,slow,e2e,docs}/**'],
          // Against what hangs. How long a test takes is no business of the suite's, least of all on a machine with much to do.
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...integration,
          name: 'integration',
          include: filesOf('integration').include,
          exclude: [...filesOf('integration').exclude, ...ALONE],
          // Real servers with real deadlines: more at once on a small machine measures the machine.
          maxWorkers: 2,
          // After the unit tests, so that these do not steal its processors.
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...integration,
          name: 'crowd',
          include: suite === 'rest' ? [] : ALONE,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...integration,
          name: 'scenarios',
          ...filesOf('scenarios'),
          // A story of a fleet has many chapters, and each has deadlines of its own.
          testTimeout: 90_000,
          // A fleet is up to eleven processes, which wait more than they work: three fleets fit on two processors.
          maxWorkers: 3,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          ...integration,
          name: 'page',
          globalSetup: 'test/support/require-chromium.ts',
          ...filesOf('e2e'),
          testTimeout: 60_000,
          // A browser and a fleet each.
          maxWorkers: 2,
          sequence: { groupOrder: 4 },
        },
      },
      {
        test: {
          ...integration,
          name: 'docs',
          ...filesOf('docs'),
          testTimeout: 120_000,
          maxWorkers: 2,
          // Pages at once, each with processes of its own, most of which wait.
          maxConcurrency: 3,
          sequence: { groupOrder: 5 },
        },
      },
    ],
  },
});
