import { describe, expect, it } from 'vitest';
import { OutcomeUnknownError } from '../../src/core/errors.ts';
import type { PipelineContext } from '../../src/worker/pipelines/pipeline.ts';
import { workerWorld } from '../support/worker-world.ts';

/** A pipeline that does not end when it is told to, but when the test says so. */
function stubborn() {
  let finish: () => void = () => {};
  let context: PipelineContext | undefined;
  const live = (_: unknown, given: PipelineContext) => {
    context = given;
    return new Promise<void>((resolve) => {
      finish = resolve;
    });
  };
  return { live, end: () => finish(), signal: () => context?.signal };
}

describe('a worker that stops before a pipeline has ended', () => {
  it('I-08 I-14 frees the leases of a session that was stopping, and another worker ends it', async () => {
    const world = workerWorld();
    const pipeline = stubborn();
    const first = await world.worker({ pipelines: { live: pipeline.live } });
    await first.worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    await world.stop(id);
    await world.until(() => pipeline.signal()?.aborted, 'it is told to end');
    const stopping = first.worker.stop({ within: 500 });
    await world.clock.advance(501);
    await stopping;
    pipeline.end();
    const second = await world.worker();
    await second.worker.start();
    expect(await world.reaches(id, 'ENDED', 35_000)).toMatchObject({ reason: 'R_STOPPED' });
    expect((await world.lease('service:channel-7')).kind).toBe('free');
    expect((await world.lease('tuner:1')).kind).toBe('free');
    expect(first.leases.held).toBe(0);
    expect(first.worker.sessions).toBe(0);
  });

  it('I-08 never releases the leases of a pipeline that still runs: they expire', async () => {
    const world = workerWorld();
    const pipeline = stubborn();
    const first = await world.worker({ pipelines: { live: pipeline.live } });
    await first.worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    const stopping = first.worker.stop({ within: 500 });
    await world.clock.advance(501);
    await stopping;
    const leases = () => Promise.all(['service:channel-7', 'tuner:1'].map(world.lease));
    expect((await leases()).map(({ kind }) => kind)).toEqual(['held', 'held']);
    expect(first.happened.map(({ name }) => name)).not.toContain('lease.released');
    // The TTL is 30 s: without a renewal they are gone after that, although the pipeline never
    // ends.
    await world.clock.advance(30_000);
    expect((await leases()).map(({ kind }) => kind)).toEqual(['free', 'free']);
  });

  it('I-08 lets the leases expire when the store does not know that the pipeline has ended', async () => {
    const world = workerWorld();
    const { worker, leases, store, happened } = await world.worker();
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    store.intents.advance = () => Promise.reject(new Error('it cannot be written'));
    world.played[0]?.end();
    await world.until(() => leases.held === 0, 'nothing is renewed', 1_000);
    expect((await world.lease('tuner:1')).kind).toBe('held');
    expect(happened.map(({ name }) => name)).not.toContain('lease.released');
    await world.clock.advance(30_000);
    expect((await world.lease('tuner:1')).kind).toBe('free');
  });

  it('I-11 recovers a session in the process that could not report its end, once its leases have expired', async () => {
    const world = workerWorld();
    const { worker, leases, store } = await world.worker();
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    const { advance } = store.intents;
    store.intents.advance = () => Promise.reject(new Error('it cannot be written'));
    world.played[0]?.end();
    await world.until(() => leases.held === 0, 'nothing is renewed', 1_000);
    store.intents.advance = (...step) => advance.apply(store.intents, step);
    await world.until(() => world.played.length === 2, 'it runs again', 65_000);
    world.played[1]?.end();
    expect(await world.reaches(id, 'ENDED')).toMatchObject({ reason: 'R_PIPELINE_ENDED' });
  });

  it('I-08 does not run a completed pipeline again when its end reaches the store after the worker has stopped', async () => {
    const world = workerWorld();
    const first = await world.worker();
    await first.worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    const { advance } = first.store.intents;
    const late: (() => Promise<unknown>)[] = [];
    first.store.intents.advance = (...step) => {
      late.push(() => advance.apply(first.store.intents, step));
      const facts = { store: 'test', operation: 'advance', afterMs: 2_000, why: 'no answer' };
      return Promise.reject(new OutcomeUnknownError(facts));
    };
    world.played[0]?.end();
    await world.until(() => late.length > 0, 'the end is on its way', 1_000);
    const stopping = first.worker.stop({ within: 500 });
    await world.clock.advance(501);
    await stopping;
    const second = await world.worker();
    await second.worker.start();
    await world.clock.advance(1_000);
    await late[0]?.();
    expect(await world.reaches(id, 'ENDED', 35_000)).toMatchObject({ reason: 'R_PIPELINE_ENDED' });
    expect(world.played).toHaveLength(1);
  });

  it('I-08 releases the leases at once when the store knows that the session is stopping', async () => {
    const world = workerWorld();
    const { worker, leases, store } = await world.worker();
    await worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    store.intents.advance = () => Promise.reject(new Error('it cannot be written'));
    await world.stop(id);
    await world.until(() => leases.held === 0, 'nothing is held', 5_000);
    expect((await world.lease('tuner:1')).kind).toBe('free');
  });

  it('I-12 keeps the lock of its name while a function still runs, and releases it afterwards', async () => {
    const world = workerWorld();
    const pipeline = stubborn();
    const first = await world.worker({ name: 'box', pipelines: { live: pipeline.live } });
    await first.worker.start();
    const id = await world.start('channel-7');
    await world.reaches(id, 'RUNNING');
    const stopping = first.worker.stop({ within: 500 });
    await world.clock.advance(501);
    await stopping;
    const refused = (await world.worker({ name: 'box' })).worker.start();
    await expect(refused).rejects.toMatchObject({ code: 'WORKER_NAME_TAKEN' });
    expect((await world.lease('tuner:1')).kind).toBe('held');
    pipeline.end();
    await world.settle();
    const second = await world.worker({ name: 'box' });
    const starting = second.worker.start();
    await world.clock.advance(2_000);
    await starting;
    expect(second.worker.state).toBe('running');
  });
});
