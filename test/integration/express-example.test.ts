import { describe, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { example, expectStory, SLOW } from './support/example.ts';
import { expectNoKeys } from './support/no-keys.ts';

const STORY = [
  /✓ cleo listens on http:\/\/127\.0\.0\.1:\d+, GET \/readyz: 200/,
  /✓ one that is there already is refused: 409 SESSION_EXISTS/,
  /ana +\d\d( \d\d){3}\n/,
  /ben +\d\d( \d\d){3}\n/,
  /cleo +\d\d( \d\d){3}\n/,
  /✓ GET \/targets has all 12 of them/,
  /✓ all 12 are polled, by ana, ben, cleo/,
  /ana is killed/,
  /ben +\d\d( \d\d){5}\n/,
  /cleo +\d\d( \d\d){5}\n/,
  /✓ ben and cleo have what it had/,
  /ben is stopped/,
  /cleo +\d\d( \d\d){11}\n/,
  /✓ ben has ended with exit code 0/,
  /✓ nothing was ever polled by two at once/,
];

describe.concurrent('the example of an Express app (examples/express)', () => {
  it('shares what it polls, and takes over from one that was killed or stopped', SLOW, async () => {
    expectStory(await example('express', []), STORY);
  });

  it('does the same on Redis', SLOW, async () => {
    await using redis = await startRedis();
    expectStory(await example('express', ['--store', redis.url]), STORY);
    await expectNoKeys(redis);
  });
});
