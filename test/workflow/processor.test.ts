import { describe, expect, it } from 'vitest';
import type { EventName, Events } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { open } from '../../src/holdfast.ts';
import type { Store } from '../../src/store/port/store.ts';
import type { HandlerContext } from '../../src/workflow/attempt.ts';
import { StepFailedError } from '../../src/workflow/errors.ts';
import type { Processor } from '../../src/workflow/processor.ts';
import type { ProcessorOptions } from '../../src/workflow/processor-options.ts';
import type { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { world as leaseWorld } from '../support/world.ts';
import '../../src/store/memory/tables.ts';

const TO = { target: 't' };
const CALL = { timeoutMs: 1_000 };
const CLAIM_MS = 30_000;
type Step = (payload: unknown, context: HandlerContext) => unknown;

/** An orchestrator of workflow `w`, and a processor of its actions in another process. */
const working = async (STEP: Step, more: Partial<ProcessorOptions> = {}) => {
  const { clock, store, actor } = leaseWorld();
  const [one, two] = [await actor(), await actor()];
  const wf = await one.holdfast.workflows.claim('w');
  const options = { name: 't', role: 'effect' as const, handlers: { STEP }, ...more };
  const processor = two.holdfast.processor(options);
  const told: { name: string; [fact: string]: unknown }[] = [];
  const names: EventName[] = [
    ...(['action.started', 'action.done', 'action.failed', 'action.gone'] as const),
    'action.stuck',
    ...(['processor.stalled', 'processor.resumed', 'workflow.violation'] as const),
  ];
  for (const name of names)
    two.holdfast.on(name, (facts: Events[typeof name]) => told.push({ ...facts, name }));
  return { clock, store, actor, one, two, wf, processor, options, told };
};

/** Goes on until told to stop, like most that take long. */
const endless: Step = (_, { signal }) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });

const never: Step = () => new Promise(() => {});

/** Stops it, whatever its handlers do. */
const stopped = async (clock: FakeClock, processor: { stop: Processor['stop'] }) => {
  const stopping = processor.stop({ within: 10 });
  await clock.advance(100);
  await stopping;
};

const facts = (told: readonly object[]) =>
  told.map((each) => {
    const { name, tries, retryInMs, why } = each as Record<string, unknown>;
    return [name, tries, ...(why === undefined ? [] : [why, retryInMs])];
  });

