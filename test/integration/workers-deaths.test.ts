import { afterAll, describe, expect, it, vi } from 'vitest';
import { revokeShown } from '../support/revoke-shown.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { redisGrounds, sqliteGrounds } from './support/intent-ground.ts';
import {
  RECOVERY_MS,
  SOON_MS,
  TTL_MS,
  type Underway,
  WorkerWorld,
  wallMs,
} from './support/worker-ground.ts';

leaveNothingBehind();
// Leases run out in real time, one after the other, on a machine that may be busy.
vi.setConfig({ testTimeout: 90_000 });

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const CALL = { timeoutMs: 5_000 };

/** None of the leases that there are can be granted before this, if nobody frees it: a renewal only makes it later. */
async function earliestMs(world: WorkerWorld): Promise<number> {
  const askedMs = wallMs();
  const left = (await world.leases()).map(({ expiresInMs }) => expiresInMs);
  return askedMs + Math.min(...left);
}

/** When the slot was granted that it has now: fences are minted from the time. */
function grantedMs({ run }: Underway): number {
  return run.fence / 1_000;
}

describe.concurrent.each(GROUNDS)('kill -9 of a worker, over $name:', (kind) => {
  it('I-11 its leases last until they run out, and others are refused meanwhile; then its session runs at the other one', async () => {
    await using world = await WorkerWorld.on(kind);
    // Long enough for a busy machine to refuse two before they have run out.
    const settings = { ttl: 8_000, resources: { tuners: 1 } };
    const dies = await world.worker({
      ...{ ...settings, pipelines: { live: world.pipeline('stubborn') } },
    });
    const before = await world.runs(await world.start('channel'));
    const lives = await world.worker(settings);
    const freeMs = await earliestMs(world);
    await dies.child.kill();
    const [rival, other] = await Promise.all([
      world.start('channel', { profile: 'sd' }).then((id) => world.ends(id)),
      world.start('other').then((id) => world.ends(id)),
    ]);
    expect(rival).toMatchObject({ reason: 'R_LEASE_BUSY', outcome: 'REJECTED_BUSY' });
    expect(other).toMatchObject({ reason: 'R_NO_TUNER', outcome: 'REJECTED_NO_TUNER' });
    const after = await world.runsAgain(before, { on: lives });
    expect(after.session).toMatchObject({ slot: 'tuner:1', losses: 1 });
    expect(grantedMs(after)).toBeGreaterThanOrEqual(Math.floor(freeMs) - 1);
    expect(after.run.beginMs).toBeLessThan(freeMs + RECOVERY_MS);
    world.expectSound();
    await world.stop(before.session.id);
    expect(await world.ends(before.session.id)).toMatchObject({ reason: 'R_STOPPED' });
    await world.expectAllFree(0);
  });

  it('I-11 where its slot is another’s by then, its session ends with R_WORKER_LOST', async () => {
    await using world = await WorkerWorld.on(kind);
    const resources = { tuners: 1 };
    const dies = await world.worker({ resources });
    const { session } = await world.runs(await world.start('channel'));
    await world.worker({ resources });
    await dies.child.kill();
    const key = 'lease:tuner:1';
    await revokeShown(world.store, key, { force: true });
    const call = { ...CALL, ttlMs: 30_000, inbox: 'the test' };
    const [taken] = await world.store.leases.acquire([{ key, holder: 'the-test' }], call);
    expect(taken).toMatchObject({ kind: 'granted' });
    const ended = await world.ends(session.id, RECOVERY_MS);
    expect(ended).toMatchObject({ reason: 'R_WORKER_LOST', outcome: 'FAILED' });
    expect((await world.leases()).map(({ holder }) => holder)).toEqual(['the-test']);
  });

  it('I-11 what it was told to stop is ended, not run again', async () => {
    await using world = await WorkerWorld.on(kind);
    const dies = await world.worker({ pipelines: { live: world.pipeline('stubborn') } });
    const { session } = await world.runs(await world.start('channel'));
    await world.worker();
    await dies.freeze();
    await world.stop(session.id);
    await dies.child.kill();
    const ended = await world.ends(session.id, RECOVERY_MS);
    expect(ended).toMatchObject({ reason: 'R_STOPPED', outcome: 'STOPPED' });
    await world.expectAllFree(TTL_MS);
    expect(world.pipelines()).toHaveLength(1);
  });

  it('I-12 without a name, the one that is started in its place waits until its leases have run out', async () => {
    await using world = await WorkerWorld.on(kind);
    const dies = await world.worker();
    const before = await world.runs(await world.start('channel'));
    const freeMs = await earliestMs(world);
    await dies.child.kill();
    const lives = await world.worker();
    const after = await world.runsAgain(before, { on: lives });
    expect(grantedMs(after)).toBeGreaterThanOrEqual(Math.floor(freeMs) - 1);
    world.expectSound();
  });
});

