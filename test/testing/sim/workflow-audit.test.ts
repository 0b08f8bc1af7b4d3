import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random.ts';
import type { Reply } from '../../../src/store/redis/client/wire.ts';
import { type ScriptName, scripts } from '../../../src/store/redis/scripts.ts';
import { Audit } from '../../../testing/sim/audit.ts';
import { Counters } from '../../../testing/sim/counters.ts';
import { SimHost, SimProcess } from '../../../testing/sim/host.ts';
import { Timeline } from '../../../testing/sim/timeline.ts';

/** Longer than any action may be without its result. */
const LONG_MS = 200_000;

/** An auditor of the workflow `w`, whose store says what the test has it say. */
function scene() {
  const timeline = new Timeline();
  const counters = new Counters();
  const audit = new Audit(() => timeline.nowMs, counters);
  /** By command and key, without what stands before all keys. */
  const store = new Map<string, Reply>();
  audit.watchWorkflows(([command = '', key = '']) => {
    const empty = command === 'GET' || command === 'HGET' ? null : [];
    return store.get(`${command} ${key.slice('{holdfast}:'.length)}`) ?? empty;
  });
  const host = new SimHost(timeline);
  const somebody = new SimProcess(host, 'somebody', seededRandom(2));
  const served = (verb: ScriptName, args: readonly string[], reply: Reply) =>
    audit.served(['EVALSHA', scripts[verb].sha, '1', 'bus', 'channels', ...args], reply, somebody);
  const hold = (leaseId: string | null) => store.set('GET workflow:lease:w', leaseId);
  const begin = (leaseId: string, epoch: number, again: string[] = [], dropped: string[] = []) => {
    hold(leaseId);
    const facts = [leaseId, String(epoch), '"x"', '0', '0'];
    const snapshot = [facts, again.length / 2, 0, 0];
    served(
      'workflow/begin',
      ['w', leaseId, '7', 'inbox', '0', '"x"'],
      [1, snapshot, again, dropped],
    );
  };
  const emit = (leaseId: string, epoch: number, id: string) =>
    served(
      'workflow/emit',
      ['w', leaseId, String(epoch), '0', id, 'press', '5', '{}', '', '', ''],
      [1, epoch + 1],
    );
  const update = (leaseId: string, epoch: number) =>
    served('workflow/update', ['w', leaseId, String(epoch), '0', '"x"'], [1, epoch + 1]);
  const handoff = (leaseId: string, epoch: number, successor: string) => {
    hold(successor);
    const args = ['w', leaseId, String(epoch), '0', successor, '1000'];
    served('workflow/handoff', args, [1, epoch + 1, 10]);
  };
  const take = (id: string, record: string, fence: number) =>
    served('workflow/take', ['press', 'i', '1', '1000'], [[1, 'w', id, record, fence, 1]]);
  const settle = (fence: number, outcome = 'succeeded', reply = 1) =>
    served('workflow/settle', ['press', 'w', String(fence), outcome, '1', '', ''], [reply]);
  const revoke = (leaseId: string) => served('workflow/revoke', [leaseId, 'why'], ['w', '0']);
  const process = (name: string) => new SimProcess(host, name, seededRandom(1));
  const verbs = { begin, emit, update, handoff, take, settle, revoke };
  return { audit, counters, timeline, store, hold, process, ...verbs };
}

/** What is kept of an action. */
function record(epoch: number, leaseId: string): string {
  return `${epoch}\n${leaseId}\npress\n5\n{}`;
}

