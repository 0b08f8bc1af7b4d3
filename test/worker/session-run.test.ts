import { describe, expect, it } from 'vitest';
import { startStream } from '../../src/store/port/intent-store.ts';
import { workerWorld } from '../support/worker-world.ts';
import { FakeCommands } from './support/fake-commands.ts';

const START_STREAM = startStream('live');

const CALL = { timeoutMs: 1_000 };
const BEN = { tenant: 'acme', client: 'ben' };

/** A promise that resolves when the test opens it. */
function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

describe('SessionRun at the end of a session', () => {
  it('I-08 I-11 writes STOPPING and the reason before it releases the first lease', async () => {
    const world = workerWorld();
    const { worker, store } = await world.worker();
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    const seen: unknown[] = [];
    const { release } = store.leases;
    store.leases.release = async (...asked) => {
      const { state, reason } = await world.session(id);
      seen.push([state, reason]);
      return release(...asked);
    };
    world.played[0]?.end();
    await world.reaches(id, 'ENDED');
    const over = ['STOPPING', 'R_PIPELINE_ENDED'];
    expect(seen).toEqual([over, over]);
  });

  it('I-14 I-15 ends a stopped session as stopped, even if a lease is lost while it ends', async () => {
    const world = workerWorld();
    const { opened, open } = gate();
    const { worker, leases, happened } = await world.worker({ pipelines: { live: () => opened } });
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    await world.stop(id);
    await world.clock.advance(100);
    const revoking = leases.revoke('tuner:1', { reason: 'the cable is cut', class: 'resource' });
    await world.clock.advance(100);
    expect(await revoking).toMatchObject({ revoked: true });
    expect(happened.map(({ name }) => name)).toContain('lease.lost');
    open();
    expect(await world.reaches(id, 'ENDED')).toMatchObject({ reason: 'R_STOPPED' });
    expect((await world.lease('service:channel-7')).kind).toBe('free');
  });

  it('I-15 does not extend its command once a lease is lost, even if the other lease is renewed', async () => {
    const world = workerWorld();
    const commands = new FakeCommands();
    const actor = await world.worker(
      { pipelines: { live: { command: ['ffmpeg'] } } },
      {},
      commands,
    );
    await actor.worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    const revoke = actor.leases.revoke('tuner:1', { reason: 'cut', class: 'resource' });
    await world.clock.advance(100);
    await revoke;
    const orders = () => commands.orders.map(([what]) => what);
    expect(orders()).toContain('stop');
    await world.clock.advance(25_000);
    expect((await world.lease('service:channel-7')).kind).toBe('held');
    expect(orders().slice(orders().indexOf('stop') + 1)).not.toContain('extend');
  });
});

describe('a command that its supervisor ended at the deadline', () => {
  it('I-15 ends its session with R_LEASE_EXPIRED, even if the worker has not noticed the loss yet', async () => {
    const world = workerWorld();
    const commands = new FakeCommands();
    const live = { command: ['ffmpeg'] };
    const { worker } = await world.worker({ pipelines: { live } }, {}, commands);
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    const how = { code: null, signal: 'SIGTERM', survivors: false, output: [] } as const;
    commands.end({ event: 'ended', why: 'deadline', ...how });
    expect(await world.reaches(id, 'ENDED')).toMatchObject({ reason: 'R_LEASE_EXPIRED' });
  });
});

describe('a claimed session', () => {
  it('I-09 does not run if it has ended by the time its lease is granted', async () => {
    const world = workerWorld();
    world.store.signals.subscribe = async () => async () => {};
    const { worker, store } = await world.worker();
    const id = await world.start('channel-7');
    const { acquire } = store.leases;
    store.leases.acquire = async (...asked) => {
      const replies = await acquire(...asked);
      const { revision: ifRevision, state } = await world.session(id);
      if (state === 'STARTING') {
        // Another worker had the lease just before, and has ended the session.
        const status = JSON.stringify({
          reason: 'R_STOPPED',
          outcome: 'STOPPED',
          worker: 'another',
          slot: null,
        });
        await world.store.intents.advance(id, { ifRevision, state: 'ENDED', status }, CALL);
      }
      return replies;
    };
    await worker.start();
    await world.reaches(id, 'ENDED');
    await world.clock.advance(2_000);
    expect(world.played).toEqual([]);
    expect((await world.lease('service:channel-7')).kind).toBe('free');
    expect((await world.lease('tuner:1')).kind).toBe('free');
  });
});

