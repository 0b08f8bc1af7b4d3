import assert from 'node:assert/strict';
import { actionStream, HISTORY_STATE_MOST } from '../../src/store/port/workflow-store.ts';
import { CALL, type Check, SHORT_MS } from './kit.ts';
import { begun, idsOf, succeed, takenOf, workflowId } from './orchestrator.ts';

/** What comes back from processors, and what is told of a workflow. */
export function resulting(check: Check): void {
  dying(check);
  reviving(check);
  revivingInTurn(check);
  revivingNothing(check);
  bringingBack(check);
  markingAgain(check);
  keeping(check);
  telling(check);
}

function dying(check: Check): void {
  check('W-13 puts a dead action aside, and the next has its turn', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const { action } = await flow.die();
    const stream = actionStream(flow.target);
    const { entries, more } = await kit.store.streams.dead(stream, CALL);
    assert.equal(more, false);
    const [entry] = entries;
    assert(entry !== undefined && entries.length === 1);
    assert.deepEqual([entry.lane, entry.reason, entry.tries], [flow.id, 'poison', 1]);
    assert.deepEqual(entry.value, action);
    assert(entry.atMs > 1_600_000_000_000);
    const [result] = await flow.results();
    assert.deepEqual([result?.outcome, result?.value], ['dead', 'too often']);
    assert.deepEqual(takenOf(await flow.take()), [['y', 1]]);
    assert.equal(await kit.store.streams.drop(stream, [entry.id], CALL), 1);
    assert.deepEqual(await flow.store.revive(flow.target, entry.id, CALL), { kind: 'absent' });
  });
  check('W-13 parks a dead action again, for its orchestrator to emit anew', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    await flow.die();
    const inbox = await kit.inbox('orchestrator');
    const reply = await flow.revive();
    assert.deepEqual(reply, { kind: 'revived', workflow: flow.id });
    assert.equal(await inbox.next(), flow.id);
    inbox.unsubscribe();
    const { parked, unresolved } = (await flow.read()) ?? {};
    assert.deepEqual([parked, unresolved], [1, 2]);
    assert.equal(await flow.store.resultOf(flow.id, 'x', CALL), null);
    assert.deepEqual(takenOf([await flow.finish()]), [['y', 1]]);
    assert.deepEqual(await flow.take(), []);
    const unparked = await flow.store.unpark(flow.id, flow.ref, CALL);
    assert.deepEqual(unparked, { kind: 'done', epoch: 3 });
    const again = await flow.takeOne();
    assert.deepEqual([takenOf([again]), again.tries], [[['x', 2]], 1]);
    assert.equal(await flow.settle(again), 'done');
    assert.equal((await flow.store.resultOf(flow.id, 'x', CALL))?.epoch, 2);
  });
}

function reviving(check: Check): void {
  check('unparks nothing at another epoch, and takes none where nothing is parked', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    await flow.die();
    await flow.revive();
    const wrong = { ...flow.ref, epoch: 0 };
    assert.deepEqual(await flow.store.unpark(flow.id, wrong, CALL), { kind: 'epoch', epoch: 1 });
    assert.deepEqual(await flow.take(), []);
    for (const epoch of [1, 2]) {
      const reply = await flow.store.unpark(flow.id, { ...flow.ref, epoch }, CALL);
      assert.deepEqual(reply, { kind: 'done', epoch: 2 });
    }
  });
  check('W-13 lets the next tenure emit anew what was revived', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    await flow.die();
    await flow.revive();
    const { next, reply } = await succeed(flow);
    assert.deepEqual(
      reply.reemitted.map(({ id, epoch }) => [id, epoch]),
      [
        ['x', 2],
        ['y', 3],
      ],
    );
    assert.deepEqual(takenOf(await next.take()), [['x', 2]]);
  });
}

function revivingInTurn(check: Check): void {
  check('W-05 W-06 gives out what was revived after what is in hands, and in turn', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y', 'z');
    await flow.die();
    await flow.takeOne({ claimMs: SHORT_MS });
    await flow.revive();
    const { next, reply } = await succeed(flow);
    assert.deepEqual(idsOf(reply.reemitted), [
      ['y', 3],
      ['x', 4],
      ['z', 5],
    ]);
    await kit.elapse(SHORT_MS + 10);
    const again = await next.takeOne();
    assert.deepEqual([takenOf([again]), again.tries], [[['y', 3]], 2]);
    await next.settle(again);
    for (const [id, epoch] of [['x', 4] as const, ['z', 5] as const]) {
      for (const strict of [false, true])
        assert.equal((await next.reserve({ id, epoch }, { strict, claimMs: 0 })).kind, 'reserved');
      assert.deepEqual(takenOf([await next.finish()]), [[id, epoch]]);
    }
  });
}

