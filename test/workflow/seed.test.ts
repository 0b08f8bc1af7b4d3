import { describe, expect, it } from 'vitest';
import type { Action } from '../../src/workflow/action.ts';
import { world as leaseWorld } from '../support/world.ts';
import '../../src/store/memory/tables.ts';

const TO = { target: 'compute' };
const OTHER = '00000000-0000-4000-8000-00000000000a';

/** An orchestrator and a compute node, as the tests of the pattern have them. */
const nodes = async (options: { ttl?: number } = {}) => {
  const { clock, store, actor } = leaseWorld();
  const [one, two] = [await actor(), await actor()];
  const orchestrator = await one.holdfast.workflows.claim('w', options);
  const done: unknown[] = [];
  const compute = two.holdfast.processor({
    ...{ name: 'compute', role: 'compute' },
    handlers: { EXECUTE: (payload) => done.push(payload) },
  });
  /** An action as anybody could write it down. */
  const action = (more: Partial<Action> = {}): Action => ({
    ...{ action_id: OTHER, workflow_id: 'w', action_type: 'EXECUTE', payload: {}, priority: 5 },
    ...{ target_node_type: 'compute', lease_id: orchestrator.leaseId, epoch: orchestrator.epoch },
    ...{ created_at: '2026-01-01T00:00:00.000Z', timeout_ms: null, ...more },
  });
  return { clock, store, one, two, orchestrator, compute, done, action };
};

describe('the tests that the single-writer pattern names', () => {
  it('W-15 test_lease_validation_success: an action with the right lease and the current epoch is valid', async () => {
    const { orchestrator, action } = await nodes();
    expect(orchestrator.validateAction(action())).toBe(true);
  });

  it('W-15 test_lease_validation_wrong_lease: the orchestrator and the processor both refuse it', async () => {
    const { orchestrator, compute, action, done } = await nodes();
    const wrong = action({ lease_id: OTHER, epoch: 0 });
    expect(() => orchestrator.validateAction(wrong)).toThrow(
      expect.objectContaining({ code: 'LEASE_VIOLATION' }),
    );
    await expect(compute.process(wrong)).rejects.toMatchObject({
      code: 'LEASE_VIOLATION',
      context: { expected_lease: orchestrator.leaseId, received_lease: OTHER },
    });
    expect(done).toEqual([]);
  });

  it('W-15 test_epoch_validation_stale_action: epoch 3 is refused after epoch 5', async () => {
    const { orchestrator, compute, action, done } = await nodes();
    for (const step of [0, 1, 2, 3, 4]) await orchestrator.updateState(step);
    await compute.process(await orchestrator.emit('EXECUTE', 'five', TO));
    await expect(compute.process(action({ epoch: 3 }))).rejects.toMatchObject({
      code: 'STALE_EPOCH',
      context: { action_epoch: 3, current_epoch: 5 },
    });
    expect(done).toEqual(['five']);
  });

  it('W-15 W-03 test_epoch_increment_on_state_change: the epoch grows by one, durably, and an event reports it', async () => {
    const { orchestrator, one, store } = await nodes();
    const told: unknown[] = [];
    one.holdfast.on('workflow.updated', (facts) => told.push(facts));
    const before = orchestrator.epoch;
    await orchestrator.updateState('processing');
    expect(orchestrator.epoch).toBe(before + 1);
    const { leaseId } = orchestrator;
    expect(told).toEqual([{ workflow: 'w', leaseId, epoch: 1, state: 'processing' }]);
    expect(await store.workflows.read(['w'], { timeoutMs: 1_000 })).toMatchObject([
      { epoch: 1, state: 'processing' },
    ]);
  });

  it('W-15 test_full_workflow_with_lease: an action is emitted, taken and executed, and its result comes back', async () => {
    const { orchestrator, compute, done, clock } = await nodes();
    await compute.start();
    const action = await orchestrator.emit('EXECUTE', { data: [1, 2, 3] }, TO);
    expect([action.lease_id, action.epoch]).toEqual([orchestrator.leaseId, 0]);
    const result = orchestrator.result(action.action_id);
    await clock.advance(100);
    expect(await result).toMatchObject({ success: true, epoch: 0 });
    expect([done, orchestrator.epoch]).toEqual([[{ data: [1, 2, 3] }], 1]);
    await compute.stop();
  });

  it('W-15 W-08 test_lease_expiration: an orchestrator that cannot renew cannot emit', async () => {
    const { orchestrator, one, clock } = await nodes({ ttl: 1_000 });
    one.faults.refuse = true;
    await clock.advance(2_000);
    expect(orchestrator.isExpired()).toBe(true);
    expect(() => orchestrator.checkLeaseValidity()).toThrow(
      expect.objectContaining({ code: 'LEASE_EXPIRED' }),
    );
    one.faults.refuse = false;
    await expect(orchestrator.emit('EXECUTE', {}, TO)).rejects.toMatchObject({
      code: 'LEASE_EXPIRED',
    });
  });
});

