import { describe, expect, it } from 'vitest';
import {
  countsOf,
  refusalsOf,
  withRefusals,
  wrongOf,
} from '../../dashboard/src/views/workflows/refusals.ts';
import { listedSteps } from '../../dashboard/src/views/workflows/run-steps.ts';
import { stateText, toldOf } from '../../dashboard/src/views/workflows/step-words.ts';
import {
  acceptedOf,
  filtered,
  functionOptions,
  listOf,
  NO_FUNCTION,
  runCounts,
  serverFilter,
} from '../../dashboard/src/views/workflows/workflow-list.ts';
import type { ApiEvent } from '../../src/client/messages.ts';
import type {
  ApiRun,
  ApiWorkflow,
  WorkflowDetail,
  WorkflowStep,
  WorkflowsQuery,
} from '../../src/client/operating-messages.ts';

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
  const times = { expiresInMs: null, createdAt: 0, changedAt: 0 };
  return { id, ...times, ...common, instance: 'ana-1-00000000', run: null, ...facts };
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
    const pageOf = async ({ cursor = '0' }: WorkflowsQuery) => {
      const next = String(Number(cursor) + 1);
      return { workflows: [workflow(`w-${cursor}`)], ...(next !== '4' && { cursor: next }) };
    };
    expect(await listOf(pageOf, 2)).toMatchObject({ hasMore: true });
    const all = await listOf(pageOf, 100);
    expect(all.workflows.map(({ id }) => id)).toEqual(['w-0', 'w-1', 'w-2', 'w-3']);
    expect(all.hasMore).toBe(false);
  });

  it('can be held, free or acting ones only, and searched by id or lease', () => {
    const all = [
      workflow('Order-1', { isHeld: true }),
      workflow('order-2', { unresolved: 3 }),
      workflow('other', { leaseId: null }),
    ];
    const ids = (state: string, text = '') =>
      filtered(all, { state, text, name: '' }).map(({ id }) => id);
    expect(ids('held')).toEqual(['Order-1']);
    expect(ids('free')).toEqual(['order-2', 'other']);
    expect(ids('acting')).toEqual(['order-2']);
    expect(ids('of no such sort')).toHaveLength(3);
    expect(ids('', 'ORDER')).toEqual(['Order-1', 'order-2']);
    expect(ids('', '6b8f')).toEqual(['Order-1', 'order-2']);
  });

  it('has as many accepted steps as epochs', () => {
    expect(acceptedOf([workflow('a', { epoch: 3 }), workflow('b', { epoch: 4 })])).toBe(7);
  });
});

function run(facts: Partial<ApiRun> = {}): ApiRun {
  const common = { function: 'fulfil', phase: 'running', tries: 0, dueInMs: null } as const;
  return { ...common, waits: [], error: null, ...facts };
}

const sleeping = { kind: 'sleep', name: 'nap', until: 9 } as const;
const waiting = { kind: 'signal', name: 'go', until: null } as const;

describe('what functions do', () => {
  const all = [
    workflow('a', { run: run(), isHeld: true }),
    workflow('b', { run: run() }),
    workflow('c', { run: run({ phase: 'suspended', waits: [sleeping] }) }),
    workflow('d', { run: run({ phase: 'suspended', waits: [sleeping, waiting] }) }),
    workflow('e', { run: run({ phase: 'retrying', error: 'No stock' }) }),
    workflow('f', { run: run({ phase: 'failed', function: 'bill' }) }),
    workflow('g', { run: run({ phase: 'done' }) }),
    // Held again after a sleep: the store says what it waited for until it is suspended again.
    workflow('h', { run: run({ phase: 'suspended', waits: [sleeping] }), isHeld: true }),
    // Left to another instance.
    workflow('i', { run: run({ phase: 'suspended', dueInMs: 0 }) }),
    workflow('z'),
  ];
  const ids = (filter: object) =>
    filtered(all, { text: '', name: '', state: '', ...filter }).map(({ id }) => id);

  it('is counted by state, and only where there are functions', () => {
    expect(runCounts(all)).toEqual({
      ...{ running: 2, due: 2, sleeping: 1, waiting: 1, retrying: 1, failed: 1, done: 1 },
    });
    expect(runCounts([workflow('z')])).toBeNull();
  });

  it('is filtered by state, by function, and searched by error and signal', () => {
    expect(ids({ state: 'running' })).toEqual(['a', 'h']);
    expect(ids({ state: 'due' })).toEqual(['b', 'i']);
    expect(ids({ state: 'waiting' })).toEqual(['d']);
    expect(ids({ name: 'bill' })).toEqual(['f']);
    expect(ids({ name: NO_FUNCTION })).toEqual(['z']);
    expect(ids({ text: 'no stock' })).toEqual(['e']);
    expect(ids({ text: 'go' })).toEqual(['d']);
    expect(functionOptions(all, 'typed')).toEqual({
      ...{ '': 'all functions', bill: 'bill', fulfil: 'fulfil', typed: 'typed' },
      [NO_FUNCTION]: 'no function',
    });
  });

  it('is asked for of the server, in words that it knows', () => {
    const of = (filter: object) => serverFilter({ text: '', name: '', state: '', ...filter });
    expect(of({})).toBeNull();
    expect(of({ name: NO_FUNCTION, text: 'x', state: 'held' })).toBeNull();
    expect(of({ name: 'bill', state: 'sleeping' })).toEqual({
      ...{ function: 'bill', phase: 'suspended' },
    });
    // What the server leaves out, the filter of the page cannot find.
    expect(of({ state: 'running' })?.phase).toEqual(['running', 'suspended', 'retrying']);
  });
});

