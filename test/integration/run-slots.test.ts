import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { cli, startCli, Ticker } from './support/cli.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const SHORT = ['--ttl', '3s', '--grace', '500ms'];
/** Says what it was told of its slot. */
const TOLD = ['sh', '-c', 'echo $HOLDFAST_SLOT $HOLDFAST_LEASE_KEY $HOLDFAST_LEASE_FENCE'];

describe.concurrent('holdfast run --slots', () => {
  const start = (pool: string, ticker: Ticker, ...more: string[]) =>
    startCli(['run', '--slots', '2', ...SHORT, ...more, pool, '--', ...ticker.command], {
      at: redis,
    });

  it('has so many run at once, tells each which slot it has, and refuses one more', async () => {
    const [a, b] = [new Ticker('slots-a'), new Ticker('slots-b')];
    await using first = start('mixers', a);
    await a.runs();
    const told = await cli(['run', '--slots', '2', 'mixers', '--', ...TOLD], { at: redis });
    expect(told.stdout).toMatch(/^2 mixers:2 \d{16}\n$/);
    await using second = start('mixers', b);
    await b.runs();
    const refused = await cli(['run', '--slots', '2', 'mixers', '--', 'true'], { at: redis });
    expect(refused).toMatchObject({ code: 75, stdout: '' });
    expect(refused.stderr).toMatch(
      /^holdfast: each of the 2 slots of 'mixers' is held; the first expires in .* Use --wait to wait for one\.\n$/,
    );
    const quiet = ['--json', '--held-exit-code', '0', '--wait', '10ms'];
    const json = await cli(['run', '--slots', '2', ...quiet, 'mixers', '--', 'true'], {
      at: redis,
    });
    expect(json.code).toBe(0);
    expect(JSON.parse(json.stderr).error).toMatchObject({
      ...{ code: 'POOL_FULL', pool: 'mixers', slots: 2, reason: 'held' },
    });
    for (const run of [first, second]) run.signal('SIGTERM');
    for (const run of [first, second]) expect(await run.end()).toMatchObject({ code: 0 });
  });

  it('K-04 has a command dead before its slot is another’s, when holdfast run is killed with -9', async () => {
    const [a, b, c] = [new Ticker('kill-a'), new Ticker('kill-b'), new Ticker('kill-c')];
    await using first = start('decks', a);
    await a.runs();
    await using second = start('decks', b);
    await b.runs();
    await using third = start('decks', c, '--wait', '20s');
    first.signal('SIGKILL');
    await c.runs();
    expect(a.lastMs).toBeLessThan(c.ticksMs[0] ?? 0);
    expect(b.lastMs).toBeGreaterThan(a.lastMs);
    for (const run of [second, third]) run.signal('SIGTERM');
    for (const run of [second, third]) expect(await run.end()).toMatchObject({ code: 0 });
  });

  it.each(['0', '257', '1.5', 'four'])('refuses %s slots', async (slots) => {
    const { code, stderr } = await cli(['run', '--slots', slots, 'k', '--', 'true'], { at: redis });
    expect(code).toBe(64);
    expect(stderr).toContain('from 1 to 256');
  });
});
