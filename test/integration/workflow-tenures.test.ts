import { afterAll, describe, expect, it } from 'vitest';
import type { Orchestrator } from '../../src/workflow/orchestrator.ts';
import {
  CLAIM_MS,
  inMemory,
  LONG_MS,
  onSqlite,
  redisWorlds,
  TTL_MS,
  type WorkflowActor,
  type WorkflowWorld,
  type WorkflowWorldKind,
} from '../support/workflow-world.ts';
import { codeOf } from './support/holdfasts.ts';

const onRedis = await redisWorlds();
afterAll(() => onRedis[Symbol.asyncDispose]());

const UUID4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Held until its actor lets go of it. */
const claim = ({ holdfast }: WorkflowActor, id = 'w', ttl = LONG_MS): Promise<Orchestrator> =>
  holdfast.workflows.claim(id, { ttl });

/** The lease is nobody's any more, by the store's clock. */
const expiry = (world: WorkflowWorld, { holdfast }: WorkflowActor, id = 'w') =>
  world.until(async () => (await holdfast.workflows.get(id))?.isHeld === false, 'the lease to end');

const kinds = async (actor: WorkflowActor, id = 'w') => {
  const found: string[] = [];
  for await (const { what } of actor.holdfast.workflows.history(id)) found.push(what.kind);
  return found;
};

