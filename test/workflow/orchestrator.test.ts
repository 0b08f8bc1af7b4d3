import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { open } from '../../src/holdfast.ts';
import type { ActionResult } from '../../src/workflow/action.ts';
import type { Orchestrator } from '../../src/workflow/orchestrator.ts';
import { inMemory, LONG_MS } from '../support/workflow-world.ts';
import { world as leaseWorld } from '../support/world.ts';

const TO = { target: 't' };
const CALL = { timeoutMs: 1_000 };
const A = '00000000-0000-4000-8000-00000000000a';

/** One actor that holds workflow `w`, for as long as the default TTL has it. */
const held = async (options: { ttl?: number | string } = {}) => {
  const { clock, store, actor } = leaseWorld();
  const one = await actor();
  const wf = await one.holdfast.workflows.claim('w', options);
  return { clock, store, actor, one, wf };
};

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'fine',
    (error: { code?: string }) => error.code ?? error,
  );

const thrownBy = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return error;
  }
};

describe('steps of an Orchestrator', () => {
  it('W-02 actions that are emitted at once get epochs in the order of the calls', async () => {
    const { wf } = await held();
    const payloads = Array.from({ length: 250 }, (_, i) => i);
    const all = await Promise.all(payloads.map((payload) => wf.emit('STEP', payload, TO)));
    expect(all.map(({ epoch, payload }) => [epoch, payload])).toEqual(payloads.map((i) => [i, i]));
    expect(wf.epoch).toBe(250);
  });

  it('W-02 an action that the store knows does not make it refuse actions emitted with it', async () => {
    const { wf } = await held();
    const first = await wf.emit('STEP', 'known', { ...TO, actionId: A });
    const all = await Promise.all([
      ...[wf.emit('STEP', 'a', TO), wf.emit('STEP', 'known', { ...TO, actionId: A })],
      ...[wf.emit('STEP', 'known', { ...TO, actionId: A }), wf.emit('STEP', 'b', TO)],
    ]);
    expect(all.map(({ epoch }) => epoch)).toEqual([1, first.epoch, first.epoch, 2]);
    expect(wf.epoch).toBe(3);
  });

  it('W-02 W-03 concurrent emits and updates each get an epoch of their own', async () => {
    const { wf, store } = await held();
    const [a, , b] = await Promise.all([
      wf.emit('STEP', 1, TO),
      wf.updateState('between'),
      wf.emit('STEP', 2, TO),
    ]);
    expect([a.epoch, b.epoch, wf.epoch, wf.state]).toEqual([0, 2, 3, 'between']);
    const { entries } = await store.workflows.history('w', CALL);
    expect(entries.map(({ what, epoch }) => [what.kind, epoch])).toEqual([
      ...[
        ['claimed', 0],
        ['emitted', 1],
        ['updated', 2],
        ['emitted', 3],
      ],
    ]);
  });

  it('W-02 no epoch is used twice or skipped when requests or answers are lost', async () => {
    const { wf, one, clock, store } = await held();
    for (const fault of ['loseReplies', 'hang', 'loseReplies'] as const) {
      one.faults[fault] = true;
      const emitting = wf.emit('STEP', fault, TO);
      await clock.advance(4_000);
      one.faults[fault] = false;
      await clock.advance(5_000);
      await emitting;
    }
    one.faults.refuse = true;
    expect(await codeOf(wf.emit('STEP', 'never', TO))).toBe('STORE_UNREACHABLE');
    one.faults.refuse = false;
    expect((await wf.emit('STEP', 'last', TO)).epoch).toBe(3);
    const { entries } = await store.workflows.history('w', CALL);
    const emitted = entries.filter(({ what }) => what.kind === 'emitted');
    expect(emitted.map(({ epoch }) => epoch)).toEqual([1, 2, 3, 4]);
  });

  it('W-02 an emit without an answer fails with OUTCOME_UNKNOWN after a while, and the next step reads the workflow first', async () => {
    const { wf, one, clock } = await held();
    one.faults.loseReplies = true;
    const emitting = codeOf(wf.emit('STEP', 1, TO));
    await clock.advance(40_000);
    expect(await emitting).toBe('OUTCOME_UNKNOWN');
    one.faults.loseReplies = false;
    expect((await wf.emit('STEP', 2, TO)).epoch).toBe(1);
  });

  it('W-02 W-08 an emit that may have succeeded before the lease expired is not reported as refused', async () => {
    const { wf, one, clock } = await held({ ttl: 12_000 });
    one.faults.loseReplies = true;
    const emitting = codeOf(wf.emit('STEP', 1, TO));
    await clock.advance(20_000);
    expect(await emitting).toBe('OUTCOME_UNKNOWN');
    expect(wf.isExpired()).toBe(true);
    expect(await codeOf(wf.emit('STEP', 2, TO))).toBe('LEASE_EXPIRED');
  });

  it('W-03 refresh does not undo a step that is under way', async () => {
    const { wf } = await held();
    const [action] = await Promise.all([wf.emit('STEP', 1, TO), wf.refresh(), wf.refresh()]);
    expect([action.epoch, wf.epoch]).toEqual([0, 1]);
    expect((await wf.emit('STEP', 2, TO)).epoch).toBe(1);
  });

  it('W-01 if the store has lost the tenure and kept the lease, the tenure ends and the workflow is free', async () => {
    const { clock, store, actor } = leaseWorld();
    const two = await actor();
    const { workflows } = store;
    const forgetful = new Proxy(workflows, {
      get: (_, verb) =>
        verb === 'emit'
          ? async () => ({ kind: 'not-held', leaseId: null })
          : Reflect.get(workflows, verb),
    });
    const random = seededRandom(9);
    const one = await open({ ...store, workflows: forgetful }, { clock, random });
    const wf = await one.workflows.claim('w');
    expect(await codeOf(wf.emit('STEP', 1, TO))).toBe('LEASE_VIOLATION');
    await clock.advance(10);
    expect(wf.signal.aborted).toBe(true);
    expect((await two.holdfast.workflows.claim('w')).leaseId).not.toBe(wf.leaseId);
  });

  it('W-01 close releases workflows, and waits for a store that hangs no longer than it may', async () => {
    const { clock, actor, one } = await held();
    const two = await actor();
    await one.holdfast.close();
    const wf = await two.holdfast.workflows.claim('w');
    two.faults.hang = true;
    let isClosed = false;
    void two.holdfast.close({ within: '1s' }).then(() => {
      isClosed = true;
    });
    // A second for workflows, one for leases, and two for answers that may still come.
    await clock.advance(4_100);
    expect([isClosed, wf.signal.aborted]).toEqual([true, true]);
  });

  it('W-03 a state that is no JSON is refused, and nothing is written', async () => {
    const { wf } = await held();
    for (const state of [10n, () => 1, Symbol('s')])
      expect(await codeOf(wf.updateState(state))).toBe('CONFIG_INVALID');
    expect([wf.epoch, wf.state]).toEqual([0, 'initialized']);
    const state = { list: [1] };
    await wf.updateState(state);
    state.list.push(2);
    expect(wf.state).toEqual({ list: [1] });
    await wf.updateState(undefined);
    expect(wf.state).toBe(null);
  });

  it('W-02 a workflow with a thousand actions without a result takes no more', async () => {
    const { wf } = await held();
    await Promise.all(Array.from({ length: 1_000 }, (_, i) => wf.emit('STEP', i, TO)));
    await expect(wf.emit('STEP', 'more', TO)).rejects.toMatchObject({
      ...{ code: 'WORKFLOW_FULL', limit: 'unresolved', unresolved: 1_000, unread: 0 },
      message: expect.stringContaining('at most 1000 actions may be without a result'),
    });
    expect(wf.epoch).toBe(1_000);
  });

  it('W-02 a workflow with ten thousand unread results takes no more actions until they are read', async () => {
    const { wf, store } = await held();
    const targets = Array.from({ length: 100 }, (_, n) => `t${n}`);
    const doNext = async (target: string) => {
      const how = { ...CALL, consumer: 'c', most: 1, claimMs: LONG_MS };
      const [taken] = await store.workflows.take(target, how);
      if (taken?.kind !== 'reserved') throw new Error('nothing to take');
      const { workflow, fence } = taken;
      const outcome = { workflow, fence, outcome: 'succeeded', value: 1 } as const;
      await store.workflows.settle(target, [outcome], CALL);
    };
    for (let round = 0; round < 10; round++) {
      const all = Array.from({ length: 10 }, () => targets).flat();
      await Promise.all(all.map((target) => wf.emit('STEP', round, { target })));
      for (const target of all) await doNext(target);
    }
    await expect(wf.emit('STEP', 'more', TO)).rejects.toMatchObject({
      ...{ code: 'WORKFLOW_FULL', limit: 'unread', unresolved: 0, unread: 10_000 },
      message: expect.stringMatching(/at most 10000.*for await \(const result of .*results\(\)\)/),
    });
    expect(wf.epoch).toBe(10_000);
    let read = 0;
    for await (const { success } of wf.results()) if (success && ++read === 10_000) break;
    await wf.emit('STEP', 'more', TO);
    await wf.release();
    const [found] = await store.workflows.read(['w'], CALL);
    expect(found).toMatchObject({ epoch: 10_001, unresolved: 1, unread: 0 });
  });
});

