import { defineConfig } from 'vitest/config';

// No retries anywhere: a test that needs a second try has found something.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/integration/**'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/support/require-redis.ts'],
          testTimeout: 30_000,
          hookTimeout: 30_000,
          pool: 'forks',
          // Real servers with real deadlines: more at once on a small machine measures the machine.
          maxWorkers: 2,
          // After the unit tests, so that these do not steal its processors.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