const scenarios = ({ make }: WorkflowWorldKind) => {
  it('W-01 of two who claim at once one has it, and the other hears whose it is', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const both = await Promise.allSettled([claim(a), claim(b)]);
    const won = both.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const lost = both.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(lost).toMatchObject([{ code: 'LEASE_HELD', holder: won[0]?.leaseId }]);
    expect(won[0]?.leaseId).toMatch(UUID4);
    expect(won[0]).toMatchObject({ epoch: 0, state: 'initialized', reemitted: [], dropped: [] });
  });

  it('W-01 who waits has it next: another lease, a higher fence, and the epoch goes on', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const first = await claim(a);
    await first.updateState('begun');
    const waiting = b.holdfast.workflows.claim('w', { ttl: LONG_MS, wait: '10s' });
    await first.release();
    const second = await world.outcome(waiting);
    expect(second.leaseId).not.toBe(first.leaseId);
    expect(second.fence).toBeGreaterThan(first.fence);
    expect(second).toMatchObject({ epoch: 1, state: 'begun' });
    expect(await codeOf(first.emit('STEP', {}, { target: 't' }))).toBe('LEASE_VIOLATION');
    expect(second.epoch).toBe(1);
  });

  it('W-01 W-13 a new claimant goes on: state, epoch, actions, unread results and history', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const first = await claim(a);
    const [done, read, open] = await Promise.all(
      ['done', 'read', 'open'].map((of) => first.emit('STEP', { of }, { target: of })),
    );
    for (const name of ['done', 'read'])
      await b.holdfast
        .processor({ name, role: 'compute', handlers: { STEP: () => name } })
        .process(name === 'done' ? done : read);
    expect(await first.result(read?.action_id ?? '')).toMatchObject({ value: 'read' });
    await first.updateState({ step: 2 });
    await first.release();
    const second = await claim(b);
    expect(second).toMatchObject({ epoch: 5, state: { step: 2 }, dropped: [] });
    const { action_id, payload } = open ?? {};
    const again = { action_id, payload, epoch: 4, lease_id: second.leaseId };
    expect(second.reemitted).toMatchObject([again]);
    const unread = second.results();
    expect((await unread.next()).value).toMatchObject({ action_id: done?.action_id });
    expect(await second.result(read?.action_id ?? '')).toMatchObject({ value: 'read', epoch: 1 });
    expect(await kinds(b)).toEqual([
      ...['claimed', 'emitted', 'emitted', 'emitted', 'settled', 'settled', 'updated'],
      ...['claimed', 'reemitted'],
    ]);
  });

  it('W-07 A and B are both at epoch 5: the first is accepted, the second rejected', async () => {
    await using world = await make();
    const [a, b] = [await world.sleeper(), await world.actor()];
    const wfA = await claim(a, 'w', TTL_MS);
    for (const step of [1, 2, 3, 4, 5]) await wfA.updateState(step);
    await expiry(world, b);
    const wfB = await claim(b);
    expect([wfA.epoch, wfB.epoch]).toEqual([5, 5]);
    const done: unknown[] = [];
    const handlers = { STEP: (payload: unknown) => done.push(payload) };
    const compute = b.holdfast.processor({ name: 'compute', role: 'compute', handlers });
    const x = await wfB.emit('STEP', 'X', { target: 'compute' });
    expect(x.epoch).toBe(5);
    expect(await codeOf(wfA.emit('STEP', 'Y', { target: 'compute' }))).toBe('LEASE_VIOLATION');
    expect(await compute.process(x)).toMatchObject({ success: true });
    const y = { ...x, action_id: '00000000-0000-4000-8000-00000000000a', payload: 'Y' };
    expect(await codeOf(compute.process({ ...y, lease_id: wfA.leaseId }))).toBe('LEASE_VIOLATION');
    await expect(compute.process(y)).rejects.toMatchObject({
      code: 'STALE_EPOCH',
      context: { action_epoch: 5, current_epoch: 5, recommendation: expect.any(String) },
    });
    expect(done).toEqual(['X']);
    expect(wfB.epoch).toBe(6);
  });

  it('W-04 W-05 W-06 lease first, then epoch: equal, older and future ones, monotonic and strict', async () => {
    await using world = await make();
    const a = await world.actor();
    const wf = await claim(a);
    const runs: string[] = [];
    const processor = (name: string, role: 'effect' | 'reducer') => {
      const handlers = { STEP: (payload: unknown) => runs.push(`${name} ${payload}`) };
      return a.holdfast.processor({ name, role, handlers });
    };
    const [effect, reducer] = [processor('effect', 'effect'), processor('reducer', 'reducer')];
    const emit = (target: string) => wf.emit('STEP', wf.epoch, { target });
    const [e0, r1, r2, e3] = [
      ...[await emit('effect'), await emit('reducer')],
      ...[await emit('reducer'), await emit('effect')],
    ];
    const other = '00000000-0000-4000-8000-00000000000b';
    const wrong = { ...e0, lease_id: other, epoch: 99 };
    await expect(effect.process(wrong)).rejects.toMatchObject({
      code: 'LEASE_VIOLATION',
      context: { expected_lease: wf.leaseId, received_lease: other },
    });
    await expect(effect.process({ ...e0, lease_id: null })).rejects.toMatchObject({
      code: 'LEASE_VIOLATION',
      context: { received_lease: null },
    });
    expect(await codeOf(effect.process({ ...e3, epoch: 4 }))).toBe('FUTURE_EPOCH');
    await expect(reducer.process(r2)).rejects.toMatchObject({
      code: 'FUTURE_EPOCH',
      context: { action_epoch: 2, current_epoch: 1, recommendation: expect.any(String) },
    });
    for (const action of [e0, e3]) await effect.process(action);
    for (const action of [r1, r2]) await reducer.process(action);
    for (const epoch of [0, 2, 3])
      expect(await codeOf(effect.process({ ...e3, action_id: other, epoch }))).toBe('STALE_EPOCH');
    expect(await codeOf(reducer.process({ ...r2, action_id: other }))).toBe('STALE_EPOCH');
    expect(runs).toEqual(['effect 0', 'effect 3', 'reducer 1', 'reducer 2']);
    expect(effect.violations).toEqual({ LEASE_VIOLATION: 2, FUTURE_EPOCH: 1, STALE_EPOCH: 3 });
  });

  it('W-08 an orchestrator frozen past its TTL wakes and emits: it is refused, nothing is applied', async () => {
    await using world = await make();
    const [a, b] = [await world.sleeper(), await world.actor()];
    const frozen = await claim(a, 'w', TTL_MS);
    await frozen.emit('STEP', 1, { target: 't' });
    await expiry(world, b);
    expect(frozen.isExpired()).toBe(false);
    expect(await codeOf(frozen.emit('STEP', 2, { target: 't' }))).toBe('LEASE_VIOLATION');
    expect(await codeOf(frozen.updateState('late'))).toMatch(/^LEASE_(VIOLATION|EXPIRED)$/);
    const wf = await claim(b);
    expect(wf).toMatchObject({ epoch: 2, state: 'initialized' });
    expect(wf.reemitted).toHaveLength(1);
    expect(await codeOf(frozen.handoff())).toMatch(/^LEASE_(VIOLATION|EXPIRED)$/);
    expect((await b.holdfast.workflows.get('w'))?.leaseId).toBe(wf.leaseId);
  });

  it('W-08 W-09 nothing is renewed or emitted after the expiry', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const wf = await claim(a, 'w', TTL_MS);
    a.faults.refuse = true;
    await world.until(() => wf.isExpired(), 'its time to be over');
    a.faults.refuse = false;
    const expired = {
      code: 'LEASE_EXPIRED',
      context: {
        lease_id: wf.leaseId,
        acquired_at: wf.acquiredAt.toISOString(),
        ttl_seconds: TTL_MS / 1_000,
      },
    };
    await expect(wf.renew()).rejects.toMatchObject(expired);
    await expect(wf.emit('STEP', {}, { target: 't' })).rejects.toMatchObject(expired);
    expect([wf.remainingTtl(), wf.signal.aborted]).toEqual([0, true]);
    const next = await world.outcome(b.holdfast.workflows.claim('w', { ttl: LONG_MS, wait: '9s' }));
    expect(next.epoch).toBe(0);
  });

  it('W-10 a handoff is one step: the secondary goes on after it, the primary can do nothing more', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const primary = await claim(a);
    const action = await primary.emit('STEP', 1, { target: 't' });
    const handoff = await primary.handoff();
    expect(handoff).toMatchObject({ old_lease_id: primary.leaseId, transfer_epoch: 1 });
    expect(handoff.new_lease_id).toMatch(UUID4);
    expect(primary.signal.aborted).toBe(true);
    await expect(primary.emit('STEP', 2, { target: 't' })).rejects.toMatchObject({
      code: 'LEASE_VIOLATION',
      context: { expected_lease: handoff.new_lease_id, received_lease: primary.leaseId },
    });
    expect(await codeOf(claim(b))).toBe('LEASE_HELD');
    const processor = a.holdfast.processor({
      name: 't',
      role: 'effect',
      handlers: { STEP: () => 1 },
    });
    expect(await codeOf(processor.process(action))).toBe('LEASE_VIOLATION');
    const secondary = await b.holdfast.workflows.claim('w', { ttl: LONG_MS, handoff });
    expect(secondary.leaseId).toBe(handoff.new_lease_id);
    expect(secondary.fence).toBeGreaterThan(primary.fence);
    expect(secondary.reemitted).toMatchObject([{ action_id: action.action_id, epoch: 2 }]);
    expect(await processor.process(secondary.reemitted[0])).toMatchObject({ success: true });
    expect((await secondary.emit('STEP', 2, { target: 't' })).epoch).toBe(3);
  });

  it('W-10 a secondary that never claims: the window frees the workflow', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const primary = await claim(a);
    const { transfer_epoch, new_lease_id } = await primary.handoff({ window: 300 });
    const waiting = b.holdfast.workflows.claim('w', { ttl: LONG_MS, wait: '10s' });
    const next = await world.outcome(waiting);
    expect(next.epoch).toBe(transfer_epoch + 1);
    expect(next.leaseId).not.toBe(new_lease_id);
    expect(await kinds(b)).toEqual(['claimed', 'transferred', 'claimed']);
  });

  it('W-10 W-15 a handoff is claimed with once: nobody shares the lease of another', async () => {
    await using world = await make();
    const [a, b, c] = [await world.actor(), await world.actor(), await world.actor()];
    const handoff = await (await claim(a)).handoff();
    const options = { ttl: LONG_MS, handoff };
    const both = await Promise.allSettled([
      b.holdfast.workflows.claim('w', options),
      c.holdfast.workflows.claim('w', options),
    ]);
    const [one] = both.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    for (const actor of [b, c])
      expect(await codeOf(actor.holdfast.workflows.claim('w', options))).toBe('CONFIG_INVALID');
    await one?.updateState('still its writer');
    expect(one?.epoch).toBe(2);
  });

  it('W-11 who is revoked while cut off is refused, though no word of it arrived; its actions are dropped', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const revoked: unknown[] = [];
    b.holdfast.on('workflow.revoked', (facts) => revoked.push(facts));
    const cutOff = await claim(a);
    const action = await cutOff.emit('STEP', 1, { target: 't' });
    a.faults.refuse = true;
    const { workflows } = b.holdfast;
    const { leaseId } = cutOff;
    await workflows.revokeLease(leaseId, 'it makes no progress');
    expect(revoked).toMatchObject([
      { leaseId, reason: 'it makes no progress', revokedAt: expect.stringMatching(/^20.*Z$/) },
    ]);
    await expect(workflows.revokeLease(leaseId, 'again')).rejects.toMatchObject({
      code: 'LEASE_NOT_FOUND',
      context: { lease_id: leaseId },
    });
    const wf = await claim(b);
    expect(wf.fence).toBeGreaterThan(cutOff.fence);
    expect([wf.reemitted, wf.dropped]).toMatchObject([[], [{ action_id: action.action_id }]]);
    const processor = b.holdfast.processor({
      name: 't',
      role: 'effect',
      handlers: { STEP: () => 1 },
    });
    expect(await codeOf(processor.process(action))).toBe('LEASE_VIOLATION');
    a.faults.refuse = false;
    expect(await codeOf(cutOff.emit('STEP', 2, { target: 't' }))).toBe('LEASE_VIOLATION');
    await world.until(() => cutOff.signal.aborted, 'the revoked to hear of it');
    expect(wf.epoch).toBe(1);
    expect(await kinds(b)).toEqual(['claimed', 'emitted', 'revoked', 'claimed', 'dropped']);
  });

  it('W-11 W-01 with resume the actions of a revoked tenure are emitted anew', async () => {
    await using world = await make();
    const [a, b] = [await world.actor(), await world.actor()];
    const first = await claim(a);
    const action = await first.emit('STEP', 1, { target: 't' });
    await b.holdfast.workflows.revokeLease(first.leaseId, 'moved');
    await world.until(() => first.signal.aborted, 'the revoked to hear of it');
    const wf = await b.holdfast.workflows.claim('w', { ttl: LONG_MS, resume: true });
    expect(wf.dropped).toEqual([]);
    expect(wf.reemitted).toMatchObject([{ action_id: action.action_id, epoch: 1 }]);
    const processor = b.holdfast.processor({
      ...{ name: 't', role: 'effect', claim: CLAIM_MS, handlers: { STEP: () => 'done' } },
    });
    await processor.start();
    expect(await world.outcome(wf.result(action.action_id))).toMatchObject({ value: 'done' });
  });
};

describe.each([inMemory, onSqlite])('over $name', scenarios);
// There time can not be stepped: they wait together.
describe.concurrent('over Redis', () => scenarios(onRedis));
