import { describe, expect, it } from 'vitest';
import { startStream } from '../../src/store/port/intent-store.ts';
import type { PipelineContext } from '../../src/worker/pipelines/pipeline.ts';
import { workerWorld } from '../support/worker-world.ts';
import { FakeCommands } from './support/fake-commands.ts';

const START_STREAM = startStream('live');

const CALL = { timeoutMs: 1_000 };
const BEN = { tenant: 'acme', client: 'ben' };

describe('one worker', () => {
  it('I-08 acquires the lease of the channel, then the first free tuner, and releases them in reverse order', async () => {
    const world = workerWorld();
    const { worker, happened, instanceId } = await world.worker({ resources: { tuners: 2 } });
    await worker.start();
    const id = await world.start('channel-7');
    const running = await world.reaches(id, 'RUNNING');
    expect(running).toMatchObject({ worker: instanceId, slot: 'tuner:1', reason: null });
    const holder = `${instanceId}/${id}`;
    expect(await world.lease('service:channel-7')).toMatchObject({ kind: 'held', holder });
    expect(await world.lease('tuner:1')).toMatchObject({ kind: 'held', holder });
    expect(world.played[0]?.context).toMatchObject({ slot: '1' });
    // The leases are renewed while it runs.
    await world.clock.advance(90_000);
    expect(await world.lease('tuner:1')).toMatchObject({ kind: 'held', holder });
    await world.stop(id);
    const over = await world.reaches(id, 'ENDED');
    expect(over).toMatchObject({ reason: 'R_STOPPED', outcome: 'STOPPED', slot: 'tuner:1' });
    const moves = happened.flatMap(({ name, facts }) =>
      name.startsWith('lease.') ? [`${name} ${(facts as { key: string }).key}`] : [],
    );
    expect(moves).toEqual([
      ...['lease.acquired service:channel-7', 'lease.acquired tuner:1'],
      ...['lease.released tuner:1', 'lease.released service:channel-7'],
    ]);
    expect(worker.sessions).toBe(0);
    await worker.stop();
  });

  it('I-12 begins a command when the store has its process group, and not before', async () => {
    const world = workerWorld();
    const commands = new FakeCommands();
    const live = { command: ['ffmpeg'] };
    const actor = await world.worker({ pipelines: { live } }, {}, commands);
    commands.onRun = () => {
      actor.faults.refuse = true;
    };
    await actor.worker.start();
    const id = await world.start('channel-7');
    await world.clock.advance(5_000);
    expect(commands.order?.command).toEqual(['ffmpeg']);
    expect((await world.session(id)).group).toBeUndefined();
    expect(commands.orders).toEqual([]);
    actor.faults.refuse = false;
    const { group } = await world.reaches(id, 'RUNNING');
    expect(group).toEqual({ group: 42, startedTicks: 4711 });
    await world.clock.advance(1);
    expect(commands.orders[0]).toEqual(['begin']);
  });

  it('I-08 runs a recording without a tuner, under a lease for recording, profile and second', async () => {
    const world = workerWorld();
    const { worker } = await world.worker();
    await worker.start();
    const { session } = await world.submit({
      ...{ type: 'vod.start', recordingId: 'film', profile: 'sd', startMs: 61_500 },
    });
    expect(await world.reaches(session.id, 'RUNNING')).toMatchObject({ slot: null });
    expect((await world.lease('vod:film:sd:61')).kind).toBe('held');
    expect((await world.lease('tuner:1')).kind).toBe('free');
    world.played[0]?.end({ frames: 12 });
    expect(await world.reaches(session.id, 'ENDED')).toMatchObject({
      ...{ reason: 'R_PIPELINE_ENDED', outcome: 'COMPLETED', detail: { result: { frames: 12 } } },
    });
    expect((await world.lease('vod:film:sd:61')).kind).toBe('free');
  });

  it('I-10 refuses the same channel with another profile while it runs, and keeps nothing for it', async () => {
    const world = workerWorld();
    const { worker } = await world.worker();
    await worker.start();
    const a = await world.start('channel-7', 'hd');
    await world.reaches(a, 'RUNNING');
    const b = await world.start('channel-7', 'sd', BEN);
    const refused = await world.reaches(b, 'ENDED');
    expect(refused).toMatchObject({ reason: 'R_LEASE_BUSY', outcome: 'REJECTED_BUSY' });
    // The client is not told which session holds it.
    expect(JSON.stringify(refused)).not.toContain(a);
    expect((await world.session(a)).state).toBe('RUNNING');
    expect(world.played).toHaveLength(1);
  });

  it('I-09 waits for a channel that an ended session still holds, and refuses the start if it is not released', async () => {
    const world = workerWorld();
    const ended = await world.start('channel-7', 'sd', BEN);
    await world.stop(ended, BEN);
    const held = { key: 'lease:service:channel-7', holder: `another/${ended}` };
    const call = { ...CALL, ttlMs: 60_000, inbox: 'another' };
    const take = async () => {
      const [reply] = await world.store.leases.acquire([held], call);
      if (reply?.kind !== 'granted') throw new Error('it was not granted');
      return { ...held, fence: reply.fence };
    };
    const tenancy = await take();
    const { worker } = await world.worker();
    await worker.start();
    const next = await world.start('channel-7');
    await world.clock.advance(500);
    expect((await world.session(next)).state).toBe('STARTING');
    await world.store.leases.release([tenancy], CALL);
    await world.reaches(next, 'RUNNING', 1_000);
    await world.stop(next);
    await world.reaches(next, 'ENDED');
    await take();
    const refused = await world.start('channel-7');
    expect(await world.reaches(refused, 'ENDED', 5_000)).toMatchObject({ reason: 'R_LEASE_BUSY' });
  });

  it('I-09 ends a session without a free slot, and frees its channel', async () => {
    const world = workerWorld();
    const { worker } = await world.worker({ resources: { tuners: ['front', 'back'] } });
    await worker.start();
    const [a, b] = [await world.start('a'), await world.start('b')];
    await world.reaches(a, 'RUNNING');
    await world.reaches(b, 'RUNNING');
    const c = await world.start('c');
    expect(await world.reaches(c, 'ENDED')).toMatchObject({
      ...{ reason: 'R_NO_TUNER', outcome: 'REJECTED_NO_TUNER' },
    });
    expect((await world.lease('service:c')).kind).toBe('free');
    expect([(await world.session(a)).slot, (await world.session(b)).slot]).toEqual([
      ...['tuner:front', 'tuner:back'],
    ]);
  });

  it('I-09 acknowledges a start that is delivered again, and changes nothing', async () => {
    const world = workerWorld();
    const { worker } = await world.worker();
    await worker.start();
    const id = await world.start('channel-7');
    const before = await world.reaches(id, 'RUNNING');
    const entry = { lane: id, priority: 5, value: { session: id } };
    await world.store.streams.append(START_STREAM, [entry], CALL);
    await world.clock.advance(10_000);
    expect(await world.session(id)).toEqual(before);
    const call = { ...CALL, consumer: 'test', most: 10, claimMs: 1_000 };
    expect(await world.store.streams.consume(START_STREAM, call)).toEqual([]);
    expect(world.played).toHaveLength(1);
  });

  it('I-16 continues the tenure that the API has acquired', async () => {
    const world = workerWorld();
    const { worker } = await world.worker();
    const { session } = await world
      .api({ apiLeases: 'on' })
      .submit({ type: 'stream.start', serviceRef: 'channel-7' }, BEN);
    const taken = await world.lease('service:channel-7');
    await worker.start();
    await world.reaches(session.id, 'RUNNING');
    const held = await world.lease('service:channel-7');
    expect(held).toMatchObject({ kind: 'held', fence: taken.kind === 'held' && taken.fence });
    await world.stop(session.id, BEN);
    await world.reaches(session.id, 'ENDED');
    expect((await world.lease('service:channel-7')).kind).toBe('free');
  });

  it('I-14 ends a start that waits for a slot when it is stopped', async () => {
    const world = workerWorld();
    const { worker } = await world.worker({ resources: { tuners: { slots: 1, wait: '60s' } } });
    await worker.start();
    const a = await world.start('a');
    await world.reaches(a, 'RUNNING');
    const b = await world.start('b');
    await world.reaches(b, 'STARTING');
    await world.clock.advance(1_000);
    await world.stop(b);
    expect(await world.reaches(b, 'ENDED', 1_000)).toMatchObject({ reason: 'R_STOPPED' });
    expect((await world.lease('service:b')).kind).toBe('free');
    expect((await world.session(a)).state).toBe('RUNNING');
  });

  it('runs the next session that waits for a slot as soon as one is free', async () => {
    const world = workerWorld();
    const { worker } = await world.worker({ resources: { tuners: { slots: 1, wait: '60s' } } });
    await worker.start();
    const a = await world.start('a');
    await world.reaches(a, 'RUNNING');
    const b = await world.start('b');
    await world.reaches(b, 'STARTING');
    const c = await world.start('c');
    await world.reaches(c, 'STARTING');
    await world.stop(a);
    await world.reaches(b, 'RUNNING', 1_000);
    expect((await world.session(c)).state).toBe('STARTING');
  });

  it('I-17 writes down how a pipeline failed', async () => {
    const world = workerWorld();
    const { worker } = await world.worker();
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    await world.clock.advance(2_000);
    world.played[0]?.fail('no signal on the cable');
    expect(await world.reaches(id, 'ENDED')).toMatchObject({
      ...{ reason: 'R_PIPELINE_FAILED', outcome: 'FAILED' },
      detail: { error: expect.stringContaining('no signal on the cable') },
    });
  });

  it('I-15 ends the pipeline, and then the session, when a lease is lost', async () => {
    const world = workerWorld();
    const { worker, leases } = await world.worker();
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    const revoking = leases.revoke('tuner:1', { reason: 'the cable is cut', class: 'resource' });
    await world.settle();
    expect(await revoking).toMatchObject({ revoked: true });
    const over = await world.reaches(id, 'ENDED');
    expect(over).toMatchObject({ reason: 'R_LEASE_EXPIRED', outcome: 'FAILED' });
    expect(world.played[0]?.isOver).toBe(true);
    expect((await world.lease('service:channel-7')).kind).toBe('free');
  });

  it('keeps the leases of a pipeline that does not end, and reports it', async () => {
    const world = workerWorld();
    let end = () => {};
    const stubborn = () =>
      new Promise<void>((resolve) => {
        end = resolve;
      });
    const { worker, happened } = await world.worker({ pipelines: { live: stubborn } });
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    await world.stop(id);
    await world.clock.advance(120_000);
    expect((await world.session(id)).state).toBe('STOPPING');
    expect((await world.lease('tuner:1')).kind).toBe('held');
    expect(happened.map(({ name }) => name)).toContain('pipeline.stuck');
    end();
    await world.reaches(id, 'ENDED', 100);
    expect((await world.lease('tuner:1')).kind).toBe('free');
  });

  it('writes the last progress at most once a second', async () => {
    const world = workerWorld();
    const { worker } = await world.worker();
    await worker.start();
    const id = await world.start('channel-7');
    const { revision } = await world.reaches(id, 'RUNNING');
    for (let i = 0; i < 100; i++) {
      world.played[0]?.context.progress({ frame: i });
      await world.clock.advance(20);
    }
    await world.clock.advance(1_000);
    const after = await world.session(id);
    expect(after.progress).toEqual({ frame: 99 });
    expect(after.revision - revision).toBeLessThanOrEqual(4);
    world.played[0]?.context.progress('x'.repeat(10_000));
    world.played[0]?.context.progress(1n);
    await world.clock.advance(2_000);
    expect((await world.session(id)).progress).toEqual({ frame: 99 });
  });

  it('writes progress that was reported once, before the session was RUNNING', async () => {
    const world = workerWorld();
    const live = (_: unknown, { signal, progress }: PipelineContext) => {
      progress('begun');
      return new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    };
    const { worker } = await world.worker({ pipelines: { live } });
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    await world.clock.advance(1_100);
    expect((await world.session(id)).progress).toBe('begun');
  });

  it('stops a session even if the hint is lost', async () => {
    const world = workerWorld();
    const { worker, faults } = await world.worker();
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    faults.refuse = true;
    await world.stop(id);
    await world.settle();
    faults.refuse = false;
    await world.reaches(id, 'ENDED', 10_000);
  });

  it('does nothing once it has stopped, even if it was stopped before it had started', async () => {
    const world = workerWorld();
    const { signals } = world.store;
    const subscribe = signals.subscribe.bind(signals);
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    signals.subscribe = async (...about) => {
      await answered;
      return subscribe(...about);
    };
    const { worker } = await world.worker();
    const starting = worker.start();
    await world.settle();
    await worker.stop();
    answer();
    await starting;
    const id = await world.start('channel-7');
    await world.clock.advance(10_000);
    expect((await world.session(id)).state).toBe('NEW');
    expect(world.clock.pendingTimers).toBe(0);
  });

  it('does not run a session that was stopped before', async () => {
    const world = workerWorld();
    const { worker } = await world.worker();
    const id = await world.start('channel-7');
    await world.stop(id);
    await worker.start();
    await world.clock.advance(10_000);
    expect(world.played).toEqual([]);
    const call = { ...CALL, consumer: 'test', most: 10, claimMs: 1_000 };
    expect(await world.store.streams.consume(START_STREAM, call)).toEqual([]);
  });
});

