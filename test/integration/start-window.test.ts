/** The moment at which a command has a process, and the one who ordered it has not heard of that. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { statOf } from '../../src/worker/supervisor/proc.ts';
import { isStopped, thawProcess } from '../support/process.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import {
  childrenOf,
  cli,
  privateFolder,
  type Running,
  startCli,
  supervisorOf,
  Ticker,
} from './support/cli.ts';
import { Crew, inMs } from './support/commands.ts';
import { faultAfterSpawn } from './support/fault-after-spawn.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';
import { hostMs } from './support/lease-watch.ts';

leaveNothingBehind();

const SHORT = ['--ttl', '3s', '--grace', '500ms'];
const folder = privateFolder();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

function start(signal: 'SIGKILL' | 'SIGSTOP', ticker: Ticker): Running {
  const args = ['run', ...SHORT, signal, '--', ...ticker.command];
  return startCli(args, { at: redis, env: faultAfterSpawn(signal) });
}

/** As soon as another has the lease, and for as long as a process needs to start and to be seen. */
async function expectNeverBegan(key: string, ticker: Ticker): Promise<void> {
  await using holdfast = await openAt(redis);
  await take(holdfast, key, { wait: '15s' });
  await expectNothing(ticker);
}

async function expectNothing(ticker: Ticker): Promise<void> {
  const fromMs = hostMs();
  await until(() => hostMs() > fromMs + 500, { what: 'a moment in which it could begin' });
  expect(ticker.lines).toEqual([]);
}

describe.concurrent('K-04 holdfast run whose supervisor, between starting the command and reporting it,', () => {
  it('K-04 is killed with -9: the command never begins, and the lease is free', async () => {
    const ticker = new Ticker('window-killed', 'stubborn');
    await using run = start('SIGKILL', ticker);
    const { code, stderr } = await run.end();
    expect(stderr).toContain('so the command was ended');
    expect(code).toBe(70);
    expect((await cli(['get', 'SIGKILL'], { at: redis })).stdout).toMatch(/^'SIGKILL' is free/);
    await expectNeverBegan('SIGKILL', ticker);
  });

  it('K-04 is frozen: the command never begins, whoever gets the lease', async () => {
    const ticker = new Ticker('window-frozen', 'stubborn');
    await using run = start('SIGSTOP', ticker);
    const supervisor = await supervisorOf(run);
    await until(() => isStopped(supervisor), { what: 'the supervisor to stand still' });
    const waiting = childrenOf(supervisor);
    expect(waiting).toHaveLength(1);
    await cli(['revoke', 'SIGSTOP', '--reason', 'a test'], { at: redis });
    await expectNeverBegan('SIGSTOP', ticker);
    const { code, stderr } = await run.end();
    expect(stderr).toContain('it was revoked');
    expect(code).toBe(76);
    for (const pid of [supervisor, waiting[0]?.pid ?? 0])
      await until(() => statOf(pid)?.isDead ?? true, { what: `process ${pid} to be gone` });
    await expectNothing(ticker);
  });
});

/** Commands as a worker runs them. */
function crewWith(signal: 'SIGKILL' | 'SIGSTOP'): Crew {
  vi.stubEnv('NODE_OPTIONS', faultAfterSpawn(signal).NODE_OPTIONS);
  vi.stubEnv('AFTER_SPAWN', signal);
  try {
    return new Crew();
  } finally {
    vi.unstubAllEnvs();
  }
}

describe('I-17 a command of a worker whose supervisor, between starting the command and reporting it,', () => {
  it('K-04 is killed with -9 never begins', async () => {
    await using crew = crewWith('SIGKILL');
    const ticker = new Ticker('worker-killed', 'stubborn');
    const run = crew.run(ticker.command);
    expect(await run.outcome).toMatchObject({ why: 'unsupervised', survivors: false });
    expect(await run.started).toBeNull();
    await expectNothing(ticker);
  });

  it('K-04 is frozen, and wakes up after the command was stopped: the command never begins', async () => {
    await using crew = crewWith('SIGSTOP');
    const ticker = new Ticker('worker-frozen', 'stubborn');
    const run = crew.run(ticker.command);
    await until(() => isStopped(crew.supervisor), { what: 'the supervisor to stand still' });
    run.stop();
    await thawProcess(crew.supervisor);
    expect(await run.outcome).toMatchObject({ why: 'ordered', signal: 'SIGTERM' });
    await expectNothing(ticker);
  });

  it('K-04 a command does not begin before its group is on record; not even if its supervisor dies then', async () => {
    await using crew = new Crew();
    const ticker = new Ticker('unrecorded');
    const order = { command: ticker.command, env: {}, deadline: inMs(60_000), graceMs: 500 };
    const run = crew.commands.run(order);
    const group = await run.started;
    expect(group).not.toBeNull();
    await expectNothing(ticker);
    process.kill(crew.supervisor, 'SIGKILL');
    expect(await run.outcome).toMatchObject({ why: 'unsupervised', survivors: false });
    expect(statOf(group?.group ?? 0)?.isDead ?? true).toBe(true);
    expect(ticker.lines).toEqual([]);
  });
});

describe('a command that waited at its gate', () => {
  it('has the environment, the arguments and the open files that it would have without', async () => {
    await using crew = new Crew();
    const file = join(folder, 'seen.json');
    const env = { PLAIN: 'a b\n"c"', 'my.odd-name': 'x y', EMPTY: '' };
    const script = `require('fs').writeFileSync(process.argv[1], JSON.stringify({
      args: process.argv.slice(2), env: process.env, fds: require('fs').readdirSync('/proc/self/fd') }))`;
    const args = ['', '-x', 'a "b" $HOME', '*'];
    const run = crew.run([process.execPath, '-e', script, file, ...args], { env });
    expect(await run.outcome).toMatchObject({ code: 0, output: [] });
    const seen = JSON.parse(readFileSync(file, 'utf8')) as { args: string[]; env: object };
    expect(seen.args).toEqual(args);
    expect(seen.env).toMatchObject(env);
  });

  it('has no pipe to its supervisor', async () => {
    await using crew = new Crew();
    const outcome = await crew.sh('test -e /proc/$$/fd/3 || echo none').outcome;
    expect(outcome).toMatchObject({ code: 0, output: ['none'] });
  });

  it.each([
    ['a program that is found by PATH and may not be executed', ['x-not'], 'EACCES'],
    ['a folder', ['/'], 'EACCES'],
    ['an empty name', [''], 'ENOENT'],
    ['a path that is none', ['./no/such'], 'ENOENT'],
  ])('is not started where it is %s', async (_, command, error) => {
    writeFileSync(join(folder, 'x-not'), '', { mode: 0o644 });
    await using crew = new Crew();
    const run = crew.run(command, { env: { PATH: `${folder}:${process.env.PATH}` } });
    expect(await run.outcome).toEqual({ event: 'failed', error });
  });
});
