import { afterAll, describe, expect, it, vi } from 'vitest';
import { until } from '../support/until.ts';
import { ADMIN, startApi } from './support/api.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { redisGrounds, sqliteGrounds, takeStarts } from './support/intent-ground.ts';
import { SOON_MS, WorkerWorld } from './support/worker-ground.ts';

leaveNothingBehind();
// Leases run out in real time, one after the other, on a machine that may be busy.
vi.setConfig({ testTimeout: 90_000 });

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const CHANNEL = '1:0:19:283D:3FB:1:C00000:0:0:0:';
const HERD = 200;

describe.concurrent.each(GROUNDS)('what is started, over $name,', (kind) => {
  it('I-07 200 times at once at two APIs, is one session with one tuner and one pipeline', async () => {
    await using world = await WorkerWorld.on(kind);
    await using one = await startApi(world.ground.at);
    await using other = await startApi(world.ground.at);
    const workers = await Promise.all([world.worker(), world.worker()]);
    const answers = await Promise.all(
      Array.from({ length: HERD }, (_, i) =>
        (i % 2 === 0 ? one : other).start(CHANNEL, { clientId: `client-${i}` }),
      ),
    );
    const ids = new Set(answers.map(({ status, body }) => `${status} ${body.sessionId}`));
    expect(ids.size).toBe(1);
    const id = String(answers[0]?.body.sessionId);
    const { session } = await world.runs(id);
    expect(session.clients).toBe(HERD);
    expect((await world.leases()).map(({ key }) => key)).toEqual([`service:${CHANNEL}`, 'tuner:1']);
    const shares = await Promise.all(workers.map((worker) => worker.status()));
    expect(shares.map(({ sessions }) => sessions).sort()).toEqual([0, 1]);
    expect((await other.stop(id, { as: ADMIN, force: true })).status).toBe(202);
    expect(await world.ends(id)).toMatchObject({ reason: 'R_STOPPED', outcome: 'STOPPED' });
    await world.expectAllFree(0);
    expect(world.pipelines()).toMatchObject([{ session: id, channel: CHANNEL, isEnded: true }]);
  });

  it('I-10 as a channel that another session has: both are accepted, the first runs, the second ends with R_LEASE_BUSY', async () => {
    await using world = await WorkerWorld.on(kind);
    await Promise.all([world.worker(), world.worker()]);
    const first = await world.start(CHANNEL, { profile: 'hd' });
    const { session, run } = await world.runs(first);
    const second = await world.start(CHANNEL, { profile: 'sd' });
    expect(second).not.toBe(first);
    const ended = await world.ends(second);
    expect(ended).toMatchObject({ reason: 'R_LEASE_BUSY', outcome: 'REJECTED_BUSY', slot: null });
    expect(await world.session(first)).toEqual(session);
    expect((await world.leases()).map(({ key }) => key)).toEqual([`service:${CHANNEL}`, 'tuner:1']);
    expect(world.pipelines()).toMatchObject([{ session: first, leader: run.leader }]);
  });

  it('I-09 and delivered again, while it runs and when it has ended, changes nothing, whichever worker gets it', async () => {
    await using world = await WorkerWorld.on(kind);
    await Promise.all([world.worker(), world.worker()]);
    const id = await world.start(CHANNEL);
    const { session } = await world.runs(id);
    const before = await world.leases();
    /** What comes after it in the stream has been taken: so it has been, too. */
    const pass = async (name: string) => {
      for (let again = 0; again < 5; again++) await world.deliverAgain(id);
      await world.stop((await world.runs(await world.start(name))).session.id);
      expect(await takeStarts(world.store)).toEqual([]);
    };
    await pass('another');
    expect(await world.session(id)).toEqual(session);
    const after = await world.leases();
    for (const { key, holder, fence } of before)
      expect(after).toContainEqual(expect.objectContaining({ key, holder, fence }));
    await world.stop(id);
    const ended = await world.ends(id);
    await pass('yet another');
    expect(await world.session(id)).toEqual(ended);
    expect(world.pipelines().filter((run) => run.session === id)).toHaveLength(1);
  });

  it('I-09 while every slot is taken, ends with R_NO_TUNER and has nothing left; the next is given what is free again', async () => {
    await using world = await WorkerWorld.on(kind);
    const resources = { tuners: ['left', 'right'] };
    await Promise.all([world.worker({ resources }), world.worker({ resources })]);
    const first = await world.runs(await world.start('one'));
    const second = await world.runs(await world.start('two'));
    expect([first.session.slot, second.session.slot]).toEqual(['tuner:left', 'tuner:right']);
    const third = await world.ends(await world.start('three'));
    expect(third).toMatchObject({ reason: 'R_NO_TUNER', outcome: 'REJECTED_NO_TUNER', slot: null });
    expect((await world.leases()).map(({ key }) => key)).toEqual([
      ...['service:one', 'service:two', 'tuner:left', 'tuner:right'],
    ]);
    await world.stop(first.session.id);
    await world.ends(first.session.id);
    const again = await world.runs(await world.start('three'));
    expect(again.session).toMatchObject({ slot: 'tuner:left' });
    expect(again.run.fence).toBeGreaterThan(first.run.fence);
    world.expectSound();
  });

  it('I-09 100 times as 50 channels for 4 tuners: 4 run, the others have ended with a reason, and none is left NEW', async () => {
    await using world = await WorkerWorld.on(kind);
    await Promise.all([world.worker(), world.worker(), world.worker()]);
    const ids: string[] = [];
    for (const profile of ['hd', 'sd']) {
      const start = (_: unknown, i: number) => world.start(`channel-${i}`, { profile });
      ids.push(...(await Promise.all(Array.from({ length: 50 }, start))));
    }
    expect(new Set(ids).size).toBe(100);
    const settled = async (id: string) => {
      const session = await world.session(id);
      return session.state === 'RUNNING' || session.state === 'ENDED' ? session : null;
    };
    const sessions = await Promise.all(
      ids.map((id) =>
        until(() => settled(id), {
          ...{ what: `${id} to be settled`, deadlineMs: SOON_MS, every: 50 },
        }),
      ),
    );
    const ended = sessions.filter(({ state }) => state === 'ENDED');
    for (const { reason } of ended) expect(['R_LEASE_BUSY', 'R_NO_TUNER']).toContain(reason);
    const running = (await world.leases()).filter(({ key }) => key.startsWith('tuner:'));
    expect(running).toHaveLength(4);
    expect(sessions.length - ended.length).toBe(4);
    world.expectSound();
  });
});