describe('one attempt of a Processor', () => {
  it('W-05 a handler gets the facts of its action and the number of the try', async () => {
    const seen: HandlerContext[] = [];
    const { wf, processor } = await working((_, context) => seen.push(context));
    const action = await wf.emit('STEP', 1, TO);
    await processor.process(action);
    expect(seen).toMatchObject([
      {
        ...{ epoch: 0, actionId: action.action_id, idempotencyKey: action.action_id, tries: 1 },
        ...{ workflowId: 'w', fence: expect.any(Number), signal: { aborted: false } },
      },
    ]);
    expect(() => seen[0]?.assertHeld()).not.toThrow();
  });

  it('W-13 a failed action is tried again after pauses that double, and then is dead', async () => {
    const at: number[] = [];
    const { wf, processor, clock, told } = await working(
      () => {
        at.push(clock.monotonicMs());
        throw new Error('no');
      },
      { tries: 4, backoff: 1_000 },
    );
    await wf.emit('STEP', 1, TO);
    await processor.start();
    await clock.advance(20_000);
    const pauses = at.slice(1).map((ms, i) => Math.round((ms - (at[i] ?? 0)) / 100));
    expect(at).toHaveLength(4);
    for (const [i, most] of [10, 20, 40].entries()) {
      expect(pauses[i]).toBeLessThanOrEqual(most);
      expect(pauses[i]).toBeGreaterThanOrEqual(most * 0.9);
    }
    expect(told.at(-1)).toMatchObject({ name: 'action.failed', isDead: true, retryInMs: null });
    await processor.stop();
  });

  it('W-13 an action that fails permanently is not tried again, and is no dead letter', async () => {
    const { wf, processor, one } = await working(() => {
      throw new StepFailedError('the card was refused', { code: 51, big: 10n });
    });
    const result = await processor.process(await wf.emit('STEP', 1, TO));
    expect(result).toMatchObject({
      ...{ success: false, is_dead: false },
      error: { name: 'StepFailedError', message: 'the card was refused' },
    });
    expect((await one.holdfast.workflows.deadLetters.list().next()).done).toBe(true);
    const other = await wf.emit('OTHER', 1, TO);
    expect((await processor.process(other)).error?.message).toContain(
      "no handler for action type 'OTHER'",
    );
  });

  it('W-13 a handler is asked to stop after the timeout of its action, or of its processor', async () => {
    const { wf, processor, clock, told } = await working(endless, { timeout: '5s', tries: 2 });
    await wf.emit('STEP', 1, TO);
    await processor.start();
    await clock.advance(6_000);
    await stopped(clock, processor);
    const { wf: own, processor: other, clock: its } = await working(endless, { tries: 1 });
    const action = await own.emit('STEP', 1, { ...TO, timeout: '2s' });
    const outcome = other.process(action);
    await its.advance(2_000);
    expect((await outcome).error?.message).toBe('its handler took longer than 2000 ms');
    expect(facts(told).slice(0, 3)).toEqual([
      ['action.started', 1],
      ['action.failed', 1, 'its handler took longer than 5000 ms', expect.any(Number)],
      ['action.started', 2],
    ]);
  });

  it('W-13 the claim of a handler that does not stop is not extended, and another process gets the action', async () => {
    const { wf, processor, clock, two, store, told } = await working(never, { timeout: '5s' });
    await wf.emit('STEP', 1, TO);
    await processor.start();
    await clock.advance(CLAIM_MS + 10_000);
    const other = two.holdfast.processor({
      ...{ name: 't', role: 'effect', handlers: { STEP: () => 'done' } },
    });
    await stopped(clock, processor);
    await other.start();
    await clock.advance(CLAIM_MS + 10_000);
    expect((await store.workflows.read(['w'], CALL))[0]).toMatchObject({
      unresolved: 0,
      unread: 1,
    });
    expect(told.filter(({ name }) => name === 'action.done')).toHaveLength(1);
    await other.stop();
  });

  it('W-05 the claim of a handler that was asked to stop is not extended: the action is tried again when it has expired', async () => {
    const at: number[] = [];
    const { wf, processor, clock } = await working(
      () => {
        at.push(clock.monotonicMs());
        return new Promise(() => {});
      },
      { timeout: '5s' },
    );
    await wf.emit('STEP', 1, TO);
    await processor.start();
    await clock.advance(2 * CLAIM_MS - 1_000);
    expect(at).toHaveLength(2);
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeLessThanOrEqual(CLAIM_MS + 1_000);
    await stopped(clock, processor);
  });

  it('W-13 a handler that hangs is reported and gives up its place, and its action ends as a dead letter', async () => {
    const { wf, processor, clock, one, told } = await working(
      (payload) => (payload === 'hang' ? new Promise(() => {}) : 'fine'),
      { concurrency: 1, claim: '1s', timeout: '500ms', tries: 3 },
    );
    const hung = await wf.emit('STEP', 'hang', TO);
    await processor.start();
    const other = await one.holdfast.workflows.claim('v');
    await clock.advance(100);
    const fine = await other.emit('STEP', 'fine', TO);
    // Its claim was extended once, after a third of it, before its time was over.
    await clock.advance(1_300);
    expect(told[1]).toMatchObject({ name: 'action.stuck', action: hung.action_id, tries: 1 });
    expect(told[1]?.runsForMs).toBeGreaterThanOrEqual(1_000);
    await clock.advance(10_000);
    expect(told.filter(({ name }) => name === 'action.stuck')).toHaveLength(3);
    expect(await wf.result(hung.action_id)).toMatchObject({ is_dead: true });
    expect(await other.result(fine.action_id)).toMatchObject({ value: 'fine' });
    expect(processor.running).toBe(0);
    await processor.stop();
  });

  it('W-13 a stuck handler that ends at last has no place to leave', async () => {
    const started: unknown[] = [];
    let end = (): void => {};
    const { wf, processor, clock, one } = await working(
      (payload) => {
        started.push(payload);
        return new Promise<void>((resolve) => {
          if (payload === 'stuck') end = resolve;
        });
      },
      { concurrency: 1, claim: '1s', timeout: '500ms', tries: 1 },
    );
    await wf.emit('STEP', 'stuck', TO);
    await processor.start();
    await clock.advance(100);
    for (const id of ['long', 'waiting']) {
      const other = await one.holdfast.workflows.claim(id);
      await other.emit('STEP', id, { ...TO, timeout: '1h' });
    }
    await clock.advance(2_000);
    expect([started, processor.running]).toEqual([['stuck', 'long'], 1]);
    end();
    await clock.advance(2_000);
    expect([started, processor.running]).toEqual([['stuck', 'long'], 1]);
    await stopped(clock, processor);
  });

  it('W-13 the result of a handler that was stuck does not count if another try has begun', async () => {
    const finish: ((value: unknown) => void)[] = [];
    const { wf, processor, clock, told } = await working(
      () => new Promise((resolve) => finish.push(resolve)),
      { concurrency: 1, claim: '1s', timeout: '500ms' },
    );
    const action = await wf.emit('STEP', 1, TO);
    await processor.start();
    await clock.advance(1_400);
    expect([finish.length, processor.running]).toEqual([2, 1]);
    finish[0]?.('late');
    await clock.advance(10);
    expect(told.at(-1)).toMatchObject({ name: 'action.gone', action: action.action_id });
    finish[1]?.('in time');
    await clock.advance(10);
    expect(await wf.result(action.action_id)).toMatchObject({ value: 'in time' });
    await processor.stop();
  });

  it('W-05 the claim of a long handler is extended while it runs', async () => {
    let finish = () => {};
    const { wf, processor, clock, actor, told } = await working(
      () =>
        new Promise<void>((resolve) => {
          finish = resolve;
        }),
      { timeout: '1h' },
    );
    await wf.emit('STEP', 1, TO);
    await processor.start();
    const third = await actor();
    const other = third.holdfast.processor({
      ...{ name: 't', role: 'effect', handlers: { STEP: () => 'stolen' } },
    });
    await other.start();
    await clock.advance(20 * CLAIM_MS);
    expect([processor.running, other.running]).toEqual([1, 0]);
    finish();
    await clock.advance(100);
    expect(told.map(({ name }) => name)).toEqual(['action.started', 'action.done']);
    await Promise.all([processor.stop(), other.stop()]);
  });

  it('W-05 a claim ends here before the store gives the action to another process, and the handler can see it', async () => {
    let context: HandlerContext | undefined;
    let stoppedMs = 0;
    const { wf, processor, clock, two, actor } = await working(
      (_, its) => {
        context = its;
        its.signal.addEventListener('abort', () => {
          stoppedMs = clock.monotonicMs();
        });
        return new Promise(() => {});
      },
      { timeout: '1h' },
    );
    await wf.emit('STEP', 1, TO);
    await processor.start();
    const tookMs = clock.monotonicMs();
    const third = await actor();
    const taken: number[] = [];
    const other = third.holdfast.processor({
      ...{ name: 't', role: 'effect', handlers: { STEP: () => taken.push(clock.monotonicMs()) } },
    });
    await other.start();
    two.faults.hang = true;
    await clock.advance(CLAIM_MS * 2);
    expect(stoppedMs - tookMs).toBe(CLAIM_MS * 0.95);
    expect(taken[0]).toBeGreaterThan(stoppedMs);
    expect(() => context?.assertHeld()).toThrow('its claim has expired');
    two.faults.hang = false;
    await other.stop();
  });

  it('W-11 the next extension tells a handler that its action was dropped by a revocation', async () => {
    const { wf, processor, clock, one, told } = await working(endless, { timeout: '1h' });
    await wf.emit('STEP', 1, TO);
    await processor.start();
    const { workflows } = one.holdfast;
    await workflows.revokeLease(wf.leaseId, 'a test');
    expect((await workflows.claim('w')).dropped).toHaveLength(1);
    expect(processor.running).toBe(1);
    await clock.advance(CLAIM_MS / 3 + 100);
    expect(processor.running).toBe(0);
    expect(told.map(({ name }) => name)).toEqual(['action.started', 'action.gone']);
    await processor.stop();
  });
});