describe('results of an Orchestrator', () => {
  const working = async () => {
    const { wf, one, clock, actor } = await held();
    const processor = one.holdfast.processor({
      ...{ name: 't', role: 'compute' },
      handlers: {
        STEP: (payload) => {
          if (payload === 'bad') throw new RangeError('bad');
          return payload;
        },
      },
      tries: 1,
    });
    return { wf, one, clock, actor, processor };
  };

  it('W-03 a result has the outcome of its action, and handleResult sets the state from it', async () => {
    const { wf, processor } = await working();
    const [good, bad] = [await wf.emit('STEP', 'good', TO), await wf.emit('STEP', 'bad', TO)];
    await wf.handleResult(await processor.process(good));
    expect(wf.state).toBe('step_completed');
    const failed = await processor.process(bad);
    expect(failed).toMatchObject({
      ...{ success: false, is_dead: true, value: null, epoch: 1 },
      error: { name: 'RangeError', message: 'bad', details: null },
    });
    await wf.handleResult(failed);
    expect([wf.state, wf.epoch]).toEqual(['step_failed', 4]);
  });

  it('W-13 each caller of result() gets it, even if others read all results or ask for the same one', async () => {
    const { wf, processor, clock } = await working();
    const actions = await Promise.all([1, 2].map((i) => wf.emit('STEP', i, TO)));
    const read: ActionResult[] = [];
    const reading = (async () => {
      for await (const result of wf.results()) read.push(result);
    })();
    reading.catch(() => {});
    const ids = actions.map(({ action_id }) => action_id);
    const asked = Promise.all([...ids, ...ids].map((id) => wf.result(id)));
    await clock.advance(0);
    await processor.start();
    await clock.advance(100);
    expect((await asked).map(({ value }) => value)).toEqual([1, 2, 1, 2]);
    expect(read.length).toBeLessThanOrEqual(2);
    await processor.stop();
  });

  it('W-13 the store is told of all read results, in several requests if there are many', async () => {
    const { wf, processor, one } = await working();
    const actions = await Promise.all(
      Array.from({ length: 600 }, (_, i) => wf.emit('STEP', i, TO)),
    );
    for (const action of actions) await processor.process(action);
    const all = wf.results();
    for (const _ of actions) await all.next();
    const unread = async () => (await one.holdfast.workflows.get('w'))?.unread;
    expect(await unread()).toBe(600);
    await wf.updateState('read');
    expect(await unread()).toBe(100);
    await wf.release();
    expect(await unread()).toBe(0);
  });

  it('W-13 results() does not repeat a result that result() returned; it counts as read with the next step', async () => {
    const { wf, processor, one } = await working();
    const [a, b] = [await wf.emit('STEP', 'a', TO), await wf.emit('STEP', 'b', TO)];
    for (const action of [a, b]) await processor.process(action);
    expect(await wf.result(a.action_id)).toMatchObject({ value: 'a' });
    const all = wf.results();
    expect((await all.next()).value).toMatchObject({ value: 'b' });
    expect((await one.holdfast.workflows.get('w'))?.unread).toBe(2);
    await wf.updateState('read');
    expect((await one.holdfast.workflows.get('w'))?.unread).toBe(0);
  });

  it('W-13 a result is not handed out a second time after a failed read', async () => {
    const { wf, processor, one, clock } = await working();
    const [a, b] = [await wf.emit('STEP', 'a', TO), await wf.emit('STEP', 'b', TO)];
    for (const action of [a, b]) await processor.process(action);
    expect(await wf.result(a.action_id)).toMatchObject({ value: 'a' });
    one.faults.refuse = true;
    const first = wf.results().next();
    await clock.advance(100);
    one.faults.refuse = false;
    await clock.advance(3_000);
    expect((await first).value).toMatchObject({ value: 'b' });
  });

  it('W-13 emitting an action that the store knows also marks results as read', async () => {
    const { wf, processor, one } = await working();
    await processor.process(await wf.emit('STEP', 'a', { ...TO, actionId: A }));
    await wf.result(A);
    await wf.emit('STEP', 'a', { ...TO, actionId: A });
    expect((await one.holdfast.workflows.get('w'))?.unread).toBe(0);
  });

  it('W-13 release marks results as read that no step has marked', async () => {
    const { wf, processor, one } = await working();
    await processor.process(await wf.emit('STEP', 'a', TO));
    await wf.results().next();
    await wf.release();
    expect((await one.holdfast.workflows.get('w'))?.unread).toBe(0);
  });

  it('W-13 without hints, polling finds results, and revived actions are emitted again', async () => {
    const { clock, store, actor } = leaseWorld();
    const signals = { publish: async () => {}, subscribe: async () => () => {} };
    const deaf = await open({ ...store, signals }, { clock, random: seededRandom(9) });
    const wf = await deaf.workflows.claim('w');
    const { holdfast } = await actor();
    let isBroken = true;
    const processor = holdfast.processor({
      ...{ name: 't', role: 'compute', tries: 1 },
      handlers: {
        STEP: () => {
          if (isBroken) throw new Error('broken');
          return 'mended';
        },
      },
    });
    await processor.start();
    const read: ActionResult[] = [];
    const reading = (async () => {
      for await (const result of wf.results()) read.push(result);
    })();
    reading.catch(() => {});
    const action = await wf.emit('STEP', 1, TO);
    await clock.advance(3_000);
    isBroken = false;
    const { deadLetters } = holdfast.workflows;
    const { value: letter } = await deadLetters.list('t').next();
    await deadLetters.retry(letter?.id ?? '');
    await clock.advance(6_000);
    const { action_id } = action;
    expect(read).toMatchObject([
      { action_id, is_dead: true, epoch: 0 },
      { action_id, value: 'mended', epoch: 1 },
    ]);
    await processor.stop();
  });

  it('W-13 waiting for a result ends with the signal, or with the tenure', async () => {
    const { wf, clock } = await working();
    const controller = new AbortController();
    const mine = wf.result(A, { signal: controller.signal });
    const others = wf.results().next();
    const outcomes = Promise.allSettled([mine, others]);
    await clock.advance(0);
    controller.abort(new Error('enough'));
    await clock.advance(0);
    await wf.release();
    await clock.advance(0);
    expect(await outcomes).toMatchObject([
      { reason: { message: 'enough' } },
      { reason: { code: 'LEASE_LOST' } },
    ]);
    expect(clock.pendingTimers).toBeLessThan(5);
  });
});

