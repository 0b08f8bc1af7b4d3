import { describe, expect, it } from 'vitest';
import { postgresPrograms, startPostgres } from '../support/postgres-server.ts';
import { example, expectStory, SLOW } from './support/example.ts';

const STEP = [
  /✓ ana loses the answer to COMMIT, and the step is done: \d+/,
  /✓ ben continues, and finds the result of the step/,
  /✓ nothing is paid twice: \d+/,
];
const STORY = ['pg', 'postgres', 'Drizzle', 'Kysely', 'Knex'].flatMap((client) => [
  new RegExp(`^${client}$`, 'm'),
  /✓ ana has the lease, and its transaction commits: \d+/,
  /ben +has the lease, fence \d+/,
  /✓ ana has lost it, and gets FENCE_STALE/,
  /✓ nothing of its transaction is there: \d+/,
]);

describe('the example of guard (examples/guard)', () => {
  it(
    'B-22 shows with five clients that a process without its lease cannot commit',
    SLOW,
    async () => {
      const result = await example('guard', []);
      expectStory(result, [...STORY, ...STEP, /✓ a lease through an instance of postgres guards/]);
    },
  );

  it('B-22 shows the same on a server of yours, and leaves nothing there', SLOW, async () => {
    await using postgres = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
    const result = await example('guard', [], { DATABASE_URL: postgres.url });
    expectStory(result, [...STORY, ...STEP]);
    expect(await postgres.schemas()).toEqual([]);
  });
});