function revivingNothing(check: Check): void {
  check('revives nothing of a workflow that is gone', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    await flow.die();
    await kit.release(flow.key, flow.leaseId, flow.fence);
    await flow.store.remove(flow.id, CALL);
    assert.deepEqual(await flow.revive(), { kind: 'absent' });
    for (const id of ['garbage', '1-1', '']) {
      assert.deepEqual(await flow.store.revive(flow.target, id, CALL), { kind: 'absent' });
    }
  });
  check('revives nothing over an action of the same id that is under way', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    await flow.die();
    await kit.release(flow.key, flow.leaseId, flow.fence);
    await flow.store.remove(flow.id, CALL);
    const again = await begun(kit);
    await again.emit('x');
    assert.deepEqual(await again.revive(), { kind: 'absent' });
    assert.deepEqual(takenOf(await again.take()), [['x', 0]]);
  });
}

function bringingBack(check: Check): void {
  check('W-13 keeps results in order until they have been read', async (kit) => {
    const flow = await begun(kit);
    const inbox = await kit.inbox('orchestrator');
    await flow.emit('x', 'y', 'z');
    await flow.finish({ outcome: 'succeeded', value: { n: 1, text: 'ä\u0000"' } });
    assert.equal(await inbox.next(), flow.id);
    inbox.unsubscribe();
    await flow.finish({ outcome: 'failed', value: null });
    await flow.finish({ outcome: 'succeeded', value: 3 });
    const results = await flow.results();
    assert.deepEqual(
      results.map(({ actionId, epoch, outcome, value }) => [actionId, epoch, outcome, value]),
      [
        ['x', 0, 'succeeded', { n: 1, text: 'ä\u0000"' }],
        ['y', 1, 'failed', null],
        ['z', 2, 'succeeded', 3],
      ],
    );
    assert(results.every(({ target, atMs }) => target === flow.target && atMs > 1.6e12));
    const { unread, unresolved } = (await flow.read()) ?? {};
    assert.deepEqual([unread, unresolved], [3, 0]);
  });
  check('gives results page by page, from any position on', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y', 'z');
    for (const _ of ['x', 'y', 'z']) await flow.finish();
    const first = await flow.store.results(flow.id, { ...CALL, most: 2 });
    assert.deepEqual([first.results.length, first.more], [2, true]);
    const after = first.results[1]?.position ?? '';
    const rest = await flow.store.results(flow.id, { ...CALL, after });
    assert.deepEqual([rest.results.map(({ actionId }) => actionId), rest.more], [['z'], false]);
  });
  check('W-13 forgets what its orchestrator has read, with any step it takes', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y', 'z', 'w');
    for (const _ of ['x', 'y', 'z', 'w']) await flow.finish();
    const [x, y, z, w] = (await flow.results()).map(({ position }) => [position]);
    const refused = await flow.tryEmit([flow.action('n')], { epoch: 0, read: x ?? [] });
    assert.equal(refused.kind, 'epoch');
    assert.equal((await flow.read())?.unread, 4);
    assert.equal((await flow.tryEmit([flow.action('n')], { read: x ?? [] })).kind, 'done');
    const update = { ...flow.ref, epoch: 5, read: y ?? [], state: 1 };
    assert.deepEqual(await flow.store.update(flow.id, update, CALL), { kind: 'done', epoch: 6 });
    const marked = await flow.store.markRead(flow.id, { ...flow.ref, read: z ?? [] }, CALL);
    assert.deepEqual(marked, { kind: 'done', epoch: 6 });
    const unpark = { ...flow.ref, epoch: 6, read: w ?? [] };
    assert.deepEqual(await flow.store.unpark(flow.id, unpark, CALL), { kind: 'done', epoch: 6 });
    assert.deepEqual([await flow.results(), (await flow.read())?.unread], [[], 0]);
  });
}

function markingAgain(check: Check): void {
  check('W-13 marks results as read with a step that had been taken before', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    for (const _ of ['x', 'y']) await flow.finish();
    const [x, y] = (await flow.results()).map(({ position }) => position);
    const known = await flow.tryEmit([flow.action('x')], { epoch: 0, read: [x ?? ''] });
    assert.deepEqual(known, { kind: 'done', epoch: 2 });
    assert.deepEqual(
      (await flow.results()).map(({ actionId }) => actionId),
      ['y'],
    );
    const update = { ...flow.ref, state: 1 };
    assert.deepEqual(await flow.store.update(flow.id, update, CALL), { kind: 'done', epoch: 3 });
    const again = await flow.store.update(flow.id, { ...update, read: [y ?? ''] }, CALL);
    assert.deepEqual(again, { kind: 'done', epoch: 3 });
    assert.deepEqual([await flow.results(), (await flow.read())?.unread], [[], 0]);
  });
}

