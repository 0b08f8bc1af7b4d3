import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { privateFolder, type Result, startProgram } from './support/cli.ts';
import { expectNoKeys } from './support/no-keys.ts';

const START = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));

/** Six seconds of it are pictures that come at the pace at which they are shown; the rest is a machine that does something else, too. */
const END_DEADLINE_MS = 60_000;
const SLOW = { timeout: END_DEADLINE_MS + 10_000 };

/** Its temporary files go into a folder of this test. */
function start(cwd: string, args: readonly string[], env: Record<string, string> = {}) {
  const options = { cwd, env: { TMPDIR: cwd, ...env } };
  return startProgram(process.execPath, [START, 'tv', ...args], options);
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' });
}

async function tv(...args: string[]): Promise<Result & { left: string[] }> {
  const cwd = privateFolder();
  await using running = start(cwd, args);
  return { ...(await running.end('', END_DEADLINE_MS)), left: filesIn(cwd) };
}

/** Interrupted while two ffmpegs run, and waited for until nothing runs any more. */
async function interrupted(): Promise<Result & { left: string[] }> {
  const cwd = privateFolder();
  await using running = start(cwd, []);
  const hasTwo = () => /✓ two runs on/.test(running.stdout);
  await until(hasTwo, { what: 'two ffmpegs', deadlineMs: END_DEADLINE_MS });
  running.signal('SIGINT');
  const result = await running.end('', END_DEADLINE_MS);
  expect(result).toMatchObject({ code: 130 });
  await until(() => processesIn(cwd).length === 0, { what: 'the end of its processes' });
  return { ...result, left: filesIn(cwd) };
}

/** Processes whose temporary files go there. */
function processesIn(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`TMPDIR=${folder}\0`);
    } catch {
      return false;
    }
  });
}

/** What it claims that begins so, each with whether it was so. */
function claimed({ stdout }: Result, text: RegExp): string[] {
  return stdout.split('\n').filter((line) => /[✓✗]/.test(line) && text.test(line));
}

describe.concurrent('the example with ffmpeg', () => {
  it(
    'I-08 I-12 I-17 runs two of three channels on two tuners, and goes on where a killed worker stopped',
    SLOW,
    async () => {
      const result = await tv('--keep');
      expect(result, result.stdout).toMatchObject({ code: 0, stderr: '' });
      expect(result.stdout).not.toContain('✗');
      const lines: readonly [RegExp, number][] = [
        [/runs on tuner:\d under fence \d+: ffmpeg \d+/, 3],
        [/three was accepted, too, and has ended: R_NO_TUNER/, 1],
        [/one, asked for again, is the same session/, 1],
        [/two has ended \(R_STOPPED\): ffmpeg \d+ is dead, exit code 255/, 1],
        [/tuner:2 is free/, 1],
        [/its ffmpegs are dead .* later: \d+, \d+$/, 1],
        [/goes on, the same session/, 2],
        [/index\.m3u8 names \d+ parts.*kB/, 5],
        [/begun anew 1 ×/, 2],
        [/no lease is left$/, 1],
        [/no process is left/, 1],
      ];
      for (const [text, count] of lines)
        expect(claimed(result, text), String(text)).toHaveLength(count);
      expect(result.stdout).toMatch(/Everything that was claimed was so\.\n$/);
      const lists = result.left.filter((path) => path.endsWith('/index.m3u8'));
      expect(lists).toHaveLength(3);
    },
  );

  // Not beside the others: four encoders at once are enough for a small machine.
  it.sequential('does the same on Redis, and leaves nothing behind there', SLOW, async () => {
    await using redis = await startRedis();
    const result = await tv('--store', redis.url);
    expect(result, result.stdout).toMatchObject({ code: 0, stderr: '', left: [] });
    expect(claimed(result, /goes on, the same session/)).toHaveLength(2);
    await expectNoKeys(redis);
  });

  it('leaves nothing behind when it is interrupted', SLOW, async () => {
    const { left, stderr } = await interrupted();
    expect({ left, stderr }).toEqual({ left: [], stderr: '' });
  });

  it('explains itself, and says what is wrong', SLOW, async () => {
    const help = await tv('--help');
    expect(help).toMatchObject({ code: 0, stderr: '', left: [] });
    for (const flag of ['--keep', '--store URL']) expect(help.stdout).toContain(flag);
    const wrong = await tv('--shop', 'here');
    expect(wrong).toMatchObject({ code: 2, stdout: '', left: [] });
    expect(wrong.stderr).toMatch(/^Unknown option '--shop'/);
    const cwd = privateFolder();
    await using without = start(cwd, [], { PATH: cwd });
    const bare = await without.end();
    expect(bare).toMatchObject({ code: 1, stdout: '' });
    expect(bare.stderr).toMatch(/^There is no ffmpeg on the PATH. Install it \(.*apt-get install/);
  });
});