describe('the steps of a function', () => {
  const detail = (facts: Partial<WorkflowDetail> = {}): WorkflowDetail => {
    const empty = { bytes: 4, text: 'null', isCut: false };
    const kept = { input: empty, result: null, steps: [], signals: [] };
    const history = [{ ...step('claimed'), at: 100 }];
    return {
      ...workflow('w', { isHeld: true }),
      run: { ...run(), ...kept },
      steps: history,
      ...facts,
    };
  };
  const failure = (at: number, tries: number, facts: object = {}): ApiEvent => ({
    ...{ position: String(at), at, instance: 'ana-1-00000000', event: 'step.failed' },
    ...{ workflow: 'w', step: 'charge', tries, why: 'away', retryInMs: 50, ...facts },
  });

  it('B-20 show one that fails just now, with each failed try and when it is tried again', () => {
    const events = [
      failure(300, 2),
      failure(200, 1),
      failure(50, 9),
      failure(300, 7, { workflow: 'x' }),
    ];
    expect(listedSteps(detail(), events)).toMatchObject([
      {
        ...{ name: 'charge', state: 'retrying', tries: 3, until: 350 },
        failed: [
          { at: 200, tries: 1, error: 'away' },
          { at: 300, tries: 2, error: 'away' },
        ],
      },
    ]);
  });

  it('show none of it where no instance holds the workflow, or no function runs it', () => {
    expect(listedSteps(detail({ isHeld: false }), [failure(300, 1)])).toEqual([]);
    expect(listedSteps(detail({ run: null }), [failure(300, 1)])).toEqual([]);
  });

  it.each([
    ['started', { function: 'f' }, 'Started, for function f'],
    ['kept', { name: 'nap', step: 'sleep', isDone: false }, 'nap began'],
    ['signalled', { name: 'go' }, 'Signal go came'],
    [
      'paused',
      { phase: 'suspended', detail: '[{"signal":"go"},{"sleep":"nap"}]' },
      'Suspended: waits for signal go or sleep nap',
    ],
    [
      'paused',
      { phase: 'suspended', detail: '[{"sleep":"na' },
      'Suspended: waits for [{"sleep":"na',
    ],
    [
      'paused',
      { phase: 'suspended', detail: '{"signal":"another instance"}' },
      'Suspended: waits for another instance',
    ],
    [
      'paused',
      { phase: 'failed', detail: '{"name":"E","message":"a \\"b\\" c","det' },
      'The function failed for the last time: a "b" c',
    ],
    [
      'paused',
      { phase: 'retrying', detail: '{"message":"cut off' },
      'The function failed, and is tried again: cut off',
    ],
    [
      'emitted',
      { actionId: 'a', target: 't', type: 'SHIP', payloadBytes: 2_400 },
      'Action a for t emitted: SHIP, 2.4 kB',
    ],
  ])('B-20 are told in the history: %s', (kind, facts, words) => {
    expect(toldOf([step(kind, facts)], [])[0]?.words).toBe(words);
  });
});
