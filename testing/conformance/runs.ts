import assert from 'node:assert/strict';
import {
  type KeepStep,
  type PauseStep,
  RUN_SIGNALS_MOST,
  RUN_STEPS_MOST,
  runTopic,
} from '../../src/store/port/run-store.ts';
import { CALL, type Check, type Kit, SHORT_MS } from './kit.ts';
import { begun, Orchestrator, succeed } from './orchestrator.ts';

/** What a store keeps of workflow functions. */
export function running(check: Check): void {
  starting(check);
  givingOut(check);
  keeping(check);
  calling(check);
  signalling(check);
  pausing(check);
}

const nameOf = (kit: Kit) => kit.topic('fulfil');

async function started(kit: Kit, name = 'a', input: unknown = { n: 1 }): Promise<string> {
  const { id } = new Orchestrator(kit, { name });
  const reply = await kit.store.runs.start(id, { function: nameOf(kit), input }, CALL);
  assert.deepEqual(reply, { kind: 'started' });
  return id;
}

/** A run whose workflow an orchestrator holds. */
async function held(kit: Kit, name = 'a'): Promise<Orchestrator> {
  await started(kit, name);
  await given(kit);
  return begun(kit, name);
}

async function given(kit: Kit, { most = 10, graceMs = 60_000 } = {}): Promise<string[]> {
  const reply = await kit.store.runs.due([nameOf(kit)], { ...CALL, most, graceMs });
  return reply.runs.map(({ id }) => id);
}

const nextInMs = async (kit: Kit) =>
  (await kit.store.runs.due([nameOf(kit)], { ...CALL, most: 0, graceMs: 1 })).nextInMs;

function keep(flow: Orchestrator, name: string, more: Partial<KeepStep> = {}) {
  const step = { leaseId: flow.leaseId, name, kind: 'step', isDone: true, value: name } as const;
  return flow.kit.store.runs.keep(flow.id, { ...step, ...more }, CALL);
}

function pause(flow: Orchestrator, more: Partial<PauseStep> = {}) {
  const step = { phase: 'suspended', signalCount: 0, wakeInMs: null, tries: 0 } as const;
  const rest = { leaseId: flow.leaseId, waits: null, value: null, forgets: [] };
  return flow.kit.store.runs.pause(flow.id, { ...step, ...rest, ...more }, CALL);
}

const signal = (kit: Kit, id: string, signalId: string, value: unknown = null) =>
  kit.store.runs.signal(id, { id: signalId, name: 'approved', value }, CALL);

async function load(kit: Kit, id: string) {
  const found = await kit.store.runs.load(id, CALL);
  assert(found !== null);
  return found;
}

function starting(check: Check): void {
  check('B-19 starts a run once, and finds it afterwards', async (kit) => {
    const id = await started(kit);
    const again = await kit.store.runs.start(id, { function: 'other', input: 2 }, CALL);
    assert.deepEqual(again, { kind: 'found', function: nameOf(kit) });
    const { run, input, steps, signals, signalCount } = await load(kit, id);
    assert.deepEqual([run?.phase, run?.tries, input], ['running', 0, { n: 1 }]);
    assert.deepEqual([steps, signals, signalCount], [[], [], 0]);
    const [workflow] = await kit.store.workflows.read([id], CALL);
    assert.deepEqual(
      [workflow?.epoch, workflow?.state, workflow?.leaseId],
      [0, 'initialized', null],
    );
  });
  check('B-19 finds a workflow that no function runs', async (kit) => {
    const flow = await begun(kit);
    const reply = await kit.store.runs.start(flow.id, { function: 'f', input: null }, CALL);
    assert.deepEqual(reply, { kind: 'found', function: null });
    assert.deepEqual((await load(kit, flow.id)).run, null);
    assert.deepEqual(await kit.store.runs.read([flow.id, 'absent'], CALL), [null, null]);
    assert.equal(await kit.store.runs.load(kit.topic('absent'), CALL), null);
  });
  check('B-19 tells who listens that a run is due', async (kit) => {
    const heard: string[] = [];
    let told = () => {};
    const telling = new Promise<void>((resolve) => (told = resolve));
    const subscriber = {
      onMessage: (id: string) => {
        heard.push(id);
        told();
      },
      onGap: () => {},
    };
    const stop = await kit.store.signals.subscribe(runTopic(nameOf(kit)), subscriber);
    const id = await started(kit);
    await telling;
    assert.deepEqual(heard, [id]);
    stop();
  });
  check('removes a run with its workflow', async (kit) => {
    const flow = await held(kit);
    await keep(flow, 'x');
    await signal(kit, flow.id, 's');
    await kit.release(flow.key, flow.leaseId, flow.fence);
    assert.equal(await kit.store.workflows.remove(flow.id, CALL), 'removed');
    assert.equal(await kit.store.runs.load(flow.id, CALL), null);
    await started(kit);
    const { steps, signals } = await load(kit, flow.id);
    assert.deepEqual([steps, signals], [[], []]);
  });
}

