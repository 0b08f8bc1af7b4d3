import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freezeProcess, thawProcess } from '../support/process.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { childrenOf, cli, startCli, stateOf, supervisorOf, Ticker } from './support/cli.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';
import { hostMs } from './support/lease-watch.ts';

leaveNothingBehind();

const TTL_MS = 3_000;
const SHORT = ['--ttl', `${TTL_MS}ms`, '--grace', '500ms'];

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const start = (key: string, ticker: Ticker, at: { url: string } = redis) =>
  startCli(['run', ...SHORT, key, '--', ...ticker.command], { at });

/** Not before this moment does the store give the key to another, if nobody renews it any more. */
async function earliestExpiryMs(key: string): Promise<number> {
  const askedMs = hostMs();
  const leftMs = Number(await redis.cli('PTTL', `lease:${key}`));
  expect(leftMs).toBeGreaterThan(0);
  return askedMs + leftMs;
}

/** Waits until the key is free and takes it; a command that ran under it must have been dead by then, and stay so. */
async function expectDeadBeforeNext(key: string, ticker: Ticker): Promise<void> {
  await using holdfast = await openAt(redis);
  await take(holdfast, key, { wait: '15s' });
  const takenMs = hostMs();
  const { lastMs } = ticker;
  expect(lastMs).toBeLessThan(takenMs);
  await until(() => hostMs() > takenMs + 100, { what: 'a moment in which it could act' });
  expect(ticker.lastMs).toBe(lastMs);
}

describe.concurrent('K-04 the command is dead before anyone else has the lease, when', () => {
  it('K-04 holdfast run is killed with -9', async () => {
    const ticker = new Ticker('killed');
    const next = new Ticker('killed-next');
    await using run = start('killed', ticker);
    await ticker.runs();
    const options = ['--wait', '20s', ...SHORT];
    await using second = startCli(['run', ...options, 'killed', '--', ...next.command], {
      at: redis,
    });
    run.signal('SIGKILL');
    const expiryMs = await earliestExpiryMs('killed');
    await next.runs();
    expect(ticker.lines).toContain('SIGTERM');
    expect(ticker.lastMs).toBeLessThan(expiryMs);
    expect(ticker.lastMs).toBeLessThan(next.ticksMs[0] ?? 0);
    second.signal('SIGTERM');
    expect(await second.end()).toMatchObject({ code: 0, stderr: '' });
  });

  it('K-04 holdfast run is killed with -9 and the command ignores SIGTERM', async () => {
    const ticker = new Ticker('stubborn', 'stubborn');
    await using run = start('stubborn', ticker);
    await ticker.runs();
    run.signal('SIGKILL');
    const expiryMs = await earliestExpiryMs('stubborn');
    await expectDeadBeforeNext('stubborn', ticker);
    expect(ticker.lines).toContain('SIGTERM');
    expect(ticker.lastMs).toBeLessThan(expiryMs);
  });

  it('K-04 holdfast run is frozen; it says so when it wakes', async () => {
    const ticker = new Ticker('frozen', 'stubborn');
    await using run = start('frozen', ticker);
    await ticker.runs();
    await freezeProcess(run.pid);
    const expiryMs = await earliestExpiryMs('frozen');
    await expectDeadBeforeNext('frozen', ticker);
    expect(ticker.lastMs).toBeLessThan(expiryMs);
    await thawProcess(run.pid);
    const { code, stderr } = await run.end();
    expect(stderr).toMatch(
      /^holdfast: lost 'frozen' \(.*\) after .*; the command was stopped\..*\n$/,
    );
    expect(code).toBe(76);
  });

  it('K-04 Redis stands still; also if the supervisor does, too', async () => {
    await using still = await startRedis();
    const tickers = [new Ticker('still', 'stubborn'), new Ticker('stiller', 'stubborn')] as const;
    await using run = start('still', tickers[0], still);
    await using other = start('stiller', tickers[1], still);
    await Promise.all(tickers.map((ticker) => ticker.runs()));
    await freezeProcess(await supervisorOf(other));
    const frozenMs = hostMs();
    await still.freeze();
    const ends = await Promise.all([run.end(), other.end()]);
    for (const { code, stderr } of ends) {
      expect(stderr).toContain('no renewal was confirmed in time');
      expect(code).toBe(76);
    }
    for (const { lastMs } of tickers) expect(lastMs).toBeLessThan(frozenMs + TTL_MS);
  });

  it('K-08 the command has left others of its group behind: they are ended before the lease is released', async () => {
    const ticker = new Ticker('left', 'stubborn');
    const script = `"$@" & until [ -s '${ticker.file}' ]; do sleep 0.02; done; exit 3`;
    const command = ['sh', '-c', script, 'sh', ...ticker.command];
    const { code, stderr } = await cli(['run', ...SHORT, 'left', '--', ...command], { at: redis });
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
    expect(ticker.lines).toContain('SIGTERM');
    const released = await cli(['get', 'left'], { at: redis });
    expect(released.stdout).toMatch(/^'left' is free/);
    await expectDeadBeforeNext('left', ticker);
  });

  it('K-04 the supervisor is killed with -9', async () => {
    const ticker = new Ticker('unsupervised', 'stubborn');
    await using run = start('unsupervised', ticker);
    await ticker.runs();
    process.kill(await supervisorOf(run), 'SIGKILL');
    const { code, stderr } = await run.end();
    expect(stderr).toContain('so the command was ended');
    expect(code).toBe(70);
    await expectDeadBeforeNext('unsupervised', ticker);
  });

  it('K-04 the lease is revoked', async () => {
    const ticker = new Ticker('revoked');
    await using run = start('revoked', ticker);
    await ticker.runs();
    const revoked = await cli(['revoke', 'revoked', '--reason', 'a test'], { at: redis });
    expect(revoked.stdout).toMatch(/^Revoked 'revoked' from .* may act for up to .*stays blocked/);
    const { code, stderr } = await run.end();
    expect(stderr).toContain('it was revoked');
    expect(code).toBe(76);
    await expectDeadBeforeNext('revoked', ticker);
  });
});

describe.concurrent('signals', () => {
  it('that holdfast run gets are passed on to the command', async () => {
    const ticker = new Ticker('signals');
    await using run = start('signals', ticker);
    await ticker.runs();
    for (const signal of ['SIGHUP', 'SIGINT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const) {
      run.signal(signal);
      await until(() => ticker.lines.includes(signal), { what: `${signal} to be passed on` });
    }
    run.signal('SIGTERM');
    expect(await run.end()).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(ticker.lines.at(-1)).toBe('SIGTERM');
  });

  it('from Ctrl-Z stop the command and holdfast run, and both continue together', async () => {
    const ticker = new Ticker('suspended');
    await using run = start('suspended', ticker);
    await ticker.runs();
    const supervisor = await supervisorOf(run);
    const [command] = childrenOf(supervisor);
    const both = [run.pid, command?.pid ?? 0];
    run.signal('SIGTSTP');
    const areStopped = () => both.every((pid) => stateOf(pid) === 'T');
    await until(areStopped, { what: 'both to stand still' });
    run.signal('SIGCONT');
    await ticker.runs();
    run.signal('SIGTERM');
    expect(await run.end()).toMatchObject({ code: 0, stderr: '' });
  });
});
