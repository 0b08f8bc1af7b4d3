import assert from 'node:assert/strict';
import { streamTopic } from '../../src/store/port/stream-store.ts';
import { actionStream, UNREAD_MOST, UNRESOLVED_MOST } from '../../src/store/port/workflow-store.ts';
import { CALL, type Check } from './kit.ts';
import { begun, Orchestrator, workflowId } from './orchestrator.ts';

/** What a store does for the orchestrator of a workflow, while there is one. */
export function orchestrating(check: Check): void {
  beginning(check);
  emitting(check);
  limiting(check);
  emittingAgain(check);
  updating(check);
  listing(check);
}

function beginning(check: Check): void {
  check('W-01 makes a workflow at epoch 0, in state initialized', async (kit) => {
    const flow = await new Orchestrator(kit).acquire();
    assert.equal(await flow.read(), null);
    const { workflow, reemitted, dropped } = await flow.begin();
    assert.deepEqual([reemitted, dropped], [[], []]);
    const { createdAtMs, changedAtMs, ...rest } = workflow;
    assert.deepEqual(rest, {
      id: flow.id,
      leaseId: flow.leaseId,
      inbox: flow.inbox,
      epoch: 0,
      state: 'initialized',
      unresolved: 0,
      parked: 0,
      unread: 0,
    });
    assert(createdAtMs > 1_600_000_000_000 && changedAtMs >= createdAtMs);
    assert.deepEqual(await flow.read(), workflow);
  });
  check('begins nothing for who does not hold the lease, and says who does', async (kit) => {
    const holder = await new Orchestrator(kit).acquire();
    const other = new Orchestrator(kit, { leaseId: 'tenure-2' });
    assert.deepEqual(await other.tryBegin(), { kind: 'not-held', leaseId: holder.leaseId });
    await kit.release(holder.key, holder.leaseId, holder.fence);
    assert.deepEqual(await holder.tryBegin(), { kind: 'not-held', leaseId: null });
    assert.equal(await holder.read(), null);
  });
  check('W-01 begins nothing with a fence that the lease had before', async (kit) => {
    const flow = await new Orchestrator(kit).acquire();
    const late = flow.fence;
    await flow.acquire();
    flow.fence = late;
    assert.deepEqual(await flow.tryBegin(), { kind: 'not-held', leaseId: flow.leaseId });
    assert.equal(await flow.read(), null);
  });
  check('W-01 lets one of many that claim a workflow at once begin', async (kit) => {
    const claimants = Array.from(
      { length: 10 },
      (_, n) => new Orchestrator(kit, { leaseId: `tenure-${n}` }),
    );
    const replies = await Promise.all(
      claimants.map(async (each) => {
        const reply = await kit.acquire(each.key, each.leaseId);
        if (reply.kind === 'granted') each.fence = reply.fence;
        return each.tryBegin();
      }),
    );
    const begins = replies.filter(({ kind }) => kind === 'begun');
    assert.equal(begins.length, 1);
  });
  check('only says how things are when a tenure begins again', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    await flow.update('going');
    const [before, history] = [await flow.read(), await flow.history()];
    const { workflow, reemitted } = await flow.begin();
    assert.deepEqual([workflow, reemitted], [before, []]);
    assert.deepEqual(await flow.history(), history);
  });
}

function emitting(check: Check): void {
  check('W-02 emits actions with the epochs from the expected one on', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    await flow.emit('z');
    const { epoch, unresolved } = (await flow.read()) ?? {};
    assert.deepEqual([epoch, unresolved], [3, 3]);
  });
  check('W-02 keeps the body of an action as it is', async (kit) => {
    const flow = await begun(kit);
    const body = JSON.stringify({ a: [1e21, 0.1, null, 'ä\u0000"\n {} 😀'], b: {}, c: [] });
    await flow.emit(flow.action('x', { body, priority: 10 }));
    const { action } = await flow.takeOne();
    assert.deepEqual(action, {
      id: 'x',
      target: flow.target,
      priority: 10,
      body,
      leaseId: flow.leaseId,
      epoch: 0,
    });
  });
  check('W-02 emits nothing at another epoch than the workflow has', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    for (const epoch of [0, 1, 3, 100]) {
      const reply = await flow.tryEmit([flow.action('late')], { epoch });
      assert.deepEqual(reply, { kind: 'epoch', epoch: 2 });
    }
    assert.equal((await flow.read())?.unresolved, 2);
  });
  check('W-07 takes one of many steps at the same epoch', async (kit) => {
    const flow = await begun(kit);
    const emits = Array.from({ length: 10 }, (_, n) => flow.tryEmit([flow.action(`x${n}`)]));
    const updates = Array.from({ length: 10 }, (_, n) =>
      flow.store.update(flow.id, { ...flow.ref, state: n }, CALL),
    );
    const replies = await Promise.all([...emits, ...updates]);
    assert.equal(replies.filter(({ kind }) => kind === 'done').length, 1);
    assert.equal((await flow.read())?.epoch, 1);
  });
  check('tells who listens that there is something to take', async (kit) => {
    const flow = await begun(kit);
    const stream = actionStream(flow.target);
    const heard: string[] = [];
    let told = () => {};
    const telling = new Promise<void>((resolve) => (told = resolve));
    const onMessage = (message: string) => {
      heard.push(message);
      told();
    };
    const subscriber = { onMessage, onGap: () => {} };
    const unsubscribe = await kit.store.signals.subscribe(streamTopic(stream), subscriber);
    await flow.emit('x');
    await telling;
    assert.deepEqual(heard, [stream]);
    unsubscribe();
    assert((await kit.store.streams.names(CALL)).includes(stream));
  });
}