describe('the auditor finds, about epochs', () => {
  it('W-02 nothing where each step follows the one before, also one that is sent twice', () => {
    const { audit, counters, begin, emit, update, handoff } = scene();
    begin('a', 0);
    emit('a', 0, 'x');
    emit('a', 0, 'x');
    update('a', 1);
    update('a', 1);
    handoff('a', 2, 'b');
    begin('b', 4, ['x', record(3, 'b')]);
    expect(audit.violation).toBeNull();
    expect(counters.get('emit found taken')).toBe(1);
    expect(counters.get('update found taken')).toBe(1);
    expect(counters.get('handoff claimed')).toBe(1);
    expect(counters.get('actions emitted anew')).toBe(1);
  });

  it('W-02 one that is given twice, or left out', () => {
    const twice = scene();
    twice.begin('a', 0);
    twice.emit('a', 0, 'x');
    twice.emit('a', 0, 'y');
    expect(twice.audit.violation).toMatchObject({ invariant: 'epochs', target: 'workflow:w' });
    const skipped = scene();
    skipped.begin('a', 0);
    skipped.update('a', 1);
    expect(skipped.audit.violation).toMatchObject({ invariant: 'epochs' });
  });

  it('W-08 a step of who does not hold the lease any more', () => {
    const { audit, hold, begin, update } = scene();
    begin('a', 0);
    hold(null);
    update('a', 0);
    expect(audit.violation).toMatchObject({ invariant: 'epochs' });
  });

  it('W-10 W-11 a step in the tenure of another, or of one that was revoked', () => {
    const { audit, hold, begin, handoff, update } = scene();
    begin('a', 0);
    handoff('a', 0, 'b');
    hold('a');
    update('a', 1);
    expect(audit.violation).toMatchObject({ invariant: 'epochs' });
    const revoked = scene();
    revoked.begin('a', 0);
    revoked.revoke('a');
    revoked.update('a', 0);
    expect(revoked.audit.violation).toMatchObject({ invariant: 'epochs' });
  });

  it('W-01 actions that are emitted anew with epochs they had before', () => {
    const { audit, begin, emit } = scene();
    begin('a', 0);
    emit('a', 0, 'x');
    begin('b', 2, ['x', record(0, 'b')]);
    expect(audit.violation).toMatchObject({ invariant: 'epochs' });
  });

  it('nothing where the store has forgotten: what it still knows counts', () => {
    const { audit, store, begin, update } = scene();
    begin('a', 0);
    update('a', 0);
    update('a', 1);
    store.set('HMGET workflow:facts:w', ['a', '1', '1', '0', '', '"x"']);
    audit.storeForgot();
    update('a', 1);
    expect(audit.violation).toBeNull();
    update('a', 3);
    expect(audit.violation).toMatchObject({ invariant: 'epochs' });
  });
});

