import { describe, expect, it } from 'vitest';
import {
  countsOf,
  refusalsOf,
  withRefusals,
  wrongOf,
} from '../../dashboard/src/views/workflows/refusals.ts';
import { stateText, toldOf } from '../../dashboard/src/views/workflows/step-words.ts';
import { acceptedOf, filtered, listOf } from '../../dashboard/src/views/workflows/workflow-list.ts';
import type { ApiEvent } from '../../src/client/messages.ts';
import type { ApiWorkflow, WorkflowStep } from '../../src/client/operating-messages.ts';

const LEASE = '6b8f8e65-6ca4-4d7d-bc78-84f84227cd94';

function violation(position: string, code: string, facts: object = {}): ApiEvent {
  const common = { instance: 'ana-1-00000000', event: 'workflow.violation', workflow: 'order-7' };
  return { ...common, position, at: Number(position), code, action: null, ...facts };
}

function step(kind: string, facts: Readonly<Record<string, unknown>> = {}): WorkflowStep {
  return { position: '1', at: 10, epoch: 2, leaseId: LEASE, kind, facts };
}

function workflow(id: string, facts: Partial<ApiWorkflow> = {}): ApiWorkflow {
  const common = { state: 'initialized', epoch: 0, leaseId: LEASE, isHeld: false, unresolved: 0 };
  return { id, expiresInMs: null, ...common, ...facts };
}

describe('refusals', () => {
  it('are read back page by page, until the log has no more', async () => {
    const pages = [
      { events: [violation('3', 'STALE_EPOCH')], before: 'b' },
      { events: [], before: 'a' },
      { events: [violation('1', 'LEASE_VIOLATION')] },
    ];
    const asked: (string | undefined)[] = [];
    const found = await refusalsOf(async ({ before }) => {
      asked.push(before);
      return pages[asked.length - 1] ?? { events: [] };
    }, 10);
    expect(asked).toEqual([undefined, 'b', 'a']);
    expect(found.events.map(({ position }) => position)).toEqual(['3', '1']);
    expect(found.hasMore).toBe(false);
  });

  it('say that there is more where it was not looked for', async () => {
    const found = await refusalsOf(async () => ({ events: [], before: 'x' }), 2);
    expect(found).toEqual({ events: [], hasMore: true });
  });

  it('that come are put in front, each once, and nothing else is', () => {
    const known = { events: [violation('2', 'STALE_EPOCH')], hasMore: false };
    const come = [
      violation('2', 'STALE_EPOCH'),
      violation('3', 'FUTURE_EPOCH'),
      { ...violation('4', 'STALE_EPOCH'), event: 'workflow.claimed' },
      violation('5', 'STALE_EPOCH'),
    ];
    const { events } = withRefusals(known, come);
    expect(events.map(({ position }) => position)).toEqual(['5', '3', '2']);
  });

  it('are counted by code; what is no code of ours is not', () => {
    const events = ['STALE_EPOCH', 'STALE_EPOCH', 'LEASE_EXPIRED', 'constructor'].map((code, i) =>
      violation(String(i), code),
    );
    expect(countsOf(events)).toEqual({
      STALE_EPOCH: 2,
      LEASE_VIOLATION: 0,
      FUTURE_EPOCH: 0,
      LEASE_EXPIRED: 1,
    });
  });

  it('say what came and what was expected', () => {
    expect(wrongOf({ code: 'STALE_EPOCH', actionEpoch: 3, currentEpoch: 5 })).toBe(
      'epoch 3, but the workflow was at epoch 5',
    );
    expect(wrongOf({ code: 'FUTURE_EPOCH', actionEpoch: 9, currentEpoch: 5 })).toBe(
      'epoch 9, but the workflow was only at epoch 5',
    );
    expect(wrongOf({ actionEpoch: null, receivedLease: LEASE, expectedLease: null })).toBe(
      'lease 6b8f8e65, but the workflow had no lease',
    );
  });
});

describe('what has happened to a workflow', () => {
  it.each<[WorkflowStep, string, string]>([
    [step('claimed', { reemitted: 2, dropped: 0 }), 'claim', 'emits 2 actions again'],
    [step('claimed', { reemitted: 0, dropped: 1 }), 'claim', 'drops 1 action of a revoked lease'],
    [step('settled', { outcome: 'dead', actionId: LEASE, target: 'bank' }), 'dead', 'for bank'],
    [step('settled', { outcome: 'succeeded', target: 'bank' }), 'done', 'done'],
    [step('transferred', { successor: LEASE, transferEpoch: 4 }), 'handover', 'at epoch 4'],
    [step('revoked', { reason: 'nonsense' }), 'revocation', 'Lease 6b8f8e65 revoked: nonsense'],
    [step('updated', { state: { a: 1 } }), 'state', 'State set to {"a":1}'],
    [step('of a later version', { x: 1 }), 'of a later version', '{"x":1}'],
    [step('toString', {}), 'toString', '{}'],
  ])('is a sentence, and a mark: %j', (one, mark, words) => {
    const [told] = toldOf([one], []);
    expect(told?.mark).toBe(mark);
    expect(told?.words).toContain(words);
  });

  it('has refusals among the steps, where they happened, without an epoch', () => {
    const steps = [step('updated', { state: 1 }), { ...step('claimed'), at: 5 }];
    const told = toldOf(steps, [violation('7', 'LEASE_VIOLATION', { receivedLease: LEASE })]);
    expect(told.map(({ mark }) => mark)).toEqual(['state', 'refusal', 'claim']);
    expect(told[1]).toMatchObject({ epoch: null, tone: 'bad', leaseId: LEASE });
  });

  it('a state may be any JSON', () => {
    expect([stateText('shipped'), stateText({ a: 1 }), stateText(undefined)]).toEqual([
      'shipped',
      '{"a":1}',
      'nothing',
    ]);
  });
});

describe('a list of workflows', () => {
  it('is read page by page, as far as the user scrolls', async () => {
    const pageOf = async ({ cursor = '0' }: { cursor?: string }) => {
      const next = String(Number(cursor) + 1);
      return { workflows: [workflow(`w-${cursor}`)], ...(next !== '4' && { cursor: next }) };
    };
    expect(await listOf(pageOf, 2)).toMatchObject({ hasMore: true });
    const all = await listOf(pageOf, 100);
    expect(all.workflows.map(({ id }) => id)).toEqual(['w-0', 'w-1', 'w-2', 'w-3']);
    expect(all.hasMore).toBe(false);
  });

  it('can be held, free or waiting ones only, and searched by id or lease', () => {
    const all = [
      workflow('Order-1', { isHeld: true }),
      workflow('order-2', { unresolved: 3 }),
      workflow('other', { leaseId: null }),
    ];
    const ids = (shown: string, text = '') => filtered(all, { shown, text }).map(({ id }) => id);
    expect(ids('held')).toEqual(['Order-1']);
    expect(ids('free')).toEqual(['order-2', 'other']);
    expect(ids('waiting')).toEqual(['order-2']);
    expect(ids('of no such sort')).toHaveLength(3);
    expect(ids('', 'ORDER')).toEqual(['Order-1', 'order-2']);
    expect(ids('', '6b8f')).toEqual(['Order-1', 'order-2']);
  });

  it('has as many accepted steps as epochs', () => {
    expect(acceptedOf([workflow('a', { epoch: 3 }), workflow('b', { epoch: 4 })])).toBe(7);
  });
});