function limiting(check: Check): void {
  check('emits no more than may be unresolved', async (kit) => {
    const flow = await begun(kit);
    const ids = Array.from({ length: UNRESOLVED_MOST }, (_, n) => `x${n}`);
    for (let at = 0; at < ids.length; at += 250) await flow.emit(...ids.slice(at, at + 250));
    const full = { kind: 'full', unresolved: UNRESOLVED_MOST, unread: 0 };
    assert.deepEqual(await flow.tryEmit([flow.action('one more')]), full);
    await flow.finish();
    assert.deepEqual(await flow.tryEmit([flow.action('a'), flow.action('b')]), {
      kind: 'full',
      unresolved: UNRESOLVED_MOST - 1,
      unread: 1,
    });
    await flow.emit('one more');
    assert.equal((await flow.read())?.unresolved, UNRESOLVED_MOST);
  });
  check('W-02 emits no more than may be unread', async (kit) => {
    const flow = await begun(kit);
    await leaveUnread(flow, UNREAD_MOST);
    const before = [await flow.read(), await flow.history()];
    const [first, second] = (await flow.results()).map(({ position }) => position);
    assert(first !== undefined && second !== undefined);
    const [a, b] = [flow.action('a'), flow.action('b')];
    const full = { kind: 'full', unresolved: 0, unread: UNREAD_MOST };
    assert.deepEqual(await flow.tryEmit([a]), full);
    // What the step marks as read makes room, once each; a step that is refused marks nothing.
    const read = [first, first, '0-7', 'nonsense'];
    assert.deepEqual(await flow.tryEmit([a, b], { read }), { ...full, unread: UNREAD_MOST - 1 });
    assert.deepEqual([await flow.read(), await flow.history()], before);
    // What is known is accepted, as ever.
    const { epoch } = flow;
    assert.deepEqual(await flow.tryEmit([flow.action('x0')]), { kind: 'done', epoch });
    assert.deepEqual(await flow.tryEmit([a], { read }), { kind: 'done', epoch: epoch + 1 });
    flow.epoch++;
    // An action without a result counts: its result will be unread.
    const { unresolved, unread } = (await flow.read()) ?? {};
    assert.deepEqual([unresolved, unread], [1, UNREAD_MOST - 1]);
    const fullAgain = { kind: 'full', unresolved: 1, unread: UNREAD_MOST - 1 };
    assert.deepEqual(await flow.tryEmit([b]), fullAgain);
    await flow.store.markRead(flow.id, { ...flow.ref, read: [second] }, CALL);
    await flow.emit(b);
  });
}

/**
 * Has so many actions done that nobody reads the results of. Many targets, because one target works
 * on one action of a workflow at a time.
 */
async function leaveUnread(flow: Orchestrator, count: number): Promise<void> {
  const targets = Array.from({ length: 100 }, (_, n) => `${flow.target}-${n}`);
  for (let done = 0; done < count; done += UNRESOLVED_MOST) {
    const actions = Array.from({ length: UNRESOLVED_MOST }, (_, n) =>
      flow.action(`x${done + n}`, { target: targets[n % targets.length] ?? '' }),
    );
    for (let at = 0; at < actions.length; at += 250)
      await flow.emit(...actions.slice(at, at + 250));
    const doing = targets.map(async (target) => {
      for (let n = 0; n < UNRESOLVED_MOST / targets.length; n++)
        assert.equal(await flow.settle(await flow.takeOne({ target })), 'done');
    });
    await Promise.all(doing);
    // Thousands of calls may take longer than the lease lasts.
    await flow.kit.renew(flow.key, flow.leaseId);
  }
}

