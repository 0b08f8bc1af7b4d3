import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { example, expectStory, SLOW } from './support/example.ts';
import { expectNoKeys } from './support/no-keys.ts';

const RAN = /✓ the fire of \S+ ran once, on (ana|ben|cleo)\n/;
const STORY = [
  /All three are up/,
  ...[RAN, RAN, RAN],
  /✓ one of the three leads the inbox: (ana|ben|cleo)\n/,
  /(ana|ben|cleo) is dead/,
  ...[RAN, RAN, RAN],
];

describe.concurrent('the example of NestJS (examples/nest)', () => {
  it(
    'B-09 runs each fire on one of three applications, and on another after one has died',
    SLOW,
    async () => {
      expectStory(await example('nest', []), STORY);
    },
  );

  it('B-09 does the same on Redis', SLOW, async () => {
    await using redis = await startRedis();
    expectStory(await example('nest', ['--store', redis.url]), STORY);
    await expectNoKeys(redis);
  });

  it('B-09 has decorators whose types fit those of Nest', SLOW, async () => {
    const compile = promisify(execFile)('npx', ['tsc', '-p', 'examples/nest']);
    await expect(compile).resolves.toMatchObject({ stdout: '' });
  });
});
