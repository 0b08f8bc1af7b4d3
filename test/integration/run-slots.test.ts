import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { cli, type Running, startCli, Ticker } from './support/cli.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** Says what it was told of its slot, and stays. */
const TOLD = 'echo $HOLDFAST_SLOT $HOLDFAST_LEASE_KEY $HOLDFAST_LEASE_FENCE';
const STAYS = ['sh', '-c', `${TOLD}; exec sleep 60`];

const args = (pool: string, command: readonly string[], ...more: string[]) => [
  ...['run', '--slots', '2', ...more, pool, '--'],
  ...command,
];
const start = (pool: string, command: readonly string[], ...more: string[]) =>
  startCli(args(pool, command, ...more), { at: redis });

/** What a command that stays has said of its slot. */
function said(run: Running): Promise<string> {
  const what = 'the command to run';
  return until(() => /^.+\n/.exec(run.stdout)?.[0], { what, deadlineMs: 20_000 });
}

it('holdfast run --slots has so many run at once, tells each which slot it has, and refuses one more', async () => {
  await using first = start('mixers', STAYS);
  expect(await said(first)).toMatch(/^1 mixers:1 \d{16}\n$/);
  await using second = start('mixers', STAYS);
  expect(await said(second)).toMatch(/^2 mixers:2 \d{16}\n$/);
  const refused = await cli(args('mixers', ['true']), { at: redis });
  expect(refused).toMatchObject({ code: 75, stdout: '' });
  expect(refused.stderr).toMatch(
    /^holdfast: could not acquire a slot of 'mixers': all 2 are held; the first expires in .* Use --wait to wait for one\.\n$/,
  );
  const options = ['--json', '--held-exit-code', '0', '--wait', '10ms'];
  const json = await cli(args('mixers', ['true'], ...options), { at: redis });
  expect(json.code).toBe(0);
  expect(JSON.parse(json.stderr).error).toMatchObject({
    ...{ code: 'POOL_FULL', pool: 'mixers', slots: 2, reason: 'held' },
  });
  first.signal('SIGTERM');
  expect(await first.end()).toMatchObject({ signal: 'SIGTERM', stderr: '' });
  const next = await cli(args('mixers', ['sh', '-c', TOLD]), { at: redis });
  expect(next.stdout).toMatch(/^1 mixers:1 \d{16}\n$/);
});

it('K-04 holdfast run --slots has a command dead before its slot is another’s, also if it is killed with -9', async () => {
  const ticker = new Ticker('killed-in-slot');
  const short = ['--ttl', '4s', '--grace', '500ms'];
  await using first = start('decks', ticker.command, ...short);
  await ticker.runs();
  await using second = start('decks', STAYS, ...short);
  await said(second);
  const next = new Ticker('next-in-slot');
  await using third = start('decks', next.command, '--wait', '25s', ...short);
  first.signal('SIGKILL');
  await next.runs();
  expect(ticker.lastMs).toBeLessThan(next.ticksMs[0] ?? 0);
  expect(third.stderr + second.stderr).toBe('');
});

it('holdfast run --slots refuses a number that no pool has', async () => {
  for (const slots of ['0', '10001', 'four']) {
    const { code, stderr } = await cli(['run', '--slots', slots, 'k', '--', 'true']);
    expect(code).toBe(64);
    expect(stderr).toContain('from 1 to 10000');
  }
});