function emittingAgain(check: Check): void {
  check('emits once what is sent twice, whatever has happened since', async (kit) => {
    const flow = await begun(kit);
    const actions = [flow.action('x'), flow.action('y')];
    await flow.emit(...actions);
    assert.deepEqual(await flow.tryEmit(actions, { epoch: 0 }), { kind: 'done', epoch: 2 });
    await flow.update('next');
    await flow.finish();
    assert.deepEqual(await flow.tryEmit(actions, { epoch: 0 }), { kind: 'done', epoch: 3 });
    assert.deepEqual(await flow.tryEmit([flow.action('x')]), { kind: 'done', epoch: 3 });
    const { unresolved, epoch } = (await flow.read()) ?? {};
    assert.deepEqual([unresolved, epoch], [1, 3]);
    const emitted = (await flow.history()).filter(({ what }) => what.kind === 'emitted');
    assert.equal(emitted.length, 2);
  });
  check('emits nothing of what is known in part', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    const reply = await flow.tryEmit([flow.action('x'), flow.action('y')]);
    assert.deepEqual(reply, { kind: 'epoch', epoch: 1 });
    assert.equal((await flow.read())?.unresolved, 1);
  });
  check('knows ids of one workflow from those of another', async (kit) => {
    const [a, b] = [await begun(kit, 'a'), await begun(kit, 'b')];
    await a.emit('x');
    await b.emit('x');
    assert.equal((await a.take()).length, 2);
  });
}

function updating(check: Check): void {
  check('W-03 sets the state if the epoch is the expected one', async (kit) => {
    const flow = await begun(kit);
    const state = { text: 'ä\u0000"', list: [null, 1.5, []], deep: { x: {} } };
    assert.deepEqual(await flow.update(state), { kind: 'done', epoch: 1 });
    assert.deepEqual((await flow.read())?.state, state);
    for (const epoch of [0, 2]) {
      assert.deepEqual(await flow.update('other', epoch), { kind: 'epoch', epoch: 1 });
    }
    assert.deepEqual((await flow.read())?.state, state);
  });
  check('W-03 says of an update that is sent twice that it was taken', async (kit) => {
    const flow = await begun(kit);
    await flow.update({ a: 1 });
    assert.deepEqual(await flow.update({ a: 1 }, 0), { kind: 'done', epoch: 1 });
    await flow.emit('x');
    assert.deepEqual(await flow.update({ a: 1 }, 1), { kind: 'epoch', epoch: 2 });
    assert.deepEqual(await flow.update({ a: 1 }, 0), { kind: 'epoch', epoch: 2 });
    const updated = (await flow.history()).filter(({ what }) => what.kind === 'updated');
    assert.equal(updated.length, 1);
  });
}

function listing(check: Check): void {
  check('lists workflows in the order of their ids, page by page', async (kit) => {
    for (const name of ['c', 'a', 'b']) await begun(kit, name);
    const { list } = kit.store.workflows;
    const found: string[] = [];
    for (let after = workflowId(kit, ''); found.length < 3; after = found.at(-1) ?? '') {
      const page = await list.call(kit.store.workflows, { ...CALL, after, most: 1 });
      assert.equal(page.ids.length, 1);
      if (found.length < 2) assert.equal(page.more, true);
      found.push(...page.ids);
    }
    assert.deepEqual(
      found,
      ['a', 'b', 'c'].map((name) => workflowId(kit, name)),
    );
  });
  check('forgets a workflow that nobody holds', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', flow.action('y', { target: kit.topic('other') }));
    const held = await flow.takeOne();
    assert.equal(await flow.store.remove(flow.id, CALL), 'held');
    await kit.release(flow.key, flow.leaseId, flow.fence);
    assert.equal(await flow.store.remove(flow.id, CALL), 'removed');
    assert.equal(await flow.store.remove(flow.id, CALL), 'absent');
    assert.equal(await flow.read(), null);
    assert.deepEqual([await flow.results(), await flow.history()], [[], []]);
    assert.equal(await flow.settle(held), 'gone');
    assert.deepEqual(await flow.take(10, { target: kit.topic('other') }), []);
    assert.deepEqual(await flow.revoke(), { kind: 'not-found' });
    const next = await new Orchestrator(kit, { leaseId: 'tenure-2' }).acquire();
    const { workflow, reemitted } = await next.begin();
    assert.deepEqual([workflow.epoch, reemitted], [0, []]);
  });
  check('reads many workflows in order, and nothing where there is none', async (kit) => {
    await begun(kit, 'a');
    await begun(kit, 'b');
    const ids = ['b', 'none', 'a'].map((name) => workflowId(kit, name));
    const found = await kit.store.workflows.read(ids, CALL);
    assert.deepEqual(
      found.map((each) => each?.id ?? null),
      [ids[0], null, ids[2]],
    );
  });
}
