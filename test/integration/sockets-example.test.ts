import { describe, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { example, expectStory, SLOW } from './support/example.ts';
import { expectNoKeys } from './support/no-keys.ts';

const STORY = [
  /✓ 12 accounts are connected: ana \d+, ben \d+, cleo \d+/,
  /ana is killed \(SIGKILL\)/,
  /✓ 12 accounts are connected: ben \d+, cleo \d+/,
  /✓ all were connected again after/,
  /ben is frozen \(SIGSTOP\)/,
  /✓ all were connected again after/,
  /✓ ben woke up, spoke on none of its old connections, and takes part again/,
  /A deploy/,
  /✓ \w+ has handed over, and ended with exit code 0/,
  /✓ \w+ has handed over, and ended with exit code 0/,
  /✓ \w+ has handed over, and ended with exit code 0/,
  /✓ 12 accounts are connected: eve \d+, finn \d+, gus \d+/,
  /✓ one connection for each account, at any time/,
];

describe.concurrent('the example of connections (examples/sockets)', () => {
  it(
    'B-04 one process at a time is connected for each account, over kill -9, SIGSTOP and a deploy',
    SLOW,
    async () => {
      expectStory(await example('sockets', []), STORY);
    },
  );

  it('B-04 does the same on Redis', SLOW, async () => {
    await using redis = await startRedis();
    expectStory(await example('sockets', [], { HOLDFAST_STORE: redis.url }), STORY);
    await expectNoKeys(redis);
  });
});
