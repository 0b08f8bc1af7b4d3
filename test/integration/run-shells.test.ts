import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import {
  BIN,
  cli,
  type Running,
  startCli,
  startProgram,
  startShell,
  supervisorOf,
  Ticker,
} from './support/cli.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const CODES: Record<string, readonly (readonly [string, number])[]> = {
  sh: [
    ['true', 0],
    ['no-such-command', 127],
    ['/etc/passwd', 126],
    ["sh -c 'kill -KILL $$'", 137],
  ],
  bash: [
    ["sh -c 'exit 7'", 7],
    ["sh -c 'kill -TERM $$'", 143],
  ],
};

describe.concurrent.each(['sh', 'bash'])('in %s', (shell) => {
  const key = `${shell}-key`;
  const end = (line: string, input?: string) => startShell(shell, line, { at: redis }).end(input);

  it('the exit code is that of the command', async () => {
    for (const [command, code] of CODES[shell] ?? []) {
      const { stdout } = await end(`holdfast run ${key} -- ${command}; echo $?`);
      expect(`${command}: ${stdout}`).toBe(`${command}: ${code}\n`);
    }
  });

  it('input, output, arguments and environment are those of the command', async () => {
    const script = 'cat; echo "$1" >&2; echo "$HOLDFAST_LEASE_KEY $HOLDFAST_LEASE_FENCE $MINE"';
    const line = `export MINE=mine; holdfast run ${key}-io -- sh -c '${script}' sh 'a  b "c" --json' | tr a-z A-Z`;
    const { stdout, stderr } = await end(line, 'from stdin\n');
    expect(stderr).toBe('a  b "c" --json\n');
    expect(stdout).toMatch(new RegExp(`^FROM STDIN\n${key.toUpperCase()}-IO \\d{16} MINE\n$`));
  });
});

it('a held lease is said, and is 75, unless the operator wants it otherwise', async () => {
  await using holdfast = await openAt(redis);
  const { holder, fence } = await take(holdfast, 'held');
  const line = `
    holdfast run held -- echo never; echo $?
    holdfast run --quiet --held-exit-code 0 held -- echo never && echo fine`;
  const { stdout, stderr } = await startShell('sh', line, { at: redis }).end();
  expect(stdout).toBe('75\nfine\n');
  const said = `holdfast: could not acquire 'held': held by ${holder} (fence ${fence}), expires in `;
  expect(stderr.replace(/\d+ s\./, '')).toBe(`${said} Use --wait to wait for it.\n`);
});

it('K-15 a store in quarantine is never silent, and is 79: no machine runs the command', async () => {
  await using young = await startRedis();
  const line = `
    holdfast run --quiet --held-exit-code 0 nightly -- echo never; echo $?
    holdfast run --quiet --held-exit-code 0 --slots 2 nightly -- echo never; echo $?`;
  const options = { at: young, env: { HOLDFAST_QUARANTINE: 'on' } };
  const { stdout, stderr } = await startShell('sh', line, options).end();
  expect(stdout).toBe('79\n79\n');
  const said = "'nightly' was not run: the store is in quarantine for ";
  expect(stderr.split('\n').filter((one) => one.includes(said))).toHaveLength(2);
});

describe.concurrent('the command', () => {
  it('is given no more open files than the three of everyone', async () => {
    const { stdout } = await cli(['run', 'files', '--', 'ls', '/proc/self/fd'], { at: redis });
    // And the one that ls itself opens to look.
    expect(
      stdout
        .trim()
        .split('\n')
        .filter((fd) => Number(fd) < 16),
    ).toEqual(['0', '1', '2', '3']);
  });

  it('costs two small processes: together less than 90 MB', async () => {
    const ticker = new Ticker('small');
    await using run = startCli(['run', 'small', '--', ...ticker.command], { at: redis });
    await ticker.runs();
    const supervisor = await supervisorOf(run);
    expect(shareKb(run.pid) + shareKb(supervisor)).toBeLessThan(90_000);
    run.signal('SIGTERM');
    expect(await run.end()).toMatchObject({ code: 0 });
  });

  it('ends with the wait for it: SIGTERM ends holdfast run at once', async () => {
    await using holdfast = await openAt(redis);
    await take(holdfast, 'waited');
    await using run = startCli(['run', '--wait', '60s', 'waited', '--', 'echo', 'never'], {
      at: redis,
    });
    const isInLine = async () => (await redis.cli('ZCARD', 'line:{lease:waited}')) === 1;
    await until(isInLine, { what: 'it to wait', deadlineMs: 10_000 });
    run.signal('SIGTERM');
    expect(await run.end()).toEqual({ code: null, signal: 'SIGTERM', stdout: '', stderr: '' });
  });
});

/** The memory that is this process's own, with its share of what it has in common with others. */
function shareKb(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]);
}

/** Runs a line of shell on a terminal of its own; what is written to it is typed. */
function onTerminal(line: string): Running {
  const script = `holdfast() { "${process.execPath}" "${BIN}" "$@"; }; ${line}`;
  return startProgram('script', ['-qec', `bash -c '${script}'`, '/dev/null'], { at: redis });
}

const CTRL_C = '\u0003';

function hasScript(): boolean {
  try {
    execFileSync('script', ['--version']);
    return true;
  } catch {
    return false;
  }
}

describe.concurrent('on a terminal', () => {
  const WHY = 'needs `script` of bsdutils for a terminal';

  it('Ctrl-C reaches the command, and holdfast run ends as it does', async ({ skip }) => {
    if (!hasScript()) skip(WHY);
    const ticker = new Ticker('typed');
    const command = `trap "exit 9" INT; ${ticker.command.join(' ')} & wait`;
    await using run = onTerminal(
      `holdfast run typed -- sh -c "${command.replaceAll('"', '\\"')}"; echo code $?`,
    );
    await ticker.runs();
    run.type(CTRL_C);
    await until(() => run.stdout.includes('code'), { what: 'the end of the command' });
    expect(run.stdout).toContain('code 9');
    await run.end();
  });

  it('a wait shows who is waited for, and Ctrl-C ends it with 130', async ({ skip }) => {
    if (!hasScript()) skip(WHY);
    await using holdfast = await openAt(redis);
    const { holder } = await take(holdfast, 'shown');
    await using run = onTerminal('holdfast run --wait 60s shown -- echo never; echo still here');
    await until(() => run.stdout.includes('expires in'), { what: 'the line', deadlineMs: 10_000 });
    expect(run.stdout).toContain(`for 'shown': held by ${holder}, expires in`);
    run.type(CTRL_C);
    const { code, stdout } = await run.end();
    // A shell that is told to end waits, and ends too if what it waited for ended by the signal.
    expect(code).toBe(130);
    expect(stdout).not.toMatch(/never|still here/);
    // What was shown last is an empty line.
    expect(stdout.endsWith('\r\u001b[2K')).toBe(true);
  });
});
