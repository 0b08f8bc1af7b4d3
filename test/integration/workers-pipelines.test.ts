import { afterAll, describe, expect, it, vi } from 'vitest';
import { until } from '../support/until.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { redisGrounds, sqliteGrounds } from './support/intent-ground.ts';
import { RECOVERY_MS, SOON_MS, WorkerWorld, wallMs } from './support/worker-ground.ts';

leaveNothingBehind();
// Leases run out in real time, one after the other, on a machine that may be busy.
vi.setConfig({ testTimeout: 90_000 });

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const ONE = { resources: { tuners: 1 } };
const ENDED = { reason: 'R_PIPELINE_ENDED', outcome: 'COMPLETED' };
const FAILED = { reason: 'R_PIPELINE_FAILED', outcome: 'FAILED' };

/** No lease of its can be granted to another before this. */
async function earliestMs(world: WorkerWorld): Promise<number> {
  const askedMs = wallMs();
  return askedMs + Math.min(...(await world.leases()).map(({ expiresInMs }) => expiresInMs));
}

describe.concurrent.each(GROUNDS)('a command that runs for a session, over $name,', (kind) => {
  it.each([
    ['ends at once', ['lasts=0'], { ...ENDED, detail: { code: 0, signal: null } }],
    ['fails at once', ['lasts=0', 'code=3'], { ...FAILED, detail: { code: 3, signal: null } }],
  ])(
    'I-17 and %s: its exit code, how long it took and its last lines are in the record',
    async (_, words, expected) => {
      await using world = await WorkerWorld.on(kind);
      await world.worker({ ...ONE, pipelines: { live: world.pipeline('lines=30', ...words) } });
      const ended = await world.ends(await world.start('channel'));
      expect(ended).toMatchObject({ ...expected, slot: 'tuner:1' });
      const { tookMs, output } = ended.detail ?? {};
      expect(tookMs).toBeGreaterThan(0);
      expect(tookMs).toBeLessThan(10_000);
      // Both outputs, each to its end.
      expect(output).toEqual(expect.arrayContaining(['line 29', 'line 30']));
      expect(world.pipelines()).toMatchObject([{ session: ended.id, isEnded: true }]);
      await world.expectAllFree(0);
    },
  );

  it('I-17 and is not there, or is killed by somebody, has failed, and its record says how', async () => {
    await using world = await WorkerWorld.on(kind);
    const missing = await world.worker({ pipelines: { live: { command: ['/there/is/none'] } } });
    const absent = await world.ends(await world.start('absent'));
    expect(absent).toMatchObject(FAILED);
    expect(absent.detail?.error).toMatch(/not found|ENOENT/);
    await missing.stop();
    await world.worker();
    const { session, run } = await world.runs(await world.start('killed'));
    process.kill(run.leader, 'SIGKILL');
    const killed = await world.ends(session.id);
    expect(killed).toMatchObject({ ...FAILED, detail: { code: null, signal: 'SIGKILL' } });
    await world.expectAllFree(0);
  });

  it('I-17 and leaves a child behind: that is ended, too, before its slot is given to the next', async () => {
    await using world = await WorkerWorld.on(kind);
    await world.worker({
      ...{ resources: { tuners: { slots: 1, wait: '60s' } } },
      pipelines: { live: world.pipeline('leaves') },
    });
    const ids = [await world.start('first'), await world.start('second')];
    for (const id of ids) expect(await world.ends(id)).toMatchObject(ENDED);
    const runs = world.pipelines();
    expect(runs.map(({ pids }) => pids.length)).toEqual([2, 2]);
    expect(world.survivors()).toEqual([]);
    world.expectSound();
  });

  it('I-17 and does not care for SIGTERM, nor does its child: both are killed when their grace is over, and the record says so', async () => {
    await using world = await WorkerWorld.on(kind);
    await world.worker({ ...ONE, pipelines: { live: world.pipeline('stubborn', 'forks') } });
    const { session } = await world.runs(await world.start('channel'));
    const isForked = () => world.pipelines()[0]?.pids.length === 2;
    await until(isForked, { what: 'its child to be there', deadlineMs: SOON_MS });
    await world.stop(session.id);
    const ended = await world.ends(session.id);
    expect(ended).toMatchObject({ reason: 'R_STOPPED', detail: { code: null, signal: 'SIGKILL' } });
    expect(world.survivors()).toEqual([]);
    expect(world.pipelines()[0]?.signals).toEqual(['SIGTERM', 'SIGTERM']);
    await world.expectAllFree(0);
  });

  it('I-17 tells how far it is, for all to see while it runs', async () => {
    await using world = await WorkerWorld.on(kind);
    await world.worker({ pipelines: { live: world.pipeline('progress') } });
    const id = await world.start('channel');
    const isTold = async () => (await world.session(id)).progress;
    expect(await until(isTold, { what: 'its progress', deadlineMs: SOON_MS })).toBe('12 frames');
    expect(await world.session(id)).toMatchObject({ state: 'RUNNING' });
  });

  it('I-17 never outlives its worker: it is dead in time when that is killed, and when that stands still', async () => {
    await using world = await WorkerWorld.on(kind);
    const settings = { ...ONE, pipelines: { live: world.pipeline('stubborn', 'forks') } };
    const killed = await world.worker(settings);
    const first = await world.runs(await world.start('channel'));
    await killed.child.kill();
    const killedFreeMs = await earliestMs(world);
    const frozen = await world.worker(settings);
    const second = await world.runsAgain(first, { on: frozen });
    expect(world.pipelines()[0]?.lastMs).toBeLessThan(killedFreeMs);
    await frozen.freeze();
    const frozenFreeMs = await earliestMs(world);
    const last = await world.worker(settings);
    await world.runsAgain(second, { on: last });
    expect(world.pipelines()[1]?.lastMs).toBeLessThan(frozenFreeMs);
    world.expectSound();
    await frozen.child.thaw();
    const isIdle = async () => (await frozen.status()).sessions === 0;
    await until(isIdle, {
      what: 'the one that woke to find its session gone',
      deadlineMs: SOON_MS,
    });
    world.expectSound();
  });

  it('I-17 is ended by its worker where the supervisor is killed; what is started then has a new one', async () => {
    await using world = await WorkerWorld.on(kind);
    const worker = await world.worker({ ...ONE, pipelines: { live: world.pipeline('stubborn') } });
    const { session } = await world.runs(await world.start('channel'));
    process.kill(await worker.supervisor(), 'SIGKILL');
    expect(await world.ends(session.id, RECOVERY_MS)).toMatchObject(FAILED);
    expect(world.survivors()).toEqual([]);
    await world.runs(await world.start('channel'), RECOVERY_MS);
    world.expectSound();
  });
});
