import assert from 'node:assert/strict';
import { CALL, type Check, SHORT_MS } from './kit.ts';
import { begun, idsOf, Orchestrator, succeed, takenOf } from './orchestrator.ts';

/** What becomes of a workflow when it passes from one orchestrator to the next. */
export function succession(check: Check): void {
  succeeding(check);
  leavingInHands(check);
  handingOff(check);
  revokingTenures(check);
  dropping(check);
}

function succeeding(check: Check): void {
  check('W-01 goes on in a new tenure with what the old one left', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    await flow.update({ step: 1 });
    const { next, reply } = await succeed(flow);
    assert.deepEqual(idsOf(reply.reemitted), [
      ['x', 3],
      ['y', 4],
    ]);
    assert(reply.reemitted.every(({ leaseId }) => leaseId === next.leaseId));
    assert.equal(reply.reemitted[0]?.body, '{"id":"x"}');
    const { epoch, state, unresolved, parked, leaseId } = reply.workflow;
    assert.deepEqual([epoch, state, unresolved, parked], [5, { step: 1 }, 2, 0]);
    assert.equal(leaseId, next.leaseId);
    assert.deepEqual(takenOf(await next.take()), [['x', 3]]);
  });
  check('W-01 takes no step of a tenure that is over', async (kit) => {
    const flow = await begun(kit);
    const { next } = await succeed(flow);
    const refused = { kind: 'not-held', leaseId: next.leaseId };
    assert.deepEqual(await flow.tryEmit([flow.action('x')]), refused);
    assert.deepEqual(await flow.update('late'), refused);
    assert.deepEqual(await flow.store.markRead(flow.id, flow.ref, CALL), refused);
    assert.deepEqual(await flow.store.unpark(flow.id, flow.ref, CALL), refused);
    const handoff = { ...flow.ref, successor: 'z', windowMs: 1_000 };
    assert.deepEqual(await flow.store.handoff(flow.id, handoff, CALL), refused);
    assert.deepEqual(await flow.tryBegin(), refused);
    const { epoch, unresolved } = (await next.read()) ?? {};
    assert.deepEqual([epoch, unresolved], [0, 0]);
  });
  check('W-08 takes no step for a lease that has run out', async (kit) => {
    const flow = await new Orchestrator(kit).acquire(SHORT_MS);
    await flow.begin();
    await kit.elapse(SHORT_MS + 10);
    const refused = { kind: 'not-held', leaseId: null };
    assert.deepEqual(await flow.tryEmit([flow.action('x')]), refused);
    assert.deepEqual(await flow.update('late'), refused);
    assert.deepEqual(await flow.take(), []);
    const { epoch, state } = (await flow.read()) ?? {};
    assert.deepEqual([epoch, state], [0, 'initialized']);
  });
  check('takes no step of who holds the lease but has not begun', async (kit) => {
    const flow = await new Orchestrator(kit).acquire();
    assert.deepEqual(await flow.update('early'), { kind: 'not-held', leaseId: null });
    assert.equal(await flow.read(), null);
  });
}

function leavingInHands(check: Check): void {
  check('leaves with its processor what it has in hands, under its new epoch', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const held = await flow.takeOne();
    const { next, reply } = await succeed(flow);
    assert.deepEqual(idsOf(reply.reemitted), [
      ['x', 2],
      ['y', 3],
    ]);
    assert.deepEqual(await next.take(), []);
    assert.equal(await next.settle(held), 'done');
    const [result] = await next.results();
    assert.deepEqual([result?.actionId, result?.epoch, result?.outcome], ['x', 2, 'succeeded']);
    assert.deepEqual(takenOf(await next.take()), [['y', 3]]);
  });
  check('gives out again, under its new epoch, what a processor has given up', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const held = await flow.takeOne({ claimMs: SHORT_MS });
    const { next } = await succeed(flow);
    await kit.elapse(SHORT_MS + 10);
    const again = await next.takeOne();
    assert.deepEqual(idsOf([again.action]), [['x', 2]]);
    assert(again.action.leaseId === next.leaseId && again.fence > held.fence);
    assert.equal(again.tries, 2);
    assert.equal(await next.settle(held), 'gone');
  });
}

