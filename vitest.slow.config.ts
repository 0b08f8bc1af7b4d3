import { defineConfig } from 'vitest/config';

/** Longer than anybody waits: how long a run takes is said when it is started. */
const DAY_MS = 24 * 3_600_000;

// What takes too long for every change: `npm run test:slow`.
export default defineConfig({
  test: {
    include: ['test/slow/**/*.test.ts'],
    globalSetup: 'test/support/require-redis.ts',
    testTimeout: DAY_MS,
    hookTimeout: 60_000,
    pool: 'forks',
    fileParallelism: false,
  },
});