describe('the auditor finds, about actions', () => {
  it('W-01 one that a new tenure has lost, unless it was to be dropped', () => {
    const { audit, begin, emit, revoke } = scene();
    begin('a', 0);
    emit('a', 0, 'x');
    revoke('a');
    begin('b', 1, [], ['x', record(0, 'a')]);
    expect(audit.violation).toBeNull();
    emit('b', 1, 'y');
    begin('c', 2);
    expect(audit.violation).toMatchObject({ invariant: 'actions' });
  });

  it('W-13 a second result, and one from who has it in hands no more', () => {
    const second = scene();
    second.begin('a', 0);
    second.emit('a', 0, 'x');
    second.take('x', record(0, 'a'), 5);
    second.settle(5, 'retry');
    second.take('x', record(0, 'a'), 6);
    second.settle(5, 'succeeded', 0);
    second.settle(6);
    expect(second.audit.violation).toBeNull();
    expect(second.counters.get('tried again')).toBe(1);
    expect(second.counters.get('settle refused: gone')).toBe(1);
    second.settle(6);
    expect(second.audit.violation).toMatchObject({ invariant: 'actions' });
    const late = scene();
    late.begin('a', 0);
    late.emit('a', 0, 'x');
    late.take('x', record(0, 'a'), 5);
    late.take('x', record(0, 'a'), 6);
    expect(late.counters.get('redelivered')).toBe(1);
    late.settle(5);
    expect(late.audit.violation).toMatchObject({ invariant: 'actions' });
  });

  it.each([
    ['that is done', 'x', record(0, 'a'), 6],
    ['of a tenure that is over', 'y', record(1, 'b'), 6],
    ['with an epoch that it has no more', 'y', record(0, 'a'), 6],
    ['with a fence that was there before', 'y', record(1, 'a'), 5],
  ])('W-04 W-05 one that is given out, %s', (_, id, kept, fence) => {
    const { audit, begin, emit, take, settle } = scene();
    begin('a', 0);
    emit('a', 0, 'x');
    emit('a', 1, 'y');
    take('x', record(0, 'a'), 5);
    settle(5);
    expect(audit.violation).toBeNull();
    take(id, kept, fence);
    expect(audit.violation).toMatchObject({ invariant: 'actions' });
  });

  it('W-05 one that is given out after a later epoch of its target, unless it is the same again', () => {
    const { audit, begin, emit, take, settle } = scene();
    begin('a', 0);
    emit('a', 0, 'x');
    emit('a', 1, 'y');
    take('y', record(1, 'a'), 5);
    settle(5, 'retry');
    take('y', record(1, 'a'), 6);
    settle(6);
    expect(audit.violation).toBeNull();
    take('x', record(0, 'a'), 7);
    expect(audit.violation).toMatchObject({ invariant: 'actions' });
  });

  it('W-05 two attempts at one that may both go on, also in one process', () => {
    const { audit, process } = scene();
    const attempt = { process: process('i'), target: 'action:x', isAttempt: true };
    let isLate = true;
    audit.claim({ ...attempt, isValid: () => !isLate });
    audit.claim({ ...attempt, isValid: () => true });
    audit.settled();
    expect(audit.violation).toBeNull();
    isLate = false;
    audit.settled();
    expect(audit.violation).toMatchObject({ invariant: 'actions', target: 'action:x' });
  });

  it('nothing about a workflow of which some keys were deleted, but still its epochs', () => {
    const { audit, store, begin, emit, update } = scene();
    begin('a', 0);
    emit('a', 0, 'x');
    store.set('HMGET workflow:facts:w', ['a', '1', '1', '0', '', '"x"']);
    store.set('HGETALL workflow:actions:w', ['x', record(0, 'a')]);
    audit.storeForgot({ isTorn: true });
    begin('b', 1);
    expect(audit.violation).toBeNull();
    update('b', 0);
    expect(audit.violation).toMatchObject({ invariant: 'epochs' });
  });
});

describe('the auditor finds, once nothing is wrong any more,', () => {
  it('W-13 an action that gets no result', async () => {
    const { audit, timeline, begin, emit, update } = scene();
    begin('a', 0);
    emit('a', 0, 'x');
    await timeline.run(LONG_MS);
    update('a', 1);
    audit.workflows?.checkHealed(1);
    expect(audit.violation).toMatchObject({ invariant: 'healing' });
  });

  it('W-13 a result that its orchestrator does not hear of', async () => {
    const { audit, timeline, process, begin, emit, take, settle, update } = scene();
    begin('a', 0);
    emit('a', 0, 'x');
    const heard = audit.workflows?.waits({ process: process('i'), workflow: 'w', action: 'x' });
    take('x', record(0, 'a'), 5);
    settle(5);
    await timeline.run(LONG_MS);
    update('a', 1);
    audit.workflows?.checkHealed(1);
    expect(audit.violation).toMatchObject({ invariant: 'healing' });
    heard?.();
  });

  it('W-01 a workflow that nobody goes on with', async () => {
    const { audit, timeline, begin } = scene();
    begin('a', 0);
    audit.workflows?.checkHealed(0);
    expect(audit.violation).toBeNull();
    await timeline.run(LONG_MS);
    audit.workflows?.checkHealed(1);
    expect(audit.violation).toMatchObject({ invariant: 'healing' });
  });
});