function handingOff(check: Check): void {
  check('W-10 hands a tenure to its successor, with one epoch and a new fence', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const next = await flow.handOff();
    assert.equal(next.epoch, 3);
    assert(next.fence > flow.fence);
    const held = await kit.read(flow.key);
    assert(held.kind === 'held' && held.holder === next.leaseId && held.fence === next.fence);
    assert.equal((await flow.tryEmit([flow.action('z')], { epoch: 3 })).kind, 'not-held');
    const { leaseId, parked, unresolved } = (await next.read()) ?? {};
    assert.deepEqual([leaseId, parked, unresolved], [next.leaseId, 2, 2]);
    assert.deepEqual(await flow.take(), []);
    await next.acquire();
    const { reemitted, workflow } = await next.begin();
    assert.deepEqual(idsOf(reemitted), [
      ['x', 3],
      ['y', 4],
    ]);
    assert.equal(workflow.parked, 0);
    assert.deepEqual(takenOf(await next.take()), [['x', 3]]);
  });
  check('W-10 leaves the workflow to anyone when its successor never claims', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    await flow.handOff('never', SHORT_MS);
    await kit.elapse(SHORT_MS + 10);
    const third = await new Orchestrator(kit, { leaseId: 'tenure-3' }).acquire();
    assert.deepEqual(idsOf((await third.begin()).reemitted), [['x', 2]]);
    assert.equal(third.epoch, 3);
  });
  check('W-10 lets a processor finish what it has in hands over a handoff', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const held = await flow.takeOne();
    const next = await flow.handOff();
    assert.equal((await next.read())?.parked, 1);
    assert.equal(await flow.settle(held), 'done');
    assert.deepEqual(await flow.take(), []);
    await next.acquire();
    assert.deepEqual(idsOf((await next.begin()).reemitted), [['y', 3]]);
    assert.equal((await next.results())[0]?.actionId, 'x');
  });
  check('W-10 hands nothing over at another epoch', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    const step = { ...flow.ref, epoch: 0, successor: 'other', windowMs: 1_000 };
    const reply = await flow.store.handoff(flow.id, step, CALL);
    assert.deepEqual(reply, { kind: 'epoch', epoch: 1 });
    assert.equal((await flow.read())?.leaseId, flow.leaseId);
    assert.deepEqual(takenOf(await flow.take()), [['x', 0]]);
  });
}

function revokingTenures(check: Check): void {
  check('W-11 ends a tenure at once, wherever its orchestrator is', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    const inbox = await kit.inbox('orchestrator');
    const reply = await flow.revoke();
    assert(reply.kind === 'revoked' && reply.workflow === flow.id);
    assert(reply.revokedAtMs > 1_600_000_000_000);
    assert.equal(await inbox.next(), flow.id);
    inbox.unsubscribe();
    const found = await kit.read(flow.key);
    assert(found.kind === 'free' && found.fence > flow.fence);
    const renewed = await kit.renew(flow.key, flow.leaseId);
    assert(renewed.kind === 'vanished' && renewed.revoked);
    assert.deepEqual(await flow.update('late'), { kind: 'not-held', leaseId: null });
    const { leaseId, inbox: of, parked, epoch } = (await flow.read()) ?? {};
    assert.deepEqual([leaseId, of, parked, epoch], [null, null, 1, 1]);
    assert.deepEqual(await flow.take(), []);
  });
  check('W-11 finds no tenure of a lease id that is unknown, or over', async (kit) => {
    const flow = await begun(kit);
    const unknown = await flow.store.revoke('nobody', { ...CALL, reason: 'x' });
    assert.deepEqual(unknown, { kind: 'not-found' });
    const { next } = await succeed(flow);
    assert.deepEqual(await flow.revoke(), { kind: 'not-found' });
    assert.equal((await next.revoke()).kind, 'revoked');
    assert.deepEqual(await next.revoke(), { kind: 'not-found' });
  });
}

function dropping(check: Check): void {
  check('W-01 drops what was unresolved at a revocation, also what is in hands', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const held = await flow.takeOne();
    await flow.revoke();
    const { next, reply } = await succeed(flow);
    assert.deepEqual(
      [idsOf(reply.dropped), reply.reemitted],
      [
        [
          ['x', 0],
          ['y', 1],
        ],
        [],
      ],
    );
    const { epoch, unresolved, parked } = reply.workflow;
    assert.deepEqual([epoch, unresolved, parked], [2, 0, 0]);
    assert.equal(await flow.settle(held), 'gone');
    await next.emit('z');
    assert.deepEqual(takenOf(await next.take()), [['z', 2]]);
  });
  check('W-01 goes on after a revocation if it is told so', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const held = await flow.takeOne();
    await flow.revoke();
    const { next, reply } = await succeed(flow, { resume: true });
    assert.deepEqual(
      [idsOf(reply.reemitted), reply.dropped],
      [
        [
          ['x', 2],
          ['y', 3],
        ],
        [],
      ],
    );
    assert.equal(await next.settle(held), 'done');
    assert.deepEqual(takenOf(await next.take()), [['y', 3]]);
  });
  check('W-11 accepts what a processor had in hands when the tenure was revoked', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    const held = await flow.takeOne();
    await flow.revoke();
    assert.equal(await flow.settle(held), 'done');
    const { next, reply } = await succeed(flow);
    assert.deepEqual(reply.dropped, []);
    assert.equal((await next.results())[0]?.actionId, 'x');
  });
}