describe('several workers', () => {
  it('I-07 run a session once', async () => {
    const world = workerWorld();
    for (let i = 0; i < 4; i++) await (await world.worker()).worker.start();
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        world.start('channel-7', 'hd', { tenant: 'acme', client: `c${i}` }),
      ),
    );
    expect(new Set(ids).size).toBe(1);
    await world.reaches(ids[0] ?? '', 'RUNNING');
    await world.clock.advance(60_000);
    expect(world.played).toHaveLength(1);
  });

  it('I-11 continue the session of a dead worker once its leases have expired', async () => {
    const world = workerWorld();
    const lost = await world.worker();
    await lost.worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    const other = await world.worker();
    await other.worker.start();
    await world.clock.advance(5_000);
    lost.faults.refuse = true;
    // Until its leases have expired no other worker may.
    await world.clock.advance(20_000);
    expect((await world.session(id)).worker).toBe(lost.instanceId);
    const went = await world.until(
      async () => {
        const found = await world.session(id);
        return found.worker === other.instanceId ? found : null;
      },
      'the other has it',
      12_000,
    );
    expect(went).toMatchObject({ state: 'RUNNING', losses: 1 });
    expect(world.played.map(({ isOver }) => isOver)).toEqual([true, false]);
    // The lost worker is back, and notices that the session is not its own any more.
    lost.faults.refuse = false;
    await world.clock.advance(60_000);
    expect(await world.session(id)).toMatchObject({ state: 'RUNNING', worker: other.instanceId });
    expect(lost.worker.sessions).toBe(0);
    await world.stop(id);
    await world.reaches(id, 'ENDED');
  });

  it('I-11 end a session that has lost too many workers, and one that a dead worker was ending', async () => {
    const world = workerWorld();
    const id = await world.start('channel-7');
    for (let i = 0; i < 4; i++) {
      const { worker, faults } = await world.worker();
      await worker.start();
      await world.until(() => world.played.length === i + 1, 'it runs');
      await world.until(async () => (await world.session(id)).worker !== null, 'it has a worker');
      faults.refuse = true;
    }
    await (await world.worker()).worker.start();
    expect(await world.reaches(id, 'ENDED')).toMatchObject({
      ...{ reason: 'R_WORKER_LOST', outcome: 'FAILED', losses: 4 },
    });
  });

  it('I-11 end a session that was stopped while its worker was dead', async () => {
    const world = workerWorld();
    const lost = await world.worker();
    await lost.worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    lost.faults.refuse = true;
    await world.stop(id);
    await (await world.worker()).worker.start();
    expect(await world.reaches(id, 'ENDED')).toMatchObject({ reason: 'R_STOPPED' });
    expect(world.played).toHaveLength(1);
  });

  it('I-09 leave a session to the worker that has claimed it for a TTL, and then recover it', async () => {
    const world = workerWorld();
    const id = await world.start('channel-7');
    const status = JSON.stringify({ reason: null, outcome: null, worker: 'slow', slot: null });
    const claim = { ifRevision: 1, state: 'STARTING', status } as const;
    await world.store.intents.advance(id, claim, CALL);
    await (await world.worker()).worker.start();
    await world.clock.advance(29_000);
    expect((await world.session(id)).worker).toBe('slow');
    const went = await world.reaches(id, 'RUNNING', 10_000);
    expect(went).toMatchObject({ worker: expect.not.stringMatching('slow'), losses: 1 });
  });

  it('continue a session at once that a stopping worker has left', async () => {
    const world = workerWorld();
    const leaving = await world.worker();
    const staying = await world.worker({ starts: 1 });
    await leaving.worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    await staying.worker.start();
    const stopping = leaving.worker.stop();
    await world.until(() => world.played.length === 2, 'the other runs it', 1_000);
    await stopping;
    expect(leaving.worker.state).toBe('stopped');
    await world.settle();
    expect(await world.session(id)).toMatchObject({ worker: staying.instanceId, state: 'RUNNING' });
    expect((await world.session(id)).losses).toBeUndefined();
  });

  it('start no more sessions at once than they may, and stop sessions meanwhile', async () => {
    const world = workerWorld();
    const { worker } = await world.worker({
      starts: 2,
      resources: { tuners: { slots: 1, wait: '1h' } },
    });
    await worker.start();
    const first = await world.start('first');
    await world.reaches(first, 'RUNNING');
    const ids = [];
    for (let i = 0; i < 10; i++) ids.push(await world.start(`channel-${i}`));
    await world.clock.advance(5_000);
    const states = await Promise.all(ids.map(async (id) => (await world.session(id)).state));
    expect(states.filter((state) => state === 'STARTING')).toHaveLength(2);
    await world.stop(first);
    await world.reaches(first, 'ENDED', 100);
  });
});