function givingOut(check: Check): void {
  check('B-19 gives a run out once, and again when no orchestrator took it', async (kit) => {
    const id = await started(kit);
    assert.deepEqual(await given(kit, { graceMs: SHORT_MS }), [id]);
    assert.deepEqual(await given(kit), []);
    await kit.elapse(SHORT_MS + 10);
    assert.deepEqual(await given(kit), [id]);
  });
  check('B-19 gives out no more than asked for, the first one first', async (kit) => {
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      ids.push(await started(kit, name));
      await kit.elapse(2);
    }
    assert.deepEqual(await given(kit, { most: 2 }), ids.slice(0, 2));
    assert.deepEqual(await given(kit), ids.slice(2));
  });
  check('B-19 gives a held run to nobody until its lease has expired', async (kit) => {
    const id = await started(kit);
    assert.deepEqual(await given(kit, { graceMs: 1 }), [id]);
    const flow = await new Orchestrator(kit).acquire(SHORT_MS);
    await flow.begin();
    await kit.elapse(10);
    assert.deepEqual(await given(kit), []);
    await kit.elapse(SHORT_MS + 100);
    assert.deepEqual(await given(kit), [id]);
  });
}

function keeping(check: Check): void {
  check('B-16 keeps a step once: the first value stays', async (kit) => {
    const flow = await held(kit);
    const first = await keep(flow, 'x', { value: { ok: [1, 'ä\n{}'] } });
    assert(first.kind === 'done' && first.atMs === first.nowMs, JSON.stringify(first));
    await kit.elapse(5);
    const again = await keep(flow, 'x', { value: 'other' });
    assert(again.kind === 'done' && again.atMs === first.atMs && again.nowMs > first.nowMs);
    const { steps } = await load(kit, flow.id);
    const [{ atMs, ...step } = assert.fail()] = steps;
    assert.deepEqual(step, {
      name: 'x',
      kind: 'step',
      isDone: true,
      value: { ok: [1, 'ä\n{}'] },
    });
    assert.deepEqual([steps.length, atMs], [1, first.atMs]);
  });
  check('B-17 a step that is not done keeps its time, and is done later', async (kit) => {
    const flow = await held(kit);
    const first = await keep(flow, 'nap', { kind: 'sleep', isDone: false, value: { ms: 5 } });
    await kit.elapse(5);
    await keep(flow, 'nap', { kind: 'sleep', isDone: false, value: { ms: 9 } });
    const before = (await load(kit, flow.id)).steps[0];
    assert.deepEqual([before?.isDone, before?.value], [false, { ms: 5 }]);
    const done = await keep(flow, 'nap', { kind: 'sleep', value: { ms: 5 } });
    assert(first.kind === 'done' && done.kind === 'done' && done.atMs === first.atMs);
    assert.equal((await load(kit, flow.id)).steps[0]?.isDone, true);
  });
  check('B-16 keeps nothing for an orchestrator that is not in tenure', async (kit) => {
    const flow = await held(kit);
    const { next } = await succeed(flow);
    assert.deepEqual(await keep(flow, 'x'), { kind: 'not-held', leaseId: next.leaseId });
    assert.deepEqual(await pause(flow, { phase: 'done' }), {
      kind: 'not-held',
      leaseId: next.leaseId,
    });
    await next.revoke();
    assert.deepEqual(await keep(next, 'x'), { kind: 'not-held', leaseId: null });
    assert.deepEqual((await load(kit, flow.id)).steps, []);
  });
  check('B-16 neither needs nor changes the epoch', async (kit) => {
    const flow = await held(kit);
    await flow.emit('a');
    await keep(flow, 'x');
    await flow.emit('b');
    assert.equal((await flow.read())?.epoch, 2);
    const kinds = (await flow.history()).map(({ what, epoch }) => [what.kind, epoch]);
    assert.deepEqual(kinds.slice(-2), [
      ['kept', 1],
      ['emitted', 2],
    ]);
  });
}