/** So that nothing of what follows can have run out by itself. */
const LONG = { ttl: 30_000, grace: 300 };
const PROMPT_MS = 15_000;

describe.concurrent.each(GROUNDS)('kill -9 of a worker with a name, over $name:', (kind) => {
  it('I-12 started again at once, it frees and goes on with what it had, and only that; a second worker keeps its leases and its pipelines', async () => {
    await using world = await WorkerWorld.on(kind);
    const pipelines = { live: world.pipeline('stubborn') };
    const dies = await world.worker({ ...LONG, name: 'one', pipelines });
    const mine = await Promise.all(
      ['a', 'b'].map(async (ref) => world.runs(await world.start(ref))),
    );
    const healthy = await world.worker({ ...LONG, name: 'two', starts: 64 });
    // The first takes no more: what is started now is the second's.
    await dies.freeze();
    const theirs = await Promise.all(
      ['c', 'd'].map(async (ref) => world.runs(await world.start(ref))),
    );
    for (const { session } of theirs) expect(healthy.hasTaken(session)).toBe(true);
    const leases = await world.leases();
    // At once: what is left of it is still being ended when it is started again.
    dies.child.signal('SIGKILL');
    const killedMs = wallMs();
    const restarted = await world.worker({ ...LONG, name: 'one', pipelines });
    const again = await Promise.all(
      mine.map((one) => world.runsAgain(one, { on: restarted, deadlineMs: PROMPT_MS })),
    );
    for (const { run } of again) expect(run.beginMs - killedMs).toBeLessThan(PROMPT_MS);
    const now = await world.leases();
    for (const { key, holder, fence } of leases.filter(({ holder }) =>
      holder.startsWith(healthy.id),
    ))
      expect(now).toContainEqual(expect.objectContaining({ key, holder, fence }));
    const later = wallMs() + 200;
    await until(() => wallMs() > later, { what: 'a few more beats', deadlineMs: SOON_MS });
    const runs = world.pipelines();
    for (const { session, run } of theirs) {
      const own = runs.filter((one) => one.session === session.id);
      expect(own).toMatchObject([{ leader: run.leader, fence: run.fence, isEnded: false }]);
      expect(own[0]?.lastMs).toBeGreaterThan(later - 150);
      expect(own[0]?.signals).toEqual([]);
      expect(await world.session(session.id)).toEqual(session);
    }
    world.expectSound();
  });

  it('I-12 its slots can be had at once by whatever is started next', async () => {
    await using world = await WorkerWorld.on(kind);
    const resources = { tuners: 1 };
    const dies = await world.worker({ ...LONG, name: 'one', resources });
    const { session } = await world.runs(await world.start('channel'));
    await dies.freeze();
    await world.stop(session.id);
    await dies.child.kill();
    await world.worker({ ...LONG, name: 'one', resources });
    expect(await world.ends(session.id, PROMPT_MS)).toMatchObject({ reason: 'R_STOPPED' });
    await world.runs(await world.start('channel'), PROMPT_MS);
    world.expectSound();
  });

  it('I-12 and of its supervisor, so that its pipeline goes on: the one that is started again kills that first', async () => {
    await using world = await WorkerWorld.on(kind);
    const settings = { ...LONG, name: 'one', resources: { tuners: 1 } };
    const pipelines = { live: world.pipeline('stubborn', 'forks') };
    const dies = await world.worker({ ...settings, pipelines });
    const before = await world.runs(await world.start('channel'));
    const supervisor = await dies.supervisor();
    // Stopped first, so that it can do nothing when its worker is gone.
    process.kill(supervisor, 'SIGSTOP');
    dies.child.signal('SIGKILL');
    process.kill(supervisor, 'SIGKILL');
    await dies.child.exit();
    expect(world.survivors()).not.toEqual([]);
    const restarted = await world.worker(settings);
    await world.runsAgain(before, { on: restarted, deadlineMs: PROMPT_MS });
    expect(world.pipelines()[0]).toMatchObject({ leader: before.run.leader, signals: [] });
    world.expectSound();
  });

  it('I-12 a second process of that name is refused while the first lives, also while that stands still; the first keeps all it has', async () => {
    await using world = await WorkerWorld.on(kind);
    const first = await world.worker({ name: 'one' });
    const { session, run } = await world.runs(await world.start('channel'));
    const second = await world.launch({ name: 'one' });
    expect(await second.child.next('refused', SOON_MS)).toMatchObject({
      code: 'WORKER_NAME_TAKEN',
    });
    await second.child.exit();
    expect(await world.session(session.id)).toEqual(session);
    expect(await first.status()).toMatchObject({ state: 'running', sessions: 1 });
    await first.freeze();
    const third = await world.launch({ name: 'one' });
    expect(await third.child.next('refused', RECOVERY_MS)).toMatchObject({
      code: 'WORKER_NAME_TAKEN',
    });
    await third.child.exit();
    await first.child.thaw();
    await first.child.next('freeze', SOON_MS);
    expect(world.pipelines().map(({ leader }) => leader)[0]).toBe(run.leader);
    world.expectSound();
    expect(await first.status()).toMatchObject({ state: 'running' });
  });

  it('I-12 the same name at another store is another worker; a name given back by a graceful stop can be had at once', async () => {
    await using world = await WorkerWorld.on(kind);
    await using elsewhere = await WorkerWorld.on(kind);
    const first = await world.worker({ ...LONG, name: 'one' });
    await elsewhere.worker({ ...LONG, name: 'one' });
    const before = await world.runs(await world.start('channel'));
    await elsewhere.runs(await elsewhere.start('channel'));
    await first.stop();
    const next = await world.worker({ ...LONG, name: 'one' });
    await world.runsAgain(before, { on: next, deadlineMs: PROMPT_MS });
    expect(elsewhere.pipelines()).toHaveLength(1);
    world.expectSound();
  });

  it('I-11 a session with which one worker after the other is killed ends with R_WORKER_LOST', async () => {
    await using world = await WorkerWorld.on(kind);
    const settings = { ...LONG, name: 'one' };
    let worker = await world.worker(settings);
    let underway = await world.runs(await world.start('deadly'));
    for (let losses = 1; losses <= 3; losses++) {
      await worker.child.kill();
      worker = await world.worker(settings);
      underway = await world.runsAgain(underway, { on: worker, deadlineMs: PROMPT_MS });
      expect(underway.session).toMatchObject({ losses });
    }
    await worker.child.kill();
    await world.worker(settings);
    const ended = await world.ends(underway.session.id, PROMPT_MS);
    expect(ended).toMatchObject({ reason: 'R_WORKER_LOST', outcome: 'FAILED' });
    await world.expectAllFree(0);
    expect(world.pipelines()).toHaveLength(4);
    world.expectSound();
  });
});
