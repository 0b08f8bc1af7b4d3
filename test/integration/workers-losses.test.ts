import { afterAll, describe, expect, it, vi } from 'vitest';
import { spawnChild } from '../support/child.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { revokeShown } from '../support/revoke-shown.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { redisGround, redisGrounds, sqliteGrounds } from './support/intent-ground.ts';
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

const files = sqliteGrounds();
const GROUNDS = [files, redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const EXPIRED = { reason: 'R_LEASE_EXPIRED', outcome: 'FAILED' };

describe.concurrent.each(GROUNDS)(
  'a lease that is lost while its session runs, over $name,',
  (kind) => {
    it('I-15 that of the slot, revoked: the pipeline is dead before the slot is given to the next, and the session ends with R_LEASE_EXPIRED', async () => {
      await using world = await WorkerWorld.on(kind);
      const settings = {
        resources: { tuners: { slots: 1, wait: '60s' } },
        pipelines: { live: world.pipeline('stubborn', 'forks') },
      };
      await Promise.all([world.worker(settings), world.worker(settings)]);
      const { session, run } = await world.runs(await world.start('first'));
      const next = await world.start('next');
      await world.reaches(next, 'STARTING');
      const revoked = await revokeShown(world.store, 'lease:tuner:1');
      expect(revoked).toMatchObject({ kind: 'revoked' });
      expect(await world.ends(session.id, RECOVERY_MS)).toMatchObject(EXPIRED);
      const after = await world.runs(next, RECOVERY_MS);
      expect(after.run.slot).toBe(run.slot);
      world.expectSound();
      expect((await world.leases()).map(({ key }) => key)).toEqual(['service:next', 'tuner:1']);
    });

    it('I-15 that of the channel, revoked: the pipeline is dead before another session has the channel', async () => {
      await using world = await WorkerWorld.on(kind);
      const settings = { pipelines: { live: world.pipeline('stubborn') } };
      await Promise.all([world.worker(settings), world.worker(settings)]);
      const { session } = await world.runs(await world.start('channel'));
      const revoked = await revokeShown(world.store, 'lease:service:channel');
      expect(revoked).toMatchObject({ kind: 'revoked' });
      const next = await world.start('channel', { profile: 'sd' });
      expect(await world.ends(session.id, RECOVERY_MS)).toMatchObject(EXPIRED);
      await world.runs(next, RECOVERY_MS);
      world.expectSound();
    });
  },
);

/** A world on a Redis of its own, which the test may ask and freeze as it likes. */
function worldOn(redis: RedisServer): Promise<WorkerWorld> {
  return WorkerWorld.on({ make: () => redisGround(redis.url) });
}

/** Runs some, on both workers, with pipelines that nothing but SIGKILL ends. */
async function startSome(world: WorkerWorld): Promise<Underway[]> {
  const settings = { pipelines: { live: world.pipeline('stubborn', 'forks') } };
  await Promise.all([world.worker(settings), world.worker(settings)]);
  return Promise.all(['a', 'b', 'c', 'd'].map(async (ref) => world.runs(await world.start(ref))));
}

/** All of them were dead when their leases could be granted again, however stubborn. */
async function expectDeadInTime(world: WorkerWorld, fromMs: number): Promise<void> {
  const areGone = () => world.survivors().length === 0;
  await until(areGone, { what: 'all pipelines to be dead', deadlineMs: TTL_MS + 5_000 });
  for (const { lastMs } of world.pipelines()) expect(lastMs).toBeLessThan(fromMs + TTL_MS);
}

/**
 * Whichever worker is faster when the store answers again: for its own one the session is over, for the other it was lost and runs again. What is
 * started then runs.
 */
async function expectBack(world: WorkerWorld, before: readonly Underway[]): Promise<void> {
  await Promise.all(
    before.map(async ({ session: { id, worker } }) => {
      const isSettled = async () => {
        const session = await world.session(id);
        const isRecovered = session.state === 'RUNNING' && session.losses === 1;
        if (session.state === 'ENDED') expect(session).toMatchObject(EXPIRED);
        return session.state === 'ENDED' || (isRecovered && session.worker !== worker);
      };
      await until(isSettled, { what: `${id} to end or run again`, deadlineMs: RECOVERY_MS });
    }),
  );
  const start = async (ref: string) => world.runs(await world.start(ref), RECOVERY_MS);
  await Promise.all(['a', 'b', 'c', 'd'].map(start));
  world.expectSound();
}

describe.concurrent('while sessions run', () => {
  it('I-15 and Redis stands still for longer than a TTL, all pipelines are dead by their deadline, and all comes back by itself', async () => {
    await using redis = await startRedis();
    await using world = await worldOn(redis);
    const before = await startSome(world);
    await redis.freeze();
    const fromMs = wallMs();
    try {
      await expectDeadInTime(world, fromMs);
      const longMs = fromMs + 2 * TTL_MS;
      await until(() => wallMs() > longMs, { what: 'a long freeze', deadlineMs: 3 * TTL_MS });
    } finally {
      await redis.thaw();
    }
    await expectBack(world, before);
  });

  it('I-15 and the file of the store is locked for longer than a TTL, all pipelines are dead by their deadline, and all comes back by itself', async () => {
    await using world = await WorkerWorld.on(files);
    const before = await startSome(world);
    const path = world.ground.at.url.slice('sqlite:'.length);
    await using locker = spawnChild('file-locker.mjs', { args: [path] });
    await locker.next('ready', SOON_MS);
    locker.send({ do: 'lock' });
    await locker.next('lock', SOON_MS);
    const fromMs = wallMs();
    await expectDeadInTime(world, fromMs);
    const longMs = fromMs + 2 * TTL_MS;
    await until(() => wallMs() > longMs, { what: 'a long lock', deadlineMs: 3 * TTL_MS });
    await locker.kill();
    await expectBack(world, before);
  });

  it('I-15 and somebody overwrites the lease of a slot in Redis, its session ends with R_LEASE_EXPIRED, and what was written there stays', async () => {
    await using redis = await startRedis();
    await using world = await worldOn(redis);
    await world.worker({ pipelines: { live: world.pipeline('stubborn') } });
    const { session } = await world.runs(await world.start('channel'));
    await redis.cli('SET', 'lease:tuner:1', 'a-stranger', 'PX', 60_000);
    const fromMs = wallMs();
    expect(await world.ends(session.id, RECOVERY_MS)).toMatchObject(EXPIRED);
    expect(world.survivors()).toEqual([]);
    expect(world.pipelines()[0]?.lastMs).toBeLessThan(fromMs + TTL_MS);
    expect(await redis.cli('GET', 'lease:tuner:1')).toBe('a-stranger');
    const other = await world.runs(await world.start('channel'));
    expect(other.session.slot).toBe('tuner:2');
  });

  it('I-15 and somebody deletes their leases in Redis, they are put back under the same fences, and the pipeline goes on', async () => {
    await using redis = await startRedis();
    await using world = await worldOn(redis);
    await world.worker();
    const { session, run } = await world.runs(await world.start('channel'));
    const before = await world.leases();
    expect(await redis.cli('DEL', 'lease:tuner:1', 'lease:service:channel')).toBe(2);
    const areBack = async () => (await world.leases()).length === 2;
    await until(areBack, { what: 'both to be put back', deadlineMs: SOON_MS });
    const now = await world.leases();
    expect(now.map(({ key, holder, fence }) => [key, holder, fence])).toEqual(
      before.map(({ key, holder, fence }) => [key, holder, fence]),
    );
    expect(await world.session(session.id)).toEqual(session);
    expect(world.pipelines()).toMatchObject([{ leader: run.leader, isEnded: false }]);
  });
});