function calling(check: Check): void {
  check('B-15 keeps the step of a call with its action, in one step', async (kit) => {
    const flow = await held(kit);
    const step = { name: 'ship', value: { hash: 'h' } };
    await flow.emit(flow.action('x', { step, about: { type: 'SHIP', bytes: 17 } }));
    await flow.tryEmit([flow.action('x', { step: { name: 'ship', value: 'other' } })]);
    const { steps } = await load(kit, flow.id);
    assert.deepEqual(
      steps.map(({ name, kind, isDone, value }) => [name, kind, isDone, value]),
      [['ship', 'call', true, { hash: 'h' }]],
    );
    const { what } = (await flow.history()).at(-1) ?? {};
    assert.deepEqual(what, {
      kind: 'emitted',
      actionId: 'x',
      target: flow.target,
      type: 'SHIP',
      payloadBytes: 17,
    });
  });
  check('B-20 the history has each failed try of an action with its error', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    await flow.finish({ outcome: 'retry', afterMs: 0, error: 'no stock\nat all' });
    await flow.finish({ outcome: 'retry', afterMs: 0 });
    await flow.finish({ outcome: 'dead', value: { message: 'gone' }, reason: 'gone' });
    const of = { actionId: 'x', target: flow.target };
    assert.deepEqual(
      (await flow.history()).slice(-2).map(({ what }) => what),
      [
        { kind: 'retried', ...of, tries: 1, error: 'no stock\nat all' },
        { kind: 'settled', ...of, outcome: 'dead', tries: 3, error: 'gone' },
      ],
    );
  });
  check('B-16 refuses more steps than a workflow may have', async (kit) => {
    const flow = await held(kit);
    for (let n = 0; n < RUN_STEPS_MOST; n += 100)
      await Promise.all(Array.from({ length: 100 }, (_, i) => keep(flow, `s${n + i}`)));
    const reply = await keep(flow, 'one more');
    assert(reply.kind === 'full' && reply.steps === RUN_STEPS_MOST, JSON.stringify(reply));
    assert.equal((await keep(flow, 's1')).kind, 'done');
  });
}

function signalling(check: Check): void {
  check('B-18 keeps signals in order until a step receives them, each once', async (kit) => {
    const flow = await held(kit);
    assert.deepEqual(await signal(kit, flow.id, 'one', 1), { kind: 'kept' });
    await kit.elapse(2);
    assert.deepEqual(await signal(kit, flow.id, 'two', 2), { kind: 'kept' });
    const { signals, signalCount } = await load(kit, flow.id);
    assert.deepEqual(
      signals.map(({ id, name, value }) => [id, name, value]),
      [
        ['one', 'approved', 1],
        ['two', 'approved', 2],
      ],
    );
    assert.equal(signalCount, 2);
    await keep(flow, 'got', { kind: 'signal', value: 1, receives: 'one' });
    const after = await load(kit, flow.id);
    assert.deepEqual([after.signals.map(({ id }) => id), after.signalCount], [['two'], 2]);
  });
  check('B-18 keeps a signal that is sent again once, even if it was received', async (kit) => {
    const flow = await held(kit);
    await signal(kit, flow.id, 'one', 1);
    assert.deepEqual(await signal(kit, flow.id, 'one', 1), { kind: 'kept' });
    await keep(flow, 'got', { kind: 'signal', receives: 'one' });
    assert.deepEqual(await signal(kit, flow.id, 'one', 1), { kind: 'kept' });
    const { signals, signalCount } = await load(kit, flow.id);
    assert.deepEqual([signals, signalCount], [[], 1]);
  });
  check('B-18 keeps no signal to a workflow that does not exist', async (kit) => {
    const id = kit.topic('absent');
    assert.deepEqual(await signal(kit, id, 'one'), { kind: 'absent' });
    assert.equal(await kit.store.runs.load(id, CALL), null);
  });
  check('B-18 a signal makes a suspended run due', async (kit) => {
    const flow = await held(kit);
    await pause(flow, { waits: 'approved' });
    await kit.release(flow.key, flow.leaseId, flow.fence);
    assert.deepEqual([await given(kit), await nextInMs(kit)], [[], null]);
    await signal(kit, flow.id, 'one');
    assert.deepEqual(await given(kit), [flow.id]);
  });
  check('B-18 refuses more signals than a workflow may have', async (kit) => {
    const flow = await held(kit);
    for (let n = 0; n < RUN_SIGNALS_MOST; n += 100)
      await Promise.all(Array.from({ length: 100 }, (_, i) => signal(kit, flow.id, `s${n + i}`)));
    const reply = await signal(kit, flow.id, 'one more');
    assert(reply.kind === 'full' && reply.signals === RUN_SIGNALS_MOST, JSON.stringify(reply));
  });
}

