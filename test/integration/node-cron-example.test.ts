import { describe, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { example, expectStory, SLOW } from './support/example.ts';
import { expectNoKeys } from './support/no-keys.ts';

const RAN = /✓ the fire of \S+ ran once, on (ana|ben|cleo)\n/;
const STORY = [
  /All three are up/,
  ...[RAN, RAN, RAN],
  /(ana|ben|cleo) is dead/,
  ...[RAN, RAN, RAN],
];

describe.concurrent('the example of node-cron (examples/node-cron)', () => {
  it(
    'B-09 runs each fire on one of three instances, and on another after one has died',
    SLOW,
    async () => {
      expectStory(await example('node-cron', []), STORY);
    },
  );

  it('B-09 does the same on Redis', SLOW, async () => {
    await using redis = await startRedis();
    expectStory(await example('node-cron', ['--store', redis.url]), STORY);
    await expectNoKeys(redis);
  });
});
