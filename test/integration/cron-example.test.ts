import { describe, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { example, expectStory, SLOW } from './support/example.ts';
import { expectNoKeys } from './support/no-keys.ts';

const STORY = [
  /holdfast run --ttl 30s --held-exit-code 0 nightly-report -- \.\/report\.sh/,
  /The first night/,
  /(ana|ben|cleo) +begins the report, fence \d+/,
  /✓ (ana|ben|cleo) runs the report; may not, and said why: \w+, \w+/,
  /has written 42 into the report/,
  /The second night/,
  /✓ (ana|ben|cleo) runs the report; may not, and said why: \w+, \w+/,
  /is dead: its cron, and its holdfast run/,
  /✓ its report was ended .* later/,
  /✓ (ana|ben|cleo) runs the report; may not, and said why: \w+\n/,
  /✓ the next tick runs elsewhere, on (ana|ben|cleo), under a higher fence/,
  /has written 42 into the report/,
];

describe.concurrent('the example of cron (examples/cron)', () => {
  it(
    'runs the report on one of three machines, and elsewhere after one has died',
    SLOW,
    async () => {
      expectStory(await example('cron', []), STORY);
    },
  );

  it('does the same on Redis', SLOW, async () => {
    await using redis = await startRedis();
    expectStory(await example('cron', ['--store', redis.url]), STORY);
    await expectNoKeys(redis);
  });
});
