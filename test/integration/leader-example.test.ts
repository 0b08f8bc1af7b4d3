import { describe, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { example, expectStory, SLOW } from './support/example.ts';
import { expectNoKeys } from './support/no-keys.ts';

const STORY = [
  /✓ (ana|ben|cleo) leads, and answers/,
  /is asked to stop \(SIGTERM\)/,
  /leads under a higher fence: \d+ after \d+/,
  /✓ nobody led for/,
  /✓ (ana|ben|cleo) has ended with exit code 0/,
  /✓ (ana|ben|cleo) follows, and answers/,
  /is killed \(SIGKILL\)/,
  /leads under a higher fence: \d+ after \d+/,
  /is frozen \(SIGSTOP\)/,
  /leads under a higher fence: \d+ after \d+/,
  /✓ (ana|ben|cleo) wakes up, and knows at once that it does not lead: (expired|failed)/,
  /✓ (ana|ben|cleo) (leads|follows), and answers/,
  /✓ (ana|ben|cleo) has ended with exit code 0/,
  /✓ (ana|ben|cleo) has ended with exit code 0/,
];

describe.concurrent('the example of a leader (examples/leader)', () => {
  it('shows who leads after the leader was stopped, killed and frozen', SLOW, async () => {
    expectStory(await example('leader', []), STORY);
  });

  it('does the same on Redis', SLOW, async () => {
    await using redis = await startRedis();
    expectStory(await example('leader', [], { HOLDFAST_STORE: redis.url }), STORY);
    await expectNoKeys(redis);
  });
});