describe('a worker that stops', () => {
  it('I-13 returns starts at once that are delivered after its stop', async () => {
    const world = workerWorld();
    const { worker, store } = await world.worker();
    const { opened, open } = gate();
    const { consume } = store.streams;
    let taken = 0;
    store.streams.consume = async (...asked) => {
      const deliveries = await consume(...asked);
      taken += deliveries.length;
      if (deliveries.length > 0) await opened;
      return deliveries;
    };
    const id = await world.start('channel-7');
    const starting = worker.start();
    await world.until(() => taken > 0, 'it is handed the start');
    const stopping = worker.stop();
    open();
    await world.clock.advance(10);
    await Promise.all([starting, stopping]);
    expect((await world.session(id)).state).toBe('NEW');
    const call = { ...CALL, consumer: 'another', most: 10, claimMs: 1_000 };
    expect(await world.store.streams.consume(START_STREAM, call)).toMatchObject([{ lane: id }]);
  });

  it('I-09 does not run a session that it has just claimed, and leaves it to other workers', async () => {
    const world = workerWorld();
    const { worker, store } = await world.worker();
    const [claim, ack] = [gate(), gate()];
    const { advance } = store.intents;
    const { ack: acknowledge } = store.streams;
    let claims = 0;
    store.intents.advance = async (...asked) => {
      const reply = await advance(...asked);
      if (claims++ === 0) await claim.opened;
      return reply;
    };
    store.streams.ack = async (...asked) => {
      await ack.opened;
      return acknowledge(...asked);
    };
    const id = await world.start('channel-7');
    await worker.start();
    await world.until(() => claims > 0, 'it has claimed it');
    const stopping = worker.stop();
    claim.open();
    await world.clock.advance(1_000);
    expect(world.played).toEqual([]);
    ack.open();
    await world.clock.advance(10);
    await stopping;
    expect(await world.session(id)).toMatchObject({ state: 'STARTING', worker: null });
    expect((await world.lease('service:channel-7')).kind).toBe('free');
  });
});

describe('a worker with a name', () => {
  it('I-12 frees nothing of an instance that had another lock, even if it had the name on this host', async () => {
    const world = workerWorld();
    const call = { ...CALL, ttlMs: 60_000, inbox: 'other' };
    const held = [
      { key: 'lease:worker:box', holder: 'other' },
      { key: 'lease:tuner:1', holder: 'other/session' },
    ];
    await world.store.leases.acquire(held, call);
    const value = { instance: 'other', host: 'host', lock: 'another lock', process: 'other' };
    await world.store.records.put('workers', [{ id: 'box', value }], CALL);
    const { worker, happened } = await world.worker({ name: 'box' });
    const starting = worker.start();
    await world.clock.advance(20_000);
    expect(worker.state).toBe('starting');
    expect(happened.map(({ name }) => name)).not.toContain('worker.reclaimed');
    expect((await world.lease('tuner:1')).kind).toBe('held');
    await world.clock.advance(45_000);
    await starting;
  });

  it('I-12 I-16 spares a lease that its API acquired and another worker continues', async () => {
    const world = workerWorld();
    const killed = await world.worker({ name: 'box' });
    const api = world.api({ apiLeases: 'on' }, killed.instanceId);
    const { session } = await api.submit({ type: 'stream.start', serviceRef: 'channel-7' }, BEN);
    const other = await world.worker();
    await other.worker.start();
    await world.reaches(session.id, 'RUNNING');
    await killed.worker.start();
    killed.faults.refuse = true;
    world.hostWorld.dead.add(killed.instanceId);
    const back = await world.worker({ name: 'box' });
    const starting = back.worker.start();
    await world.clock.advance(2_000);
    await starting;
    expect(back.happened.map(({ name }) => name)).toContain('worker.reclaimed');
    const holder = `${killed.instanceId}/${session.id}`;
    expect(await world.lease('service:channel-7')).toMatchObject({ kind: 'held', holder });
    await world.clock.advance(30_000);
    expect(other.happened.map(({ name }) => name)).not.toContain('lease.lost');
    expect(await world.session(session.id)).toMatchObject({
      ...{ state: 'RUNNING', worker: other.instanceId },
    });
  });
});
