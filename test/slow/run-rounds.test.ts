import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Holdfast } from '../../src/index.ts';
import { privateFolder, type Result, startCli, Ticker } from '../integration/support/cli.ts';
import { leaveNothingBehind, openAt, take } from '../integration/support/holdfasts.ts';
import { hostMs } from '../integration/support/lease-watch.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

leaveNothingBehind();

const ROUNDS = 20;
/** So many at a time: more would measure the machine. */
const LANES = 4;
/** Eighty processes that start and end take their time on a machine that does other things as well. */
const TIMEOUT = { timeout: 90_000 };

let redis: RedisServer;
let holdfast: Holdfast;
const folder = privateFolder();
beforeAll(async () => {
  redis = await startRedis();
  holdfast = await openAt(redis);
});
afterAll(async () => {
  await holdfast.close();
  await redis.stop();
});

/** Plays all rounds, a few at a time. */
async function playRounds(play: (round: number) => Promise<void>): Promise<void> {
  const rounds = Array.from({ length: ROUNDS }, (_, round) => round);
  const lane = async () => {
    for (let next = rounds.shift(); next !== undefined; next = rounds.shift()) await play(next);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/** Some are killed while they start, some about when they are granted the lease, some about when the command begins. */
async function momentToKill(round: number, key: string, ticker: Ticker): Promise<void> {
  const isGranted = async () => (await redis.cli('EXISTS', `lease:${key}`)) === 1;
  if (round % 3 === 1) await until(isGranted, { what: 'the lease to be granted', every: 1 });
  if (round % 3 === 2) await ticker.runs();
  const momentMs = hostMs() + round * (round % 3 === 0 ? 20 : 3);
  await until(() => hostMs() >= momentMs, { what: 'the moment to kill it', every: 1 });
}

describe('holdfast run, twenty times', () => {
  it(
    'K-04 killed with -9 at any moment, from its very start: nothing of it lives when the lease is another’s',
    TIMEOUT,
    async () => {
      let ran = 0;
      const played: { ticker: Ticker; lastMs: number }[] = [];
      await playRounds(async (round) => {
        const key = `round-${round}`;
        const ticker = new Ticker(key, 'stubborn');
        const options = ['--ttl', '1500ms', '--grace', '200ms'];
        await using run = startCli(['run', ...options, key, '--', ...ticker.command], {
          at: redis,
        });
        await momentToKill(round, key, ticker);
        run.signal('SIGKILL');
        await run.end();
        // Its own end is that of its output: by now nothing of it has it open any more.
        await take(holdfast, key, { wait: '15s' });
        const takenMs = hostMs();
        const { lastMs } = ticker;
        expect(lastMs).toBeLessThan(takenMs);
        played.push({ ticker, lastMs });
        if (lastMs > 0) ran += 1;
      });
      for (const { ticker, lastMs } of played) expect(ticker.lastMs).toBe(lastMs);
      // Some were killed before their command began, and some while it ran: else the moments were badly chosen.
      expect(ran).toBeGreaterThan(0);
      expect(ran).toBeLessThan(ROUNDS);
    },
  );

  it('K-01 three hosts at once: one runs, two say who holds it', TIMEOUT, async () => {
    await playRounds(async (round) => {
      const key = `race-${round}`;
      const gate = join(folder, key);
      const wait = `until [ -e '${gate}' ]; do sleep 0.02; done; echo "$HOLDFAST_LEASE_FENCE"`;
      const racers = [1, 2, 3].map(() =>
        startCli(['run', key, '--', 'sh', '-c', wait], { at: redis }),
      );
      const results: Result[] = [];
      const ends = racers.map(async (racer) => void results.push(await racer.end()));
      await until(() => results.length >= 2, { what: 'two to give up', deadlineMs: 15_000 });
      expect(existsSync(gate)).toBe(false);
      writeFileSync(gate, '');
      await Promise.all(ends);
      const [first, second, winner] = results;
      const fence = winner?.stdout.trim();
      expect(winner).toMatchObject({
        code: 0,
        stderr: '',
        stdout: expect.stringMatching(/^\d+\n$/),
      });
      for (const loser of [first, second]) {
        expect(loser).toMatchObject({ code: 75, stdout: '' });
        expect(loser?.stderr).toMatch(
          new RegExp(
            `^holdfast: '${key}' is held by \\S+ \\(fence ${fence}\\), expires in \\d+ s\\.`,
          ),
        );
      }
    });
  });
});
