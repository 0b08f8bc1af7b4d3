import { describe, expect, it, vi } from 'vitest';
import { StoreUnreachableError } from '../../src/core/errors.ts';
import type { Start } from '../../src/intents/intent.ts';
import type { KindContext, KindDeclarations } from '../../src/intents/kind.ts';
import type { Store } from '../../src/store/port/store.ts';
import { workerWorld } from '../support/worker-world.ts';
import { FakeCommands } from './support/fake-commands.ts';

interface Call {
  readonly params: unknown;
  readonly context: KindContext;
  end(result?: unknown): void;
  fail(message: string): void;
}

/** A world with kinds whose functions the test ends. */
function kindWorld(declared: KindDeclarations) {
  const calls: Call[] = [];
  const run = (params: unknown, context: KindContext) =>
    new Promise((resolve, reject) => {
      const fail = (message: string) => reject(new Error(message));
      calls.push({ params, context, end: resolve, fail });
      context.signal.addEventListener('abort', () => resolve('told'), { once: true });
    });
  const kinds = Object.fromEntries(
    Object.entries(declared).map(([name, option]) => [name, { run, ...option }]),
  );
  const world = workerWorld(undefined, kinds);
  const start = async (kind: string, more: Partial<Start> = {}) =>
    (await world.submit({ type: 'start', kind, ...more })).session.id;
  const call = (number: number) =>
    world.until(() => calls[number - 1], `call ${number} of a function`);
  return { ...world, start, calls, call };
}

/** Has the store refuse every change of a session until `allow` is called. */
function refuseAdvances({ intents }: Store) {
  const refusing = { refused: 0, allow: () => spy.mockRestore() };
  const spy = vi.spyOn(intents, 'advance').mockImplementation(async () => {
    refusing.refused++;
    throw new StoreUnreachableError({ store: 'memory', operation: 'advance', why: 'no memory' });
  });
  return refusing;
}

