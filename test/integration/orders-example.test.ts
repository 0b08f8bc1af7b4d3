import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { privateFolder, type Result, startProgram } from './support/cli.ts';
import { expectNoKeys } from './support/no-keys.ts';

const START = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));
const STEPS = ['VALIDATE_DATA', 'PROCESS_DATA', 'STORE_RESULTS'];

/** Up to ten processes that start anew again and again: on a machine that does something else, too, that takes a while. */
const END_DEADLINE_MS = 60_000;
const SLOW = { timeout: END_DEADLINE_MS + 10_000 };

/** Its temporary files go into a folder of this test, which should be empty in the end. */
async function orders(...args: string[]): Promise<Result & { left: string[] }> {
  const cwd = privateFolder();
  const options = { cwd, env: { TMPDIR: cwd } };
  await using running = startProgram(process.execPath, [START, 'orders', ...args], options);
  return { ...(await running.end('', END_DEADLINE_MS)), left: readdirSync(cwd) };
}

/** What the sink saw of each step: how often it came, was applied, and was refused. */
function seen({ stdout }: Result): number[][] {
  return STEPS.map((step) => {
    const row = stdout.match(new RegExp(`^${step} +(\\d+) +(\\d+) +(\\d+) +(\\d+)$`, 'm'));
    return (row ?? []).slice(1).map(Number);
  });
}

describe.concurrent('the example of orders', () => {
  it(
    'W-14 takes every order through three processors in processes of their own',
    SLOW,
    async () => {
      const result = await orders('--orders', '5');
      expect(result).toMatchObject({ code: 0, stderr: '', left: [] });
      expect(seen(result)).toEqual(STEPS.map(() => [5, 5, 0, 0]));
      for (const step of STEPS) expect(result.stdout).toContain(`order-5  ${step}`);
      expect(result.stdout).toMatch(/Every step of every order was applied once/);
    },
  );

  it(
    'W-14 applies every step once, though orchestrator and processors are killed at the worst moments',
    SLOW,
    async () => {
      const result = await orders('--chaos');
      expect(result, result.stdout).toMatchObject({ code: 0, stderr: '', left: [] });
      expect(result.stdout).toMatch(/^Killed: /m);
      for (const dead of ['orchestrator 2', 'validate 1', 'process 2', 'store 2'])
        expect(result.stdout.match(/^Killed: .*$/m)?.[0]).toContain(dead);
      for (const [came = 0, applied, known = 0, stale = 0] of seen(result)) {
        expect(applied).toBe(8);
        expect(known).toBeGreaterThan(0);
        expect(came).toBe(8 + known + stale);
      }
      expect(result.stdout).toMatch(/orchestrator +goes on with \d orders?, and has emitted/);
      expect(result.stdout).toContain('Every step of every order was applied once');
    },
  );

  it(
    'W-14 shows that a sink without key and fence applies steps twice, and ends with 1',
    SLOW,
    async () => {
      const result = await orders('--chaos', '--naive', '--orders', '2');
      expect(result).toMatchObject({ code: 1, stderr: '', left: [] });
      expect(result.stdout).toMatch(
        /Not every step was applied once[\s\S]*order-\d: VALIDATE_DATA/,
      );
    },
  );

  it('runs on Redis too, and leaves nothing behind there', SLOW, async () => {
    await using redis = await startRedis();
    const result = await orders('--store', redis.url, '--orders', '3');
    expect(result).toMatchObject({ code: 0, stderr: '', left: [] });
    expect(seen(result)).toEqual(STEPS.map(() => [3, 3, 0, 0]));
    await expectNoKeys(redis);
  });

  it('explains itself, and says what is wrong', SLOW, async () => {
    const help = await orders('--help');
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const flag of ['--orders N', '--chaos', '--store URL'])
      expect(help.stdout).toContain(flag);
    const wrong = await orders('--orders', 'many');
    expect(wrong).toMatchObject({ code: 2, stdout: '' });
    expect(wrong.stderr).toMatch(/^--orders is a whole number from 1 to 1000\n/);
    const away = await orders('--store', 'redis://127.0.0.1:1');
    expect(away).toMatchObject({ code: 1, stdout: '', left: [] });
    expect(away.stderr).toMatch(/unreachable/);
  });
});