function keeping(check: Check): void {
  check('W-13 leaves what was not read to the next tenure', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    await flow.finish();
    const { next, reply } = await succeed(flow);
    assert.equal(reply.workflow.unread, 1);
    assert.deepEqual((await next.results())[0]?.actionId, 'x');
  });
  check('knows the result of one action, also after it was read', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    const resultOf = (id: string) => flow.store.resultOf(flow.id, id, CALL);
    assert.equal(await resultOf('x'), null);
    await flow.finish();
    const [result] = await flow.results();
    assert.deepEqual(await resultOf('x'), result);
    await flow.store.markRead(flow.id, { ...flow.ref, read: [result?.position ?? ''] }, CALL);
    assert.deepEqual(await resultOf('x'), result);
    const unknown = workflowId(kit, 'unknown');
    assert.equal(await flow.store.resultOf(unknown, 'x', CALL), null);
  });
}

function telling(check: Check): void {
  check('W-03 tells what has happened, in order, with the epochs after it', async (kit) => {
    const flow = await begun(kit);
    const { target } = flow;
    await flow.emit('x', 'y');
    await flow.update({ a: 1 });
    await flow.finish();
    const next = await flow.handOff();
    await next.acquire();
    await next.begin();
    await next.revoke('enough');
    const found = (await next.history()).map(({ epoch, what }) => [epoch, what]);
    const successor = next.leaseId;
    assert.deepEqual(found, [
      [0, { kind: 'claimed', reemitted: 0, dropped: 0 }],
      [1, { kind: 'emitted', actionId: 'x', target }],
      [2, { kind: 'emitted', actionId: 'y', target }],
      [3, { kind: 'updated', state: { a: 1 } }],
      [3, { kind: 'settled', actionId: 'x', target, outcome: 'succeeded' }],
      [4, { kind: 'transferred', successor, transferEpoch: 3 }],
      [4, { kind: 'claimed', reemitted: 1, dropped: 0 }],
      [5, { kind: 'reemitted', actionId: 'y', target }],
      [5, { kind: 'revoked', reason: 'enough' }],
    ]);
    const leases = (await next.history()).map(({ leaseId }) => leaseId);
    assert.deepEqual(leases.slice(0, 5), new Array<string>(5).fill(flow.leaseId));
    assert((await next.history()).every(({ atMs }) => atMs > 1_600_000_000_000));
  });
  check('W-03 tells how large a state was that is too large for the history', async (kit) => {
    const flow = await begun(kit);
    const fits = 'x'.repeat(HISTORY_STATE_MOST - 2);
    await flow.update(fits);
    await flow.update(`${fits}é`);
    const found = (await flow.history()).slice(1).map(({ what }) => what);
    assert.deepEqual(found, [
      { kind: 'updated', state: fits },
      { kind: 'updated', state: null, omittedBytes: HISTORY_STATE_MOST + 2 },
    ]);
    assert.equal((await flow.read())?.state, `${fits}é`);
  });
  check('tells of what was dropped, and of what was revived', async (kit) => {
    const flow = await begun(kit);
    const { target } = flow;
    await flow.emit('x');
    await flow.die();
    await flow.revive();
    await flow.revoke();
    const { next } = await succeed(flow);
    const failure = { tries: 1, error: 'too often' };
    const found = (await next.history()).slice(2).map(({ epoch, what }) => [epoch, what]);
    assert.deepEqual(found, [
      [1, { kind: 'settled', actionId: 'x', target, outcome: 'dead', ...failure }],
      [1, { kind: 'revived', actionId: 'x', target }],
      [1, { kind: 'revoked', reason: 'because' }],
      [1, { kind: 'claimed', reemitted: 0, dropped: 1 }],
      [1, { kind: 'dropped', actionId: 'x', target }],
    ]);
  });
  check('tells history page by page, from any position on', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const all = await flow.history();
    const first = await flow.store.history(flow.id, { ...CALL, most: 2 });
    assert.deepEqual([first.entries, first.more], [all.slice(0, 2), true]);
    const after = first.entries[1]?.position ?? '';
    const rest = await flow.store.history(flow.id, { ...CALL, after });
    assert.deepEqual(rest, { entries: all.slice(2), more: false });
  });
}
