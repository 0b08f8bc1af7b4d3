import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { privateFolder, type Result, startProgram } from './support/cli.ts';
import { expectNoKeys } from './support/no-keys.ts';

const START = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));

/** Nine seconds of it are leases that run out; the rest is a machine that does something else, too. */
const END_DEADLINE_MS = 60_000;
const SLOW = { timeout: END_DEADLINE_MS + 10_000 };

const STORY = [
  'ana   has it',
  'ben   may not have it: held',
  'ben   has it',
  'cleo  has it',
  'ben   asks first: isHeld() is false',
  'refused: FENCE_STALE',
  'cleo  is dead',
  'ana   has it',
  'as it should be: {"by":"cleo"}',
];

async function lease(...args: string[]): Promise<Result> {
  await using demo = startProgram(process.execPath, [START, 'lease', ...args], {
    cwd: privateFolder(),
  });
  return await demo.end('', END_DEADLINE_MS);
}

function expectStory({ code, stdout, stderr }: Result, where: string): void {
  const output = `${stdout}${stderr}`;
  expect(code, output).toBe(0);
  expect(output).toContain(`on ${where}`);
  let at = 0;
  for (const line of STORY) {
    expect(output.slice(at), output).toContain(line);
    at = output.indexOf(line, at) + line.length;
  }
}

describe.concurrent('the example of a lease', () => {
  it('K-04 K-11 shows a frozen and a killed holder, and that neither does harm', SLOW, async () => {
    expectStory(await lease(), 'sqlite:.holdfast/holdfast.db');
  });

  it('shows the same on Redis, and leaves nothing behind there', SLOW, async () => {
    await using redis = await startRedis();
    expectStory(await lease('--store', redis.url), 'redis://');
    await expectNoKeys(redis);
  });
});
