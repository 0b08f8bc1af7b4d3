import { describe, expect, it } from 'vitest';
import { postgresPrograms, startPostgres } from '../support/postgres-server.ts';
import { startRedis } from '../support/redis-server.ts';
import { example, expectStory, SLOW } from './support/example.ts';
import { expectNoKeys } from './support/no-keys.ts';

const programs = postgresPrograms();

const STORY = [
  /ana +has the lease, fence \d+/,
  /✓ ana writes the row with a fence: written/,
  /✓ ana writes the key with a fence: written/,
  /is frozen before the very next statement \(SIGSTOP\)/,
  /✓ ben writes the row with a fence: written/,
  /ana wakes up/,
  /it would have heard isHeld\(\) is false/,
  /✓ the row with a fence: refused/,
  /✓ the key with a fence: refused: FENCE_STALE, it has seen \d+/,
  /✓ the row with a fence has 250, as ben wrote/,
  /✓ the key with a fence has 250, as ben wrote/,
  /✓ the row without one has 90: what ben wrote is lost/,
];

describe.concurrent('the example of fencing (examples/fencing)', () => {
  it('shows that a row of PGlite and a key refuse who was frozen', SLOW, async () => {
    const result = await example('fencing', []);
    expectStory(result, [/PGlite in this process/, /a redis-server of this run/, ...STORY]);
  });

  it('shows the same on Redis, and with a PostgreSQL server where there is one', SLOW, async () => {
    await using redis = await startRedis();
    await using postgres = programs === null ? null : await startPostgres(programs);
    const env: Record<string, string> = postgres === null ? {} : { DATABASE_URL: postgres.url };
    const result = await example('fencing', ['--store', redis.url], env);
    const kind = postgres === null ? /PGlite in this process/ : /PostgreSQL +\S+.*, a server/;
    expectStory(result, [kind, /Redis +the store/, ...STORY]);
    await expectNoKeys(redis);
    expect((await postgres?.schemas()) ?? []).toEqual([]);
  });
});
