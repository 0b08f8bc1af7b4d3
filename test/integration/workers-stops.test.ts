import { afterAll, describe, expect, it, vi } from 'vitest';
import { until } from '../support/until.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { redisGrounds, sqliteGrounds } from './support/intent-ground.ts';
import { GRACE_MS, SOON_MS, WorkerWorld, wallMs } from './support/worker-ground.ts';

leaveNothingBehind();
// Leases run out in real time, one after the other, on a machine that may be busy.
vi.setConfig({ testTimeout: 90_000 });

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const WAITING = 100;
/** A stop takes as long as its pipeline; a busy machine adds some. */
const STOP_MS = 10_000;
const LONG_MS = 600_000;

describe.concurrent.each(GROUNDS)('stops, over $name:', (kind) => {
  it('I-14 a session that three clients share ends with the last of them; each counts once', async () => {
    await using world = await WorkerWorld.on(kind);
    await Promise.all([world.worker(), world.worker()]);
    const clients = ['ann', 'ben', 'cat'];
    const ids = await Promise.all(
      [...clients, ...clients].map((client) => world.start('shared', { client })),
    );
    const [id = ''] = ids;
    expect(new Set(ids).size).toBe(1);
    const { session, run } = await world.runs(id);
    expect(session.clients).toBe(3);
    for (const client of ['ann', 'ben', 'ann', 'dan']) await world.stop(id, { client });
    expect(await world.session(id)).toMatchObject({ state: 'RUNNING', clients: 1 });
    await world.stop(id, { client: 'cat' });
    expect(await world.ends(id)).toMatchObject({ reason: 'R_STOPPED', outcome: 'STOPPED' });
    await world.expectAllFree(0);
    expect(world.pipelines()).toMatchObject([{ leader: run.leader, isEnded: true }]);
  });

  it('I-14 come to what is NEW, STARTING, RUNNING, STOPPING and ENDED: each has ended, and twice is as good as once', async () => {
    await using world = await WorkerWorld.on(kind);
    const isNew = await world.start('nobody takes it');
    await world.stop(isNew);
    const untaken = await world.session(isNew);
    expect(untaken).toMatchObject({ state: 'ENDED', reason: 'R_STOPPED', worker: null });
    const resources = { tuners: { slots: 1, wait: '60s' } };
    await world.worker({ resources, pipelines: { live: world.pipeline('stubborn') } });
    const { session, run } = await world.runs(await world.start('runs'));
    const waits = await world.start('waits for the tuner');
    await world.reaches(waits, 'STARTING');
    await world.stop(waits);
    expect(await world.ends(waits, STOP_MS)).toMatchObject({ reason: 'R_STOPPED' });
    expect((await world.leases()).map(({ key }) => key)).toEqual(['service:runs', 'tuner:1']);
    expect(await world.stop(session.id)).toMatchObject({ state: 'STOPPING' });
    await world.stop(session.id);
    const ended = await world.ends(session.id, STOP_MS);
    expect(ended).toMatchObject({ reason: 'R_STOPPED', outcome: 'STOPPED', slot: 'tuner:1' });
    await world.expectAllFree(0);
    await world.stop(session.id);
    expect(await world.session(session.id)).toEqual(ended);
    expect(await world.session(isNew)).toEqual(untaken);
    expect(world.pipelines()).toMatchObject([{ leader: run.leader, signals: ['SIGTERM'] }]);
  });

  it('I-14 are done at once while all slots are busy and 100 starts wait, most of them not even taken yet', async () => {
    await using world = await WorkerWorld.on(kind);
    const settings = {
      ...{ starts: 8, resources: { tuners: { slots: 2, wait: '120s' } } },
      pipelines: { live: world.smallPipeline(LONG_MS, LONG_MS) },
    };
    await Promise.all([world.worker(settings), world.worker(settings)]);
    const busy = await Promise.all(
      ['one', 'two'].map(async (ref) => world.runs(await world.start(ref))),
    );
    const waiting = await Promise.all(
      Array.from({ length: WAITING }, (_, i) => world.start(`channel-${i}`)),
    );
    const areUnderWay = async () => {
      const states = (await world.sessions()).map(({ state }) => state);
      return states.filter((state) => state === 'STARTING').length === 16;
    };
    await until(areUnderWay, {
      what: 'all starts that may be under way to be',
      deadlineMs: SOON_MS,
    });
    const firstMs = wallMs();
    const first = busy[0]?.session.id ?? '';
    await world.stop(first);
    await world.ends(first, STOP_MS);
    expect(wallMs() - firstMs).toBeLessThan(STOP_MS);
    const isGivenOn = () => world.pipelines().length === 3;
    await until(isGivenOn, {
      ...{ what: 'its slot to be given to one that waits', deadlineMs: SOON_MS },
    });
    const stormMs = wallMs();
    const all = [...waiting, ...busy.map(({ session }) => session.id)];
    await Promise.all(all.map((id) => world.stop(id)));
    const ended = await Promise.all(all.map((id) => world.ends(id, STOP_MS)));
    expect(wallMs() - stormMs).toBeLessThan(2 * STOP_MS);
    for (const { reason } of ended) expect(reason).toBe('R_STOPPED');
    await world.expectAllFree(0);
    world.expectSound();
  });

  it('I-14 of a pipeline that does not end by itself are done when its grace is over; only then is its slot given to one that waits', async () => {
    await using world = await WorkerWorld.on(kind);
    await world.worker({
      resources: { tuners: { slots: 4, wait: '60s' } },
      pipelines: { live: world.pipeline('stubborn') },
    });
    const underway = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (ref) => world.runs(await world.start(ref))),
    );
    const waiting = await Promise.all(['e', 'f', 'g', 'h'].map((ref) => world.start(ref)));
    await Promise.all(waiting.map((id) => world.reaches(id, 'STARTING')));
    const fromMs = wallMs();
    await Promise.all(underway.map(({ session }) => world.stop(session.id)));
    await Promise.all(underway.map(({ session }) => world.ends(session.id, STOP_MS)));
    await Promise.all(waiting.map((id) => world.runs(id)));
    for (const { lastMs, signals } of world.pipelines().slice(0, 4)) {
      expect(signals).toEqual(['SIGTERM']);
      expect(lastMs - fromMs).toBeGreaterThan(GRACE_MS / 2);
    }
    world.expectSound();
  });
});
