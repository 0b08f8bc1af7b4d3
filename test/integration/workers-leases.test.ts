import { afterAll, describe, expect, it, vi } from 'vitest';
import { until } from '../support/until.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { redisGrounds, sqliteGrounds } from './support/intent-ground.ts';
import {
  GRACE_MS,
  type LeaseSeen,
  SOON_MS,
  TTL_MS,
  type WorkerProcess,
  WorkerWorld,
  wallMs,
} from './support/worker-ground.ts';

leaveNothingBehind();
// Leases run out in real time, one after the other, on a machine that may be busy.
vi.setConfig({ testTimeout: 90_000 });

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const tell = ['lease.released', 'session.advanced'];

/** What it let go of, in this order, until it has told that the session is in this state. */
async function lettingGo(worker: WorkerProcess, state: string): Promise<unknown[]> {
  await worker.child.next((message) => message.state === state, SOON_MS);
  return worker.child.received
    .filter((message) => message.event === 'lease.released' || message.state === state)
    .map((message) => message.key ?? message.state);
}

function fencesOf(leases: readonly LeaseSeen[]): string {
  return leases.map(({ key, fence }) => `${key} ${fence}`).join(', ');
}

describe.concurrent.each(GROUNDS)('the leases of a session, over $name,', (kind) => {
  it('I-08 are service and tuner, by these names; they are renewed for longer than they last, and under one fence each', async () => {
    await using world = await WorkerWorld.on(kind);
    const worker = await world.worker({ tell });
    const ref = '1:0:19:283D:3FB:1:C00000:0:0:0: (é)';
    const { session, run } = await world.runs(await world.start(ref));
    const holder = `${worker.id}/${session.id}`;
    const leases = await world.leases();
    expect(leases).toMatchObject([
      { key: 'service:1:0:19:283D:3FB:1:C00000:0:0:0:%20%28%c3%a9%29', holder },
      { key: 'tuner:1', holder, fence: run.fence },
    ]);
    expect(session).toMatchObject({ worker: worker.id, slot: 'tuner:1' });
    expect(run).toMatchObject({ slot: '1', channel: ref });
    const seen = new Set([fencesOf(leases)]);
    const beyondMs = wallMs() + 2 * TTL_MS;
    const isBeyond = async () => {
      seen.add(fencesOf(await world.leases()));
      return wallMs() > beyondMs;
    };
    await until(isBeyond, { what: 'twice a TTL', deadlineMs: 4 * TTL_MS, every: 50 });
    expect([...seen]).toEqual([fencesOf(leases)]);
    await world.stop(session.id);
    await world.ends(session.id);
    await world.expectAllFree(0);
    expect(await lettingGo(worker, 'ENDED')).toEqual(['tuner:1', leases[0]?.key, 'ENDED']);
    expect(world.pipelines()).toMatchObject([{ leader: run.leader, isEnded: true }]);
  });

  it('I-08 are let go of in reverse, after the pipeline and before the session has ended: when it is stopped, ends by itself, or fails', async () => {
    await using world = await WorkerWorld.on(kind);
    const ways = [
      { words: ['stubborn'], reason: 'R_STOPPED', outcome: 'STOPPED' },
      { words: ['lasts=150'], reason: 'R_PIPELINE_ENDED', outcome: 'COMPLETED' },
      { words: ['lasts=150', 'code=3'], reason: 'R_PIPELINE_FAILED', outcome: 'FAILED' },
    ];
    for (const { words, reason, outcome } of ways) {
      const worker = await world.worker({ tell, pipelines: { live: world.pipeline(...words) } });
      const id = await world.start(reason);
      const run = await world.begins(id);
      if (reason === 'R_STOPPED') await world.stop(id);
      expect(await world.ends(id)).toMatchObject({ reason, outcome });
      await world.expectAllFree(0);
      expect(await lettingGo(worker, 'ENDED')).toEqual(['tuner:1', `service:${reason}`, 'ENDED']);
      const ended = world.pipelines().find(({ leader }) => leader === run.leader);
      expect(Number(worker.told('lease.released')[0]?.atMs)).toBeGreaterThan(Number(ended?.lastMs));
      await worker.stop();
    }
  });

  it('I-08 are let go of when its worker is told to end, and the session is left to others', async () => {
    await using world = await WorkerWorld.on(kind);
    const worker = await world.worker({ tell });
    const { session } = await world.runs(await world.start('left'));
    worker.child.signal('SIGTERM');
    expect(await worker.child.exit()).toEqual({ code: 0, signal: null });
    await world.expectAllFree(0);
    const released = worker.told('lease.released').map(({ key }) => key);
    expect(released).toEqual(['tuner:1', 'service:left']);
    expect(await world.session(session.id)).toMatchObject({ state: 'RUNNING', worker: null });
    expect(world.pipelines()).toMatchObject([{ isEnded: true }]);
  });

  it('I-08 of a recording are of recording, profile and second, and no tuner: other seconds and profiles run beside it, another tenant is busy', async () => {
    await using world = await WorkerWorld.on(kind);
    await world.worker({ resources: { tuners: 1 } });
    await world.runs(await world.start('the only tuner'));
    const play = async (tenant: string, profile: string, startMs: number) => {
      const intent = { type: 'vod.start', recordingId: 'rec:1', profile, startMs } as const;
      return (await world.submit(intent, { tenant, client: 'c' })).session.id;
    };
    const first = await play('one', 'hd', 10_000);
    const { session, run } = await world.runs(first);
    expect(session.slot).toBe(null);
    expect(await play('one', 'hd', 10_500)).toBe(first);
    await world.runs(await play('one', 'hd', 60_000));
    await world.runs(await play('one', 'sd', 10_000));
    const busy = await world.ends(await play('two', 'hd', 10_000));
    expect(busy).toMatchObject({ reason: 'R_LEASE_BUSY', outcome: 'REJECTED_BUSY' });
    const leases = await world.leases();
    expect(leases.map(({ key }) => key)).toEqual([
      ...['service:the%20only%20tuner', 'tuner:1'],
      ...['vod:rec%3a1:hd:10', 'vod:rec%3a1:hd:60', 'vod:rec%3a1:sd:10'],
    ]);
    expect(run.fence).toBe(leases[2]?.fence);
    world.expectSound();
  });

  it('I-08 outlast a worker that stands still for less than they last: it goes on as if nothing had been', async () => {
    await using world = await WorkerWorld.on(kind);
    const worker = await world.worker();
    const before = await world.runs(await world.start('dozes'));
    const leases = await world.leases();
    await worker.freeze();
    const awakeMs = wallMs() + GRACE_MS;
    await until(() => wallMs() > awakeMs, { what: 'a nap', deadlineMs: SOON_MS });
    await worker.child.thaw();
    await worker.child.next('freeze', SOON_MS);
    const lateMs = wallMs() + TTL_MS;
    await until(() => wallMs() > lateMs, { what: 'more than a TTL', deadlineMs: SOON_MS });
    expect(fencesOf(await world.leases())).toBe(fencesOf(leases));
    expect(await world.session(before.session.id)).toEqual(before.session);
    expect(world.pipelines()).toMatchObject([{ leader: before.run.leader, isEnded: false }]);
  });
});