describe('a worker of declared kinds', () => {
  it('B-11 gives a function its params, its session and its fence, and keeps its result', async () => {
    const world = kindWorld({ echo: {} });
    const { worker, instanceId } = await world.worker();
    await worker.start();
    const params = { text: "'; rm -rf / #", list: [1, { a: null }] };
    const id = await world.start('echo', { key: 'k', params });
    const { context, end, ...given } = await world.call(1);
    expect(given.params).toEqual(params);
    expect(context).toMatchObject({
      slot: null,
      attempt: 1,
      session: { id, kind: 'echo', key: 'k', tenant: 'acme' },
    });
    expect(context.fence).toBeGreaterThan(0);
    const holder = `${instanceId}/${id}`;
    expect(await world.lease('kind:echo:k')).toMatchObject({ kind: 'held', holder });
    end({ done: true });
    expect(await world.reaches(id, 'ENDED')).toMatchObject({
      ...{ reason: 'R_PIPELINE_ENDED', outcome: 'COMPLETED', detail: { result: { done: true } } },
    });
    expect((await world.lease('kind:echo:k')).kind).toBe('free');
  });

  it('B-13 ends a session without a slot with R_NO_SLOT, and one of a built-in kind with R_NO_TUNER', async () => {
    const world = kindWorld({ job: { pool: 'gpus' } });
    const { worker } = await world.worker({ pools: { gpus: 1 }, resources: { tuners: 1 } });
    await worker.start();
    const first = await world.start('job', { key: 'a' });
    expect(await world.reaches(first, 'RUNNING')).toMatchObject({ slot: 'gpus:1' });
    const second = await world.start('job', { key: 'b' });
    expect(await world.reaches(second, 'ENDED')).toMatchObject({
      ...{ reason: 'R_NO_SLOT', outcome: 'REJECTED_NO_SLOT' },
    });
    const busy = await world.start('job', { key: 'a', params: { other: true } });
    expect(await world.reaches(busy, 'ENDED')).toMatchObject({ reason: 'R_LEASE_BUSY' });
    for (const [serviceRef, reason] of [['x'], ['y', 'R_NO_TUNER']] as const) {
      const { session } = await world.submit({ type: 'stream.start', serviceRef });
      const found = await world.reaches(session.id, reason === undefined ? 'RUNNING' : 'ENDED');
      expect(found.reason).toBe(reason ?? null);
    }
  });

  it('B-12 takes the kinds it was told to, and no others; the others wait for a worker of theirs', async () => {
    const world = kindWorld({ a: {}, b: {} });
    const one = await world.worker({ kinds: ['a'] });
    await one.worker.start();
    const ids = [await world.start('b'), await world.start('a')];
    const { session: live } = await world.submit({ type: 'stream.start', serviceRef: 'x' });
    await world.reaches(ids[1] ?? '', 'RUNNING');
    await world.clock.advance(90_000);
    expect(await world.session(ids[0] ?? '')).toMatchObject({ state: 'NEW', worker: null });
    expect(await world.session(live.id)).toMatchObject({ state: 'NEW' });
    const two = await world.worker({ kinds: ['b', 'live'] });
    await two.worker.start();
    expect(await world.reaches(ids[0] ?? '', 'RUNNING')).toMatchObject({ worker: two.instanceId });
    expect(await world.reaches(live.id, 'RUNNING')).toMatchObject({ worker: two.instanceId });
    expect(one.worker.kinds).toEqual(['a']);
  });

  it('B-12 does not continue a session of a kind that it does not take, but ends one that was stopped', async () => {
    const world = kindWorld({ a: {}, b: {} });
    const dying = await world.worker({ kinds: ['a'], ttl: '10s' });
    await dying.worker.start();
    const id = await world.start('a');
    await world.reaches(id, 'RUNNING');
    dying.faults.refuse = true;
    const other = await world.worker({ kinds: ['b'], ttl: '10s' });
    await other.worker.start();
    await world.clock.advance(120_000);
    expect(await world.session(id)).toMatchObject({ state: 'RUNNING', worker: dying.instanceId });
    await world.stop(id);
    const ended = await world.reaches(id, 'ENDED');
    expect(ended).toMatchObject({ reason: 'R_STOPPED', worker: other.instanceId });
    expect(world.calls).toHaveLength(1);
  });

  it.each<[string, object, string, RegExp]>([
    ['an unknown kind', { kinds: ['c'] }, 'kinds', /Declared kinds: live, vod, a, bare/],
    ['a kind without a pipeline', { kinds: ['bare'] }, 'kinds.bare.run', /needs it/],
    ['no kind', { kinds: [] }, 'kinds', /not empty/],
    ['a pool twice', { pools: { tuners: 1 } }, 'pools', /already/],
    ['a pool that is not there', {}, 'kinds.a.pool', /there is no such pool/],
  ])('B-12 is refused with %s', async (_, options, field, rule) => {
    const world = kindWorld({ a: { pool: 'gpus' }, bare: { run: undefined } });
    const made = world.worker({ ...options });
    await expect(made).rejects.toMatchObject({ code: 'CONFIG_INVALID', field });
    await expect(made).rejects.toThrow(rule);
  });

  it('B-12 takes by default what it can run', async () => {
    const world = kindWorld({ a: { priority: 9 }, bare: { run: undefined }, b: { priority: 1 } });
    const { worker } = await world.worker();
    expect(worker.kinds).toEqual(['a', 'live', 'vod', 'b']);
  });

  it('B-12 starts of a kind that wait for slots do not hold back those of another', async () => {
    const world = kindWorld({ slow: { pool: 'one' }, fast: {} });
    const { worker } = await world.worker({ starts: 2, pools: { one: { slots: 1, wait: '1h' } } });
    await worker.start();
    for (let n = 0; n < 5; n++) await world.start('slow', { key: `s${n}` });
    await world.clock.advance(5_000);
    const id = await world.start('fast');
    await world.reaches(id, 'RUNNING', 2_000);
  });
});