function pausing(check: Check): void {
  check('B-17 a suspended run is due when its time has come', async (kit) => {
    const flow = await held(kit);
    assert.deepEqual(await pause(flow, { wakeInMs: SHORT_MS, waits: { sleep: 'nap' } }), {
      kind: 'done',
    });
    await kit.release(flow.key, flow.leaseId, flow.fence);
    const [run] = await kit.store.runs.read([flow.id], CALL);
    assert.deepEqual([run?.phase, run?.waits], ['suspended', { sleep: 'nap' }]);
    assert(run?.dueInMs && run.dueInMs > 0 && run.dueInMs <= SHORT_MS, JSON.stringify(run));
    const nextMs = await nextInMs(kit);
    assert(nextMs !== null && nextMs > 0 && nextMs <= SHORT_MS);
    assert.deepEqual(await given(kit), []);
    await kit.elapse(SHORT_MS + 10);
    assert.deepEqual(await given(kit), [flow.id]);
    assert.equal((await load(kit, flow.id)).run?.phase, 'running');
  });
  check('B-18 does not suspend a run that has a signal it does not know of', async (kit) => {
    const flow = await held(kit);
    await signal(kit, flow.id, 'one');
    assert.deepEqual(await pause(flow), { kind: 'signalled' });
    assert.equal((await load(kit, flow.id)).run?.phase, 'running');
    assert.deepEqual(await pause(flow, { signalCount: 1 }), { kind: 'done' });
  });
  check('B-18 a run that was signalled before its lease was released is due soon', async (kit) => {
    const flow = await held(kit);
    await pause(flow);
    await signal(kit, flow.id, 'one');
    assert.deepEqual(await given(kit), []);
    await kit.release(flow.key, flow.leaseId, flow.fence);
    await kit.elapse(300);
    assert.deepEqual(await given(kit), [flow.id]);
  });
  check('B-19 a run that is done is never due again, and takes no signal', async (kit) => {
    const flow = await held(kit);
    await pause(flow, { phase: 'done', value: { receipt: 7 } });
    await kit.release(flow.key, flow.leaseId, flow.fence);
    const [run] = await kit.store.runs.read([flow.id], CALL);
    assert.deepEqual([run?.phase, run?.value, run?.dueInMs], ['done', { receipt: 7 }, null]);
    assert.deepEqual(await signal(kit, flow.id, 'late'), { kind: 'ended' });
    assert.deepEqual(await kit.store.runs.restart(flow.id, CALL), {
      kind: 'not-failed',
      phase: 'done',
    });
    await kit.elapse(10);
    assert.deepEqual(await given(kit), []);
  });
  check('B-19 a failed run keeps its error, and can be restarted', async (kit) => {
    const flow = await held(kit);
    await keep(flow, 'kept');
    await keep(flow, 'bad', { value: { error: 'x' } });
    await pause(flow, { phase: 'failed', tries: 5, value: { message: 'no' }, forgets: ['bad'] });
    await kit.release(flow.key, flow.leaseId, flow.fence);
    assert.deepEqual(await given(kit), []);
    const { run, steps } = await load(kit, flow.id);
    assert.deepEqual([run?.phase, run?.tries, run?.value], ['failed', 5, { message: 'no' }]);
    assert.deepEqual(
      steps.map(({ name }) => name),
      ['kept'],
    );
    const reply = await kit.store.runs.restart(flow.id, CALL);
    assert.deepEqual(reply, { kind: 'restarted', function: nameOf(kit) });
    assert.deepEqual(await given(kit), [flow.id]);
    assert.equal((await load(kit, flow.id)).run?.tries, 0);
    const absent = await kit.store.runs.restart(kit.topic('absent'), CALL);
    assert.deepEqual(absent, { kind: 'absent' });
  });
}