describe('failures that a Processor survives', () => {
  it('W-13 a result that is no JSON fails its own action only', async () => {
    const { wf, processor, one, clock } = await working((payload) =>
      payload === 'big' ? { big: 10n } : 'fine',
    );
    const other = await one.holdfast.workflows.claim('v');
    const [bad, good] = [await wf.emit('STEP', 'big', TO), await other.emit('STEP', 1, TO)];
    await processor.start();
    await clock.advance(100);
    expect(await wf.result(bad.action_id)).toMatchObject({
      ...{ success: false, error: { name: 'ActionInvalidError' } },
    });
    expect(await other.result(good.action_id)).toMatchObject({ value: 'fine' });
    await processor.stop();
  });

  it('W-13 a handler may throw any value', async () => {
    const thrown = [null, undefined, 'text', 7, Object.create(null), { a: 1 }];
    const { wf, processor } = await working((i) => Promise.reject(thrown[i as number]), {
      tries: 1,
    });
    for (const [i] of thrown.entries()) {
      const result = await processor.process(await wf.emit('STEP', i, TO));
      expect(result).toMatchObject({ is_dead: true, error: { message: expect.any(String) } });
    }
  });

  it('W-13 an action that cannot be read fails, and the actions taken with it are executed', async () => {
    const { wf, processor, one, clock, store } = await working(() => 'fine');
    const step = { leaseId: wf.leaseId, epoch: 0, read: [] };
    const actions = [{ id: 'garbled', target: 't', priority: 9, body: '{"no' }];
    await store.workflows.emit('w', { ...step, actions }, CALL);
    const other = await one.holdfast.workflows.claim('v');
    const good = await other.emit('STEP', 1, TO);
    await processor.start();
    await clock.advance(100);
    expect(await store.workflows.resultOf('w', 'garbled', CALL)).toMatchObject({
      ...{ outcome: 'failed', value: { name: 'ActionInvalidError' } },
    });
    expect(await other.result(good.action_id)).toMatchObject({ value: 'fine' });
    await processor.stop();
  });

  it('W-13 an entry that is no action becomes a dead letter that can be dropped', async () => {
    const { processor, clock, store, one } = await working(() => 'fine');
    const foreign = { lane: 'w', priority: 5, value: { not: 'ours' } };
    await store.streams.append('action:t', [foreign], CALL);
    await processor.start();
    await clock.advance(100);
    const { deadLetters } = one.holdfast.workflows;
    const { value: letter } = await deadLetters.list().next();
    expect(letter).toMatchObject({
      workflow: 'w',
      action: null,
      reason: 'no action of a workflow',
    });
    expect(await deadLetters.retry(letter?.id ?? '')).toBe(null);
    expect(await deadLetters.drop(letter?.id ?? '')).toBe(true);
    await processor.stop();
  });

  it('W-13 an action whose tries all ended without a result is dead without another try', async () => {
    let runs = 0;
    const { wf, processor, clock, store, one } = await working(() => ++runs, { tries: 2 });
    await wf.emit('STEP', 1, TO);
    for (const consumer of ['x', 'y']) {
      const call = { ...CALL, consumer, most: 1, claimMs: CLAIM_MS };
      expect(await store.workflows.take('t', call)).toHaveLength(1);
      await clock.advance(CLAIM_MS);
    }
    await processor.start();
    await clock.advance(2_000);
    expect(runs).toBe(0);
    const { value } = await one.holdfast.workflows.deadLetters.list('t').next();
    expect(value?.reason).toBe('2 attempts ended without reporting a result');
    await processor.stop();
  });
});

