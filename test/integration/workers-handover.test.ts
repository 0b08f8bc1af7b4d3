import { afterAll, describe, expect, it, vi } from 'vitest';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { redisGrounds, sqliteGrounds } from './support/intent-ground.ts';
import { WorkerWorld, wallMs } from './support/worker-ground.ts';

leaveNothingBehind();
// Leases run out in real time, one after the other, on a machine that may be busy.
vi.setConfig({ testTimeout: 90_000 });

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

/** So that nothing of what follows can have run out by itself. */
const LONG = { ttl: 30_000, grace: 300 };
const PROMPT_MS = 10_000;

describe.concurrent.each(GROUNDS)('a worker that stops in order, over $name,', (kind) => {
  it('I-11 leaves its sessions to another, which goes on with them at once, and counts no loss', async () => {
    await using world = await WorkerWorld.on(kind);
    const leaves = await world.worker(LONG);
    const before = await Promise.all(
      ['a', 'b', 'c'].map(async (ref) => world.runs(await world.start(ref))),
    );
    const stays = await world.worker(LONG);
    const fromMs = wallMs();
    await leaves.stop();
    await leaves.child.exit();
    const after = await Promise.all(
      before.map((one) => world.runsAgain(one, { on: stays, deadlineMs: PROMPT_MS })),
    );
    for (const { session, run } of after) {
      expect(session.losses ?? 0).toBe(0);
      expect(run.beginMs - fromMs).toBeLessThan(PROMPT_MS);
    }
    expect((await world.leases()).every(({ holder }) => holder.startsWith(stays.id))).toBe(true);
    world.expectSound();
  });

  it('I-11 leaves nothing leased where there is no other; whoever is started next goes on, also with what was waiting and what was to stop', async () => {
    await using world = await WorkerWorld.on(kind);
    const settings = { ...LONG, resources: { tuners: { slots: 1, wait: '60s' } } };
    const leaves = await world.worker(settings);
    const before = await world.runs(await world.start('runs'));
    const waits = await world.start('waits');
    await world.reaches(waits, 'STARTING');
    await leaves.stop();
    await world.expectAllFree(0);
    const untaken = await world.start('untaken');
    await world.stop(before.session.id);
    expect(await world.session(before.session.id)).toMatchObject({
      state: 'STOPPING',
      worker: null,
    });
    const next = await world.worker({ ...LONG, resources: { tuners: 2 } });
    expect(await world.ends(before.session.id, PROMPT_MS)).toMatchObject({ reason: 'R_STOPPED' });
    const { session } = await world.runs(waits, PROMPT_MS);
    expect(next.hasTaken(session)).toBe(true);
    await world.runs(untaken, PROMPT_MS);
    world.expectSound();
  });

  it('I-17 ends a pipeline that does not care for SIGTERM before it lets go of its slot', async () => {
    await using world = await WorkerWorld.on(kind);
    const resources = { tuners: 1 };
    const stubborn = { live: world.pipeline('stubborn', 'forks') };
    const leaves = await world.worker({ ...LONG, resources, pipelines: stubborn });
    const before = await world.runs(await world.start('channel'));
    const stays = await world.worker({ ...LONG, resources });
    leaves.child.signal('SIGTERM');
    expect(await leaves.child.exit()).toEqual({ code: 0, signal: null });
    await world.runsAgain(before, { on: stays, deadlineMs: PROMPT_MS });
    const [old] = world.pipelines();
    expect(old).toMatchObject({ leader: before.run.leader, isEnded: false });
    expect(old?.signals).toContain('SIGTERM');
    world.expectSound();
  });
});