describe('mistakes that the single-writer pattern warns of', () => {
  it('W-15 no two orchestrators share a lease id, because no caller chooses it', async () => {
    const { orchestrator, two, one } = await nodes();
    const other = await one.holdfast.workflows.claim('v');
    expect(other.leaseId).not.toBe(orchestrator.leaseId);
    const shared = { workflowId: 'w', new_lease_id: orchestrator.leaseId };
    const handoff = { ...shared, old_lease_id: OTHER, transfer_epoch: 0 };
    await expect(two.holdfast.workflows.claim('w', { handoff })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    });
    expect(() => Object.assign(orchestrator, { leaseId: other.leaseId })).toThrow(TypeError);
    await orchestrator.updateState('its own');
    expect(orchestrator.epoch).toBe(1);
  });

  it('W-15 no epoch goes unchecked: an equal epoch is refused like an older one', async () => {
    const { orchestrator, compute, action, done } = await nodes();
    const first = await orchestrator.emit('EXECUTE', 'first', TO);
    await compute.process(first);
    for (const epoch of [first.epoch, first.epoch])
      await expect(compute.process(action({ epoch }))).rejects.toMatchObject({
        code: 'STALE_EPOCH',
      });
    expect(done).toEqual(['first']);
  });

  it('W-15 no change goes without an epoch: each step in the history has the next one', async () => {
    const { orchestrator, store } = await nodes();
    await orchestrator.emit('EXECUTE', 1, TO);
    await orchestrator.updateState('a');
    await orchestrator.handleResult({ success: true });
    await orchestrator.handoff();
    const { entries } = await store.workflows.history('w', { timeoutMs: 1_000 });
    expect(entries.map(({ what, epoch }) => `${epoch} ${what.kind}`)).toEqual([
      ...['0 claimed', '1 emitted', '2 updated', '3 updated', '4 transferred'],
    ]);
  });

  it('W-15 no lease is used after it has expired, not even by a step that was under way', async () => {
    const { orchestrator, one, clock, store } = await nodes({ ttl: 6_000 });
    one.faults.hang = true;
    const emitting = orchestrator.emit('EXECUTE', 1, TO);
    emitting.catch(() => {});
    await clock.advance(10_000);
    one.faults.hang = false;
    await clock.advance(40_000);
    await expect(emitting).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await expect(orchestrator.renew()).rejects.toMatchObject({ code: 'LEASE_EXPIRED' });
    expect(await store.workflows.read(['w'], { timeoutMs: 1_000 })).toMatchObject([
      { epoch: 0, unresolved: 0 },
    ]);
  });

  it('W-15 an action without a lease id is refused before anything else is checked', async () => {
    const { orchestrator, compute, action, done } = await nodes();
    const { lease_id: _, ...none } = action();
    for (const value of [none, { ...none, lease_id: null }, {}, null]) {
      const code = 'LEASE_VIOLATION';
      const context = expect.objectContaining({ received_lease: null });
      await expect(compute.process(value)).rejects.toMatchObject({ code, context });
      expect(() => orchestrator.validateAction(value)).toThrow(
        expect.objectContaining({ code, context }),
      );
    }
    expect(done).toEqual([]);
  });
});