describe('the lease of an Orchestrator', () => {
  it('W-08 a lease lasts 300 s by default, and is over at the moment at which no time is left', async () => {
    const { wf, one, clock } = await held();
    const violations: unknown[] = [];
    one.holdfast.on('workflow.violation', (facts) => violations.push(facts));
    // Five seconds before the store: the guard of the class.
    expect(wf.remainingTtl()).toBe(295);
    one.faults.refuse = true;
    await clock.advance(294_999);
    expect([wf.remainingTtl(), wf.isExpired()]).toEqual([0.001, false]);
    expect(wf.checkLeaseValidity()).toBe(undefined);
    await clock.advance(1);
    expect([wf.remainingTtl(), wf.isExpired()]).toEqual([0, true]);
    const { leaseId, acquiredAt } = wf;
    // Somebody sets the clock of the host: it was acquired when it was.
    clock.jumpWall(3_600_000);
    expect(acquiredAt.toISOString()).toBe('2026-01-01T00:00:00.000Z');
    expect(thrownBy(() => wf.checkLeaseValidity())).toMatchObject({
      code: 'LEASE_EXPIRED',
      context: { lease_id: leaseId, acquired_at: acquiredAt.toISOString(), ttl_seconds: 300 },
    });
    await clock.advance(1e6);
    expect(wf.remainingTtl()).toBe(0);
    one.faults.refuse = false;
    expect(await codeOf(wf.emit('STEP', 1, TO))).toBe('LEASE_EXPIRED');
    expect(violations).toEqual([
      {
        ...{ code: 'LEASE_EXPIRED', workflow: 'w', action: null, receivedLease: leaseId },
        ...{ expectedLease: null, actionEpoch: null, currentEpoch: null },
      },
    ]);
  });

  it('W-09 the lease of a long workflow is renewed automatically, and keeps its id', async () => {
    const { wf, clock, one } = await held();
    const { leaseId, fence } = wf;
    let renewals = 0;
    one.holdfast.on('lease.renewed', () => renewals++);
    await clock.advance(230_000);
    expect(renewals).toBe(0);
    await clock.advance(3_600_000);
    expect(renewals).toBeGreaterThan(14);
    expect(renewals).toBeLessThan(20);
    expect([wf.leaseId, wf.fence, wf.isExpired()]).toEqual([leaseId, fence, false]);
    expect((await wf.emit('STEP', 1, TO)).lease_id).toBe(leaseId);
  });

  it('W-09 renew() renews a lease only when less than a minute is left', async () => {
    const { wf, clock } = await held();
    expect(await wf.renew()).toBe(false);
    clock.block(236_000);
    expect(wf.remainingTtl()).toBe(59);
    expect(await wf.renew()).toBe(true);
    expect(wf.remainingTtl()).toBe(295);
    const short = await held({ ttl: 6_000 });
    expect(await short.wf.renew()).toBe(true);
  });

  it('W-09 a lease that has expired stays over: no renewal revives it, even if no other orchestrator has it', async () => {
    const { wf, one, clock, store } = await held({ ttl: 6_000 });
    one.faults.refuse = true;
    await clock.advance(10_000);
    one.faults.refuse = false;
    expect(await codeOf(wf.renew())).toBe('LEASE_EXPIRED');
    await clock.advance(10_000);
    expect(await store.leases.read(['workflow:lease:w'], CALL)).toMatchObject([{ kind: 'free' }]);
    expect(wf.signal.aborted).toBe(true);
  });

  it('W-12 an event reports every violation, with leases and epochs', async () => {
    const { wf, one } = await held();
    const violations: unknown[] = [];
    one.holdfast.on('workflow.violation', (facts) => violations.push(facts));
    const action = await wf.emit('STEP', 1, TO);
    const check = (value: unknown) => thrownBy(() => wf.validateAction(value));
    expect(check(action)).toMatchObject({
      code: 'STALE_EPOCH',
      context: { action_epoch: 0, current_epoch: 1, recommendation: expect.any(String) },
    });
    expect(check({ ...action, epoch: 1 })).toBe(true);
    expect(check({ ...action, epoch: 2 })).toMatchObject({ code: 'FUTURE_EPOCH' });
    expect(check({ ...action, lease_id: A, epoch: 'x' })).toMatchObject({
      code: 'LEASE_VIOLATION',
    });
    expect(check(null)).toMatchObject({
      code: 'LEASE_VIOLATION',
      context: { expected_lease: wf.leaseId, received_lease: null },
    });
    const id = action.action_id;
    const nothing = { expectedLease: null, receivedLease: null, actionEpoch: null };
    expect(violations).toEqual([
      {
        ...nothing,
        code: 'STALE_EPOCH',
        workflow: 'w',
        action: id,
        actionEpoch: 0,
        currentEpoch: 1,
      },
      {
        ...nothing,
        code: 'FUTURE_EPOCH',
        workflow: 'w',
        action: id,
        actionEpoch: 2,
        currentEpoch: 1,
      },
      ...[
        [id, A],
        [null, null],
      ].map(([one, receivedLease]) => ({
        ...{ ...nothing, code: 'LEASE_VIOLATION', workflow: 'w', currentEpoch: null },
        ...{ action: one, expectedLease: wf.leaseId, receivedLease },
      })),
    ]);
  });

  it('W-08 after a release, a step fails with LEASE_VIOLATION, not with LEASE_EXPIRED', async () => {
    const { wf } = await held();
    await wf.release();
    expect(await codeOf(wf.emit('STEP', 1, TO))).toBe('LEASE_VIOLATION');
    expect([wf.remainingTtl(), wf.isExpired()]).toEqual([0, true]);
  });

  it('W-10 a handoff whose answer was lost takes place once', async () => {
    const { wf, one, clock, actor } = await held();
    const other = await actor();
    one.faults.loseReplies = true;
    const handing = wf.handoff({ window: '60s' });
    await clock.advance(4_000);
    one.faults.loseReplies = false;
    await clock.advance(5_000);
    const handoff = await handing;
    expect(handoff.transfer_epoch).toBe(0);
    const next: Orchestrator = await other.holdfast.workflows.claim('w', { handoff });
    expect(next.epoch).toBe(1);
  });

  it('W-01 invalid options are refused before anything is claimed', async () => {
    const { one, wf } = await held();
    const { workflows } = one.holdfast;
    const handoff = await wf.handoff();
    const bad = [
      { colour: 'red' } as never,
      { ttl: 1 },
      { ttl: 'long' },
      { handoff: { ...handoff, workflowId: 'v' } },
      { handoff: { ...handoff, new_lease_id: 'mine' } },
      { wait: -1 },
    ];
    for (const options of bad)
      expect(await codeOf(workflows.claim('w', options))).toBe('CONFIG_INVALID');
    expect(await codeOf(workflows.claim('not an id'))).toBe('CONFIG_INVALID');
    expect(await codeOf(wf.handoff({ window: 'soon' }))).toBe('CONFIG_INVALID');
    expect(await codeOf(workflows.revokeLease(wf.leaseId, ' '))).toBe('CONFIG_INVALID');
    expect((await workflows.claim('w', { handoff })).epoch).toBe(1);
  });

  it('W-11 an orchestrator that can be reached learns of its revocation at once', async () => {
    await using world = await inMemory.make();
    const [a, b] = [await world.actor(), await world.actor()];
    const wf = await a.holdfast.workflows.claim('w', { ttl: LONG_MS });
    const steps: string[] = [];
    wf.signal.addEventListener('abort', () => steps.push('aborted'));
    await b.holdfast.workflows.revokeLease(wf.leaseId, 'a test');
    await world.until(() => steps.length > 0, 'the signal');
    expect(await codeOf(wf.updateState('late'))).toBe('LEASE_VIOLATION');
  });
});