describe('a session that fails', () => {
  it('B-11 ends at the first failure without tries', async () => {
    const world = kindWorld({ job: {} });
    await (await world.worker()).worker.start();
    const id = await world.start('job');
    (await world.call(1)).fail('no good');
    expect(await world.reaches(id, 'ENDED')).toMatchObject({
      ...{ reason: 'R_PIPELINE_FAILED', detail: { error: 'no good' } },
    });
    expect(world.calls).toHaveLength(1);
  });

  it('B-11 is tried again after a pause, up to its tries, under the same leases', async () => {
    const world = kindWorld({ job: { tries: 3, pool: 'gpus' } });
    const { worker, happened } = await world.worker({ pools: { gpus: 1 } });
    await worker.start();
    const id = await world.start('job', { key: 'k' });
    (await world.call(1)).fail('one');
    const second = await world.call(2);
    expect(second.context).toMatchObject({ attempt: 2, slot: '1' });
    expect(await world.session(id)).toMatchObject({ state: 'RUNNING', failures: 1 });
    second.fail('two');
    const third = await world.call(3);
    expect(third.context.fence).toBe(second.context.fence);
    third.fail('three');
    expect(await world.reaches(id, 'ENDED')).toMatchObject({
      ...{ reason: 'R_PIPELINE_FAILED', failures: 2, detail: { error: 'three' } },
    });
    await world.clock.advance(300_000);
    expect(world.calls).toHaveLength(3);
    const retries = happened.filter(({ name }) => name === 'pipeline.retried');
    expect(retries.map(({ facts }) => facts)).toMatchObject([
      { session: id, attempt: 2, why: 'one' },
      { session: id, attempt: 3, why: 'two' },
    ]);
    expect(happened.filter(({ name }) => name === 'lease.acquired')).toHaveLength(2);
  });

  it('B-11 is not tried again once it is stopped, even in its pause', async () => {
    const world = kindWorld({ job: { tries: 3 } });
    await (await world.worker()).worker.start();
    const id = await world.start('job');
    (await world.call(1)).fail('one');
    await world.until(async () => (await world.session(id)).failures === 1, 'it was counted');
    await world.stop(id);
    expect(await world.reaches(id, 'ENDED')).toMatchObject({ reason: 'R_STOPPED' });
    expect(world.calls).toHaveLength(1);
  });

  it('B-11 counts a failure before a worker that stops hands the session over', async () => {
    const world = kindWorld({ job: { tries: 2 } });
    const first = await world.worker({ ttl: '10s' });
    await first.worker.start();
    const id = await world.start('job');
    await world.reaches(id, 'RUNNING');
    const advance = refuseAdvances(first.store);
    (await world.call(1)).fail('one');
    await world.until(() => advance.refused > 0, 'the store has refused the failure');
    const stopping = first.worker.stop({ within: '20s' });
    await world.clock.advance(1_000);
    expect((await world.lease(`kind:job:${id}`)).kind).toBe('held');
    advance.allow();
    await world.until(async () => (await world.session(id)).worker === null, 'it was handed over');
    await stopping;
    expect(await world.session(id)).toMatchObject({ state: 'RUNNING', failures: 1 });
    expect((await world.lease(`kind:job:${id}`)).kind).toBe('free');
    await (await world.worker({ ttl: '10s' })).worker.start();
    const second = await world.call(2);
    expect(second.context.attempt).toBe(2);
    second.fail('two');
    expect(await world.reaches(id, 'ENDED')).toMatchObject({ reason: 'R_PIPELINE_FAILED' });
    await world.clock.advance(300_000);
    expect(world.calls).toHaveLength(2);
  });

  it('B-11 I-11 keeps its lease until it expires if a failure cannot be counted, and then counts a loss', async () => {
    const world = kindWorld({ job: { tries: 2 } });
    const first = await world.worker({ ttl: '10s' });
    await first.worker.start();
    const id = await world.start('job');
    await world.reaches(id, 'RUNNING');
    const advance = refuseAdvances(first.store);
    (await world.call(1)).fail('one');
    await world.until(() => advance.refused > 0, 'the store has refused the failure');
    const stopping = first.worker.stop({ within: '1s' });
    await world.clock.advance(2_000);
    await stopping;
    expect((await world.lease(`kind:job:${id}`)).kind).toBe('held');
    await (await world.worker({ ttl: '10s' })).worker.start();
    (await world.call(2)).fail('two');
    const ended = await world.reaches(id, 'ENDED');
    expect(ended).toMatchObject({ reason: 'R_PIPELINE_FAILED', losses: 1 });
    await world.clock.advance(300_000);
    expect(world.calls).toHaveLength(2);
  });

  it('B-11 ends as its pipeline ended, even if the worker is told to stop while the store does not answer', async () => {
    const world = kindWorld({ job: {} });
    const first = await world.worker({ ttl: '10s' });
    await first.worker.start();
    const advance = first.store.intents.advance.bind(first.store.intents);
    vi.spyOn(first.store.intents, 'advance').mockImplementation(async (id, step, call) => {
      if (step.state === 'RUNNING') await world.clock.sleep(2_000);
      return await advance(id, step, call);
    });
    const id = await world.start('job');
    (await world.call(1)).end('done');
    await world.settle();
    const stopping = first.worker.stop({ within: '20s' });
    const ended = await world.reaches(id, 'ENDED');
    expect(ended).toMatchObject({ reason: 'R_PIPELINE_ENDED', detail: { result: 'done' } });
    await stopping;
    await (await world.worker({ ttl: '10s' })).worker.start();
    await world.clock.advance(60_000);
    expect(world.calls).toHaveLength(1);
  });

  it('I-11 keeps its lease until it expires if the worker stops while the store does not know that it ended', async () => {
    const world = kindWorld({ job: {} });
    const { worker, store } = await world.worker({ ttl: '10s' });
    await worker.start();
    const id = await world.start('job');
    await world.reaches(id, 'RUNNING');
    const advance = refuseAdvances(store);
    (await world.call(1)).end('done');
    await world.until(() => advance.refused > 0, 'the store has refused the end');
    const stopping = worker.stop({ within: '1s' });
    await world.clock.advance(2_000);
    await stopping;
    expect((await world.lease(`kind:job:${id}`)).kind).toBe('held');
    await world.clock.advance(10_000);
    expect((await world.lease(`kind:job:${id}`)).kind).toBe('free');
  });

  it('B-11 ends with R_TIME_LIMIT when its time is over, and is told to end', async () => {
    const world = kindWorld({ job: { timeLimit: '1m' } });
    await (await world.worker()).worker.start();
    const id = await world.start('job');
    const { context } = await world.call(1);
    await world.clock.advance(59_000);
    expect(context.signal.aborted).toBe(false);
    const ended = await world.reaches(id, 'ENDED', 5_000);
    expect(ended).toMatchObject({ reason: 'R_TIME_LIMIT', outcome: 'FAILED' });
    expect(String(context.signal.reason)).toMatch(/time limit/);
    expect((await world.lease(`kind:job:${id}`)).kind).toBe('free');
  });

  it('B-11 counts time limits and failures together', async () => {
    const world = kindWorld({ job: { timeLimit: '10s', tries: 2 } });
    await (await world.worker()).worker.start();
    const id = await world.start('job');
    const { context } = await world.call(2);
    expect(context.attempt).toBe(2);
    expect(context.signal.aborted).toBe(false);
    expect(await world.reaches(id, 'ENDED')).toMatchObject({ reason: 'R_TIME_LIMIT', failures: 1 });
    expect(world.calls).toHaveLength(2);
  });

  it.each([
    [1, 'R_WORKER_LOST', 1],
    [2, null, 2],
  ])('B-11 I-11 with %i tries, a lost worker counts as one', async (tries, reason, begun) => {
    const world = kindWorld({ job: { tries } });
    const dying = await world.worker({ ttl: '10s' });
    await dying.worker.start();
    const id = await world.start('job');
    await world.reaches(id, 'RUNNING');
    dying.faults.refuse = true;
    const other = await world.worker({ ttl: '10s' });
    await other.worker.start();
    const isOver = async () => {
      const { worker, state, losses } = await world.session(id);
      return worker === other.instanceId && losses === 1 && (state === 'ENDED' || begun === 2);
    };
    await world.until(isOver, 'the other worker has it');
    if (begun === 2) await world.call(2);
    expect(world.calls).toHaveLength(begun);
    expect((await world.session(id)).reason).toBe(reason);
  });

  it('B-11 a worker that stops costs no try', async () => {
    const world = kindWorld({ job: { tries: 1 } });
    const one = await world.worker();
    await one.worker.start();
    const id = await world.start('job');
    await world.call(1);
    const stopping = one.worker.stop();
    const two = await world.worker();
    await two.worker.start();
    await stopping;
    const { context, end } = await world.call(2);
    expect(context.attempt).toBe(1);
    end();
    expect(await world.reaches(id, 'ENDED')).toMatchObject({ reason: 'R_PIPELINE_ENDED' });
  });
});

it('B-11 a command is given its params as JSON, and never as arguments', async () => {
  const world = kindWorld({ job: { run: { command: ['./job.sh', 'fixed'] } } });
  const commands = new FakeCommands();
  await (await world.worker({}, {}, commands)).worker.start();
  const params = { name: '$(touch x)' };
  const id = await world.start('job', { key: 'k;k', params });
  await world.reaches(id, 'RUNNING');
  expect(commands.order).toMatchObject({
    command: ['./job.sh', 'fixed'],
    params: JSON.stringify(params),
    env: { HOLDFAST_SESSION_KIND: 'job', HOLDFAST_SESSION_KEY: 'k;k', HOLDFAST_ATTEMPT: '1' },
  });
  expect(Number(commands.order?.env.HOLDFAST_FENCE)).toBeGreaterThan(0);
});