describe('Processor', () => {
  it('W-13 a processor continues automatically after the store was unavailable, and reports both once', async () => {
    const { wf, processor, clock, two, told } = await working(() => 'done');
    await processor.start();
    two.faults.refuse = true;
    await clock.advance(20_000);
    await wf.emit('STEP', 1, TO);
    two.faults.refuse = false;
    await clock.advance(6_000);
    expect(told.filter(({ name }) => name === 'processor.stalled')).toHaveLength(1);
    expect(told.filter(({ name }) => name === 'action.done')).toHaveLength(1);
    await processor.stop();
  });

  it('W-13 without hints, a processor polls every second', async () => {
    const { clock, store, actor } = leaseWorld();
    const deaf: Store = {
      ...store,
      signals: { publish: async () => {}, subscribe: async () => () => {} } as never,
    };
    const holdfast = await open(deaf, { clock, random: seededRandom(9), name: 'deaf' });
    const wf = await (await actor()).holdfast.workflows.claim('w');
    const at: number[] = [];
    const processor = holdfast.processor({
      ...{ name: 't', role: 'effect', handlers: { STEP: () => at.push(clock.monotonicMs()) } },
    });
    await processor.start();
    await clock.advance(100);
    await wf.emit('STEP', 1, TO);
    const emittedMs = clock.monotonicMs();
    await clock.advance(2_000);
    expect((at[0] ?? Number.POSITIVE_INFINITY) - emittedMs).toBeLessThanOrEqual(1_000);
    await processor.stop();
  });

  it('W-05 a workflow has one action under way at a time, in the order of epochs; priority orders workflows', async () => {
    const order: unknown[] = [];
    let running = 0;
    let most = 0;
    const { wf, processor, one, clock } = await working(
      async (payload) => {
        order.push(payload);
        most = Math.max(most, ++running);
        await clock.sleep(10);
        running--;
      },
      { concurrency: 1 },
    );
    const urgent = await one.holdfast.workflows.claim('urgent');
    await wf.emit('STEP', 'low 0', { ...TO, priority: 1 });
    await wf.emit('STEP', 'low 1', { ...TO, priority: 10 });
    await urgent.emit('STEP', 'high 0', { ...TO, priority: 9 });
    await processor.start();
    await clock.advance(1_000);
    expect(order).toEqual(['high 0', 'low 0', 'low 1']);
    expect(most).toBe(1);
    await processor.stop();
  });

  it('W-13 the places of handlers that have ended are filled while the store is told their outcomes', async () => {
    const { wf, one, store, clock } = await working(() => null);
    for (const id of ['b', 'c', 'd'])
      await (await one.holdfast.workflows.claim(id)).emit('STEP', 1, TO);
    await wf.emit('STEP', 1, TO);
    const calls: string[] = [];
    const { workflows } = store;
    const logged = Object.assign(Object.create(workflows) as typeof workflows, {
      take: async (...args: Parameters<typeof workflows.take>) => {
        calls.push('take');
        const taken = await workflows.take(...args);
        calls.push(`took ${taken.length}`);
        return taken;
      },
      settle: async (...args: Parameters<typeof workflows.settle>) => {
        calls.push(`settle ${args[1].length}`);
        const replies = await workflows.settle(...args);
        calls.push('settled');
        return replies;
      },
    });
    const shown = { ...store, workflows: logged };
    const holdfast = await open(shown, { clock, random: seededRandom(9), name: 'busy' });
    const handlers = { STEP: () => null };
    const processor = holdfast.processor({ name: 't', role: 'effect', handlers, concurrency: 2 });
    await processor.start();
    await clock.advance(100);
    expect(calls.slice(0, 4)).toEqual(['take', 'took 2', 'settle 2', 'take']);
    expect(calls.slice(4, 6).sort()).toEqual(['settled', 'took 2']);
    await processor.stop();
    await holdfast.close();
  });

  it('W-13 a processor that stops takes no new actions, lets handlers finish, and then asks them to stop', async () => {
    const { wf, processor, clock, one, store } = await working(endless, { timeout: '1h' });
    await wf.emit('STEP', 1, TO);
    await processor.start();
    const stopping = processor.stop({ within: '2s' });
    const other = await one.holdfast.workflows.claim('v');
    await other.emit('STEP', 2, TO);
    await clock.advance(1_999);
    expect([processor.state, processor.running]).toEqual(['stopping', 1]);
    await clock.advance(100);
    await stopping;
    expect([processor.state, processor.running]).toEqual(['stopped', 0]);
    const call = { ...CALL, consumer: 'x', most: 9, claimMs: CLAIM_MS };
    const left = await store.workflows.take('t', call);
    expect(left.map((taken) => 'tries' in taken && taken.tries).sort()).toEqual([1, 2]);
  });

  it('W-13 a handler that its stopping processor asks to stop does not use up a try', async () => {
    const { wf, processor, clock, store, told } = await working(endless, {
      ...{ timeout: '1h', tries: 1 },
    });
    await wf.emit('STEP', 1, TO);
    await processor.start();
    await stopped(clock, processor);
    expect(told.at(-1)).toMatchObject({ name: 'action.failed', retryInMs: 0, isDead: false });
    const [snapshot] = await store.workflows.read(['w'], CALL);
    expect(snapshot).toMatchObject({ unresolved: 1, unread: 0 });
  });

  it('W-13 a processor that is stopped while it takes actions gives them back', async () => {
    let runs = 0;
    const { wf, clock, store, options, two } = await working(() => ++runs);
    await wf.emit('STEP', 1, TO);
    const processor = two.holdfast.processor(options);
    const starting = processor.start();
    const stopping = processor.stop();
    await clock.advance(100);
    await Promise.all([starting, stopping]);
    expect([runs, processor.running, processor.state]).toEqual([0, 0, 'stopped']);
    const call = { ...CALL, consumer: 'x', most: 1, claimMs: CLAIM_MS };
    expect(await store.workflows.take('t', call)).toHaveLength(1);
  });

  it('W-12 a processor counts violations by code, and reports each with all its facts', async () => {
    const { wf, processor, told } = await working(() => 1);
    const action = await wf.emit('STEP', 1, TO);
    const { action_id: id } = action;
    const other = '00000000-0000-4000-8000-00000000000a';
    for (const change of [{ lease_id: other }, { epoch: 1 }, { action_id: other }])
      await processor.process({ ...action, ...change }).catch(() => {});
    expect(processor.violations).toEqual({ LEASE_VIOLATION: 1, FUTURE_EPOCH: 1, STALE_EPOCH: 1 });
    const common = { name: 'workflow.violation', workflow: 'w' };
    const none = {
      expectedLease: null,
      receivedLease: null,
      actionEpoch: null,
      currentEpoch: null,
    };
    expect(told).toEqual([
      {
        ...{ ...common, ...none, code: 'LEASE_VIOLATION', action: id },
        ...{ expectedLease: wf.leaseId, receivedLease: other },
      },
      { ...common, ...none, code: 'FUTURE_EPOCH', action: id, actionEpoch: 1, currentEpoch: 1 },
      { ...common, ...none, code: 'STALE_EPOCH', action: other, actionEpoch: 0, currentEpoch: 1 },
    ]);
  });

  it('W-04 validateAction checks the lease, then the epoch, and changes nothing', async () => {
    let runs = 0;
    const { wf, processor } = await working(() => runs++);
    const action = await wf.emit('STEP', 1, TO);
    const other = { ...action, lease_id: '5b2a9f0e-4a3a-4f0f-9a52-3d5a3f1f8f11', epoch: 9 };
    expect(await processor.validateAction(action)).toBe(true);
    expect(await processor.validateAction(action)).toBe(true);
    await expect(processor.validateAction(other)).rejects.toMatchObject({
      code: 'LEASE_VIOLATION',
      context: { expected_lease: wf.leaseId, received_lease: other.lease_id },
    });
    await expect(processor.validateAction({ ...action, epoch: 9 })).rejects.toMatchObject({
      code: 'FUTURE_EPOCH',
    });
    expect(runs).toBe(0);
    await processor.process(action);
    expect(await processor.validateAction(action)).toBe(true);
    expect([runs, processor.violations]).toEqual([1, { LEASE_VIOLATION: 1, FUTURE_EPOCH: 1 }]);
  });

  it('W-04 invalid options are refused when a processor is created', async () => {
    const { two } = await working(() => 1);
    const good = { name: 't', role: 'effect', handlers: { STEP: () => 1 } };
    const bad = [
      { ...good, name: 'a b' },
      { ...good, role: 'boss' },
      { ...good, handlers: {} },
      { ...good, handlers: { STEP: 'later' } },
      { ...good, handlers: undefined },
      { ...good, concurrency: 0 },
      { ...good, concurrency: 1.5 },
      { ...good, tries: 0 },
      { ...good, claim: 999 },
      { ...good, timeout: 'soon' },
      { ...good, backoff: -1 },
      { ...good, colour: 'red' },
    ];
    for (const options of bad)
      expect(() => two.holdfast.processor(options as never)).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID' }),
      );
    const processor = two.holdfast.processor(good as never);
    await expect(processor.process({ lease_id: 'x' })).rejects.toMatchObject({
      code: 'ACTION_INVALID',
    });
  });
});