describe('a worker with a name', () => {
  it('I-12 that was killed and restarted frees what it held, and nothing else', async () => {
    const world = workerWorld();
    const resources = { tuners: 2 };
    const healthy = await world.worker({ resources });
    await healthy.worker.start();
    const kept = await world.start('kept');
    await world.reaches(kept, 'RUNNING');
    const killed = await world.worker({ resources, name: 'box' });
    await killed.worker.start();
    await healthy.worker.stop();
    await world.until(
      async () => (await world.session(kept)).worker === killed.instanceId,
      'taken',
    );
    const other = await world.worker({ resources });
    await other.worker.start();
    const theirs = await world.start('theirs');
    await world.until(() => world.played.length === 3, 'both run');
    const before = await Promise.all(['service:theirs', 'service:kept'].map(world.lease));
    const [runner] = world.played.slice(-1);
    const isOthers = runner?.worker === other.instanceId;
    killed.faults.refuse = true;
    world.hostWorld.dead.add(killed.instanceId);
    const back = await world.worker({ resources, name: 'box' });
    const starting = back.worker.start();
    await world.clock.advance(2_000);
    await starting;
    expect(back.happened.map(({ name }) => name)).toContain('worker.reclaimed');
    const now = await world.lease('service:theirs');
    if (isOthers) expect(now).toMatchObject({ holder: (before[0] as { holder: string }).holder });
    await world.until(
      async () => (await world.session(kept)).worker !== killed.instanceId,
      'again',
    );
    expect((await world.session(theirs)).state).toBe('RUNNING');
  });

  it('I-12 is refused while another process of that name is alive, frozen or not', async () => {
    const world = workerWorld();
    const first = await world.worker({ name: 'box' });
    await first.worker.start();
    first.faults.refuse = true;
    const second = await world.worker({ name: 'box' });
    await expect(second.worker.start()).rejects.toMatchObject({ code: 'WORKER_NAME_TAKEN' });
    expect(second.worker.state).toBe('stopped');
  });

  it('I-12 has another lock in another store', async () => {
    const world = workerWorld();
    const beside = workerWorld(world.hostWorld);
    expect(beside.store.name).toBe(world.store.name);
    await (await world.worker({ name: 'box' })).worker.start();
    const { worker } = await beside.worker({ name: 'box' });
    await worker.start();
    expect(worker.state).toBe('running');
  });

  it('I-12 is starting while it waits for its name', async () => {
    const world = workerWorld();
    const key = 'lease:worker:box';
    const call = { ...CALL, ttlMs: 20_000, inbox: 'another' };
    await world.store.leases.acquire([{ key, holder: 'another' }], call);
    const { worker } = await world.worker({ name: 'box' });
    const starting = worker.start();
    await world.clock.advance(10_000);
    expect(worker.state).toBe('starting');
    await world.clock.advance(15_000);
    await starting;
    expect(worker.state).toBe('running');
  });

  it('I-12 waits until the lease of its name has expired if nothing proves that the other one is dead', async () => {
    const world = workerWorld();
    const first = await world.worker({ name: 'box' });
    await first.worker.start();
    await world.clock.advance(1_000);
    first.faults.refuse = true;
    const elsewhere = await world.worker({ name: 'box' }, { id: 'another host' });
    let isUp = false;
    const starting = elsewhere.worker.start().then(() => {
      isUp = true;
    });
    await world.clock.advance(15_000);
    expect(isUp).toBe(false);
    await world.clock.advance(20_000);
    await starting;
    expect(elsewhere.happened.map(({ name }) => name)).not.toContain('worker.reclaimed');
  });

  it('I-12 is refused on another host while the first worker renews its name', async () => {
    const world = workerWorld();
    const first = await world.worker({ name: 'box' });
    await first.worker.start();
    const elsewhere = await world.worker({ name: 'box' }, { id: 'another host' });
    const refused = expect(elsewhere.worker.start()).rejects.toMatchObject({
      code: 'WORKER_NAME_TAKEN',
    });
    await world.clock.advance(40_000);
    await refused;
  });
});

describe('invalid options', () => {
  it.each([
    [{ starts: 0 }, 'starts'],
    [{ name: 'a b' }, 'name'],
    [{ resources: { tuners: 0 } }, 'slots'],
    [{ resources: { tuners: { slots: 1, waits: 3 } } }, 'waits'],
    [{ pipelines: { live: { command: [] } } }, 'pipelines.live.command'],
    [{ pipelines: { live: { command: ['x'], resource: 'gpus' } } }, 'pipelines.live.resource'],
    [{ pipelines: { radio: () => {} } }, 'radio'],
    [{ ttl: '1s', grace: '5s' }, 'grace'],
    [{ colour: 'red' }, 'colour'],
  ])('%j are refused before anything happens', async (options, field) => {
    const world = workerWorld();
    await expect(world.worker(options as object)).rejects.toMatchObject({
      ...{ code: 'CONFIG_INVALID', field: expect.stringContaining(field) },
    });
  });
});
