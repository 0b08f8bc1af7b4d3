import assert from 'node:assert/strict';
import type { Taken } from '../../src/store/port/workflow-store.ts';
import { CALL, type Check, SHORT_MS } from './kit.ts';
import { begun, Orchestrator, takenOf } from './orchestrator.ts';

/** What a store does for the processors of actions. */
export function processing(check: Check): void {
  taking(check);
  sharing(check);
  givingOutAgain(check);
  reserving(check);
  reservingInTurn(check);
}

function taking(check: Check): void {
  check('W-05 gives out one action of a workflow at a time, in their order', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y', 'z');
    const seen: unknown[] = [];
    for (const _ of ['x', 'y', 'z']) {
      const taken = await flow.takeOne();
      assert.deepEqual([taken.workflow, taken.tries], [flow.id, 1]);
      assert.deepEqual(await flow.take(), []);
      seen.push(...takenOf([taken]));
      await flow.settle(taken);
    }
    assert.deepEqual(seen, [
      ['x', 0],
      ['y', 1],
      ['z', 2],
    ]);
    assert.deepEqual(await flow.take(), []);
  });
  check('W-05 never holds back what goes to another target', async (kit) => {
    const flow = await begun(kit);
    const other = kit.topic('other');
    await flow.emit('x', flow.action('y', { target: other }));
    await flow.takeOne();
    assert.deepEqual(takenOf([await flow.takeOne({ target: other })]), [['y', 1]]);
  });
  check('W-05 ranks workflows by the priority of what they want done', async (kit) => {
    const priorities = { low: 1, mid: 5, late: 5, high: 10 };
    for (const [name, priority] of Object.entries(priorities)) {
      const flow = await begun(kit, name);
      await flow.emit(flow.action(name, { priority }), flow.action('behind', { priority: 10 }));
    }
    const flow = new Orchestrator(kit, { name: 'low' });
    const taken = [...(await flow.take(3)), ...(await flow.take(3))];
    assert.deepEqual(
      takenOf(taken).map(([id]) => id),
      ['high', 'mid', 'late', 'low'],
    );
  });
}

function sharing(check: Check): void {
  check(
    'gives each action to one of many who take at once, with fences of their own',
    async (kit) => {
      const flows = await Promise.all(['a', 'b', 'c', 'd'].map((name) => begun(kit, name)));
      for (const flow of flows) await flow.emit('x');
      const all = await Promise.all(flows.map((flow) => flow.take(2)));
      const taken = all.flat();
      assert.equal(taken.length, 4);
      const fences = taken.map((each) => (each.kind === 'reserved' ? each.fence : 0));
      assert.equal(new Set(fences).size, 4);
      assert(fences.every((fence) => fence > 1_600_000_000_000_000));
    },
  );
  check('works on hundreds of workflows at once', async (kit) => {
    const flows = await Promise.all(
      Array.from({ length: 300 }, (_, n) => begun(kit, String(n).padStart(3, '0'))),
    );
    await Promise.all(flows.map((flow) => flow.emit('x', 'y')));
    const [first] = flows;
    assert(first !== undefined);
    let settled = 0;
    while (settled < 600) {
      const taken = await first.take(100);
      const settlements = taken.flatMap((each) =>
        each.kind === 'reserved'
          ? [
              {
                workflow: each.workflow,
                fence: each.fence,
                outcome: 'succeeded',
                value: 1,
              } as const,
            ]
          : [],
      );
      const replies = await first.store.settle(first.target, settlements, CALL);
      assert(replies.length > 0 && replies.every((reply) => reply === 'done'));
      settled += replies.length;
    }
    assert.deepEqual(await first.take(), []);
    const found = await first.store.read(
      flows.map(({ id }) => id),
      CALL,
    );
    assert(found.every((each) => each?.unresolved === 0 && each.unread === 2 && each.epoch === 2));
  });
}

function givingOutAgain(check: Check): void {
  check('W-13 gives out again what a processor did not finish in time', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const first = await flow.takeOne({ claimMs: SHORT_MS });
    await kit.elapse(SHORT_MS + 10);
    const second = await flow.takeOne();
    assert.deepEqual([second.action, second.tries], [first.action, 2]);
    assert(second.fence > first.fence);
    assert.equal(await flow.settle(first), 'gone');
    const late = { workflow: flow.id, fence: first.fence };
    const call = { ...CALL, claimMs: SHORT_MS };
    assert.deepEqual(await flow.store.extend(flow.target, [late], call), ['gone']);
    assert.equal(await flow.settle(second), 'done');
    assert.equal(await flow.settle(second), 'gone');
    assert.equal((await flow.results()).length, 1);
  });
  check('leaves with a processor what it says it is still at', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    const { fence } = await flow.takeOne({ claimMs: SHORT_MS });
    const call = { ...CALL, claimMs: 10 * SHORT_MS };
    const held = [{ workflow: flow.id, fence }];
    assert.deepEqual(await flow.store.extend(flow.target, held, call), ['done']);
    await kit.elapse(SHORT_MS + 10);
    assert.deepEqual(await flow.take(), []);
  });
  check('W-13 gives out again after a while what is to be tried again', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const first = await flow.takeOne();
    assert.equal(await flow.settle(first, { outcome: 'retry', afterMs: SHORT_MS }), 'done');
    assert.deepEqual([await flow.take(), await flow.results()], [[], []]);
    assert.equal(await flow.settle(first), 'gone');
    await kit.elapse(SHORT_MS + 10);
    const second = await flow.takeOne();
    assert.deepEqual([second.action.id, second.tries], ['x', 2]);
    assert.equal(await flow.settle(second, { outcome: 'retry', afterMs: 0 }), 'done');
    assert.equal((await flow.takeOne()).tries, 3);
  });
  check('W-04 tells and parks what nobody may work on any more, and goes on', async (kit) => {
    const [flow, other] = [await begun(kit, 'a'), await begun(kit, 'b')];
    await flow.emit('x', 'y');
    await flow.takeOne({ claimMs: SHORT_MS });
    await flow.revoke();
    await kit.elapse(SHORT_MS + 10);
    await other.emit('z');
    const taken = await other.take();
    assert.deepEqual(takenOf(taken), [['z', 0]]);
    assert.deepEqual(
      taken.filter(({ kind }) => kind === 'lease'),
      [{ kind: 'lease', workflow: flow.id, id: 'x', received: flow.leaseId, expected: null }],
    );
    assert.equal((await flow.read())?.parked, 2);
    assert.deepEqual(await flow.take(), []);
  });
  check('W-13 holds nothing of another workflow back while one is tried again', async (kit) => {
    const [a, b] = [await begun(kit, 'a'), await begun(kit, 'b')];
    await a.emit('x');
    await a.settle(await a.takeOne(), { outcome: 'retry', afterMs: 60_000 });
    await b.emit('y');
    assert.deepEqual(takenOf(await b.take()), [['y', 0]]);
  });
}

function reserving(check: Check): void {
  check('W-04 reserves nothing that another tenure has emitted', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    const ref = { id: 'x', epoch: 0 };
    const wrong = { kind: 'lease', workflow: flow.id, id: 'x', received: 'other' };
    assert.deepEqual(await flow.reserve({ ...ref, leaseId: 'other' }), {
      ...wrong,
      expected: flow.leaseId,
    });
    await flow.revoke();
    const late = { ...wrong, received: flow.leaseId, expected: null };
    assert.deepEqual(await flow.reserve(ref), late);
    const unknown = new Orchestrator(kit, { name: 'unknown' });
    const nowhere = { ...late, workflow: unknown.id, received: unknown.leaseId };
    assert.deepEqual(await unknown.reserve(ref), nowhere);
  });
  check('W-04 only looks at an action where no time is asked for', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    const look = { claimMs: 0 };
    for (let i = 0; i < 2; i++) {
      const reply = await flow.reserve({ id: 'x', epoch: 0 }, look);
      assert(reply.kind === 'reserved' && reply.fence === 0 && reply.tries === 1);
    }
    assert.equal((await flow.reserve({ id: 'other', epoch: 0 }, look)).kind, 'stale');
    assert.equal((await flow.takeOne()).tries, 1);
  });
  check('W-05 replays the result of what has been settled', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    await flow.finish({ value: { done: true } });
    const reply = await flow.reserve({ id: 'x', epoch: 0 });
    const [result] = await flow.results();
    assert.deepEqual(reply, { kind: 'replay', result });
    // Whatever its epoch.
    assert.deepEqual(await flow.reserve({ id: 'x', epoch: 7 }), reply);
  });
  check('W-07 reserves what was emitted with its epoch, and nothing else', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    assert.equal((await flow.reserve({ id: 'other', epoch: 0 })).kind, 'stale');
    const reply = await flow.reserve({ id: 'x', epoch: 0 });
    assert(reply.kind === 'reserved' && reply.action.id === 'x' && reply.tries === 1);
    assert.deepEqual(reply.action.body, '{"id":"x"}');
    assert.equal(await flow.settle(reply), 'done');
    const stale = await flow.reserve({ id: 'other', epoch: 0 });
    assert.deepEqual(stale, refusal(flow, 'stale', 'other', 0, 0));
  });
  check('W-06 reserves nothing that has not been emitted yet', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    for (const epoch of [1, 2])
      assert.deepEqual(
        await flow.reserve({ id: 'y', epoch }),
        refusal(flow, 'future', 'y', epoch, 1),
      );
  });
  check('W-05 lets one of many who reserve an action at once have it', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => flow.reserve({ id: 'x', epoch: 0 })),
    );
    const kinds = replies.map(({ kind }) => kind).sort();
    assert.deepEqual(kinds, ['reserved', ...new Array<string>(9).fill('stale')]);
    assert.deepEqual(await flow.take(), []);
  });
}

function reservingInTurn(check: Check): void {
  check('W-05 reserves again what was not finished in time', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x');
    const first = await flow.takeOne({ claimMs: SHORT_MS });
    const ref = { id: 'x', epoch: 0 };
    assert.deepEqual(await flow.reserve(ref), refusal(flow, 'stale', 'x', 0, 0));
    await kit.elapse(SHORT_MS + 10);
    const second = await flow.reserve(ref);
    assert(second.kind === 'reserved' && second.fence > first.fence && second.tries === 2);
    assert.equal(await flow.settle(first), 'gone');
    assert.equal(await flow.settle(second), 'done');
  });
  check('W-06 reserves nothing before its turn, for any target', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    for (const strict of [false, true]) {
      const reply = await flow.reserve({ id: 'y', epoch: 1 }, { strict });
      assert.deepEqual(reply, refusal(flow, 'future', 'y', 1, 0));
    }
    const reply = await flow.reserve({ id: 'x', epoch: 0 }, { strict: true });
    assert(reply.kind === 'reserved');
    await flow.settle(reply);
    assert.equal((await flow.reserve({ id: 'y', epoch: 1 }, { strict: true })).kind, 'reserved');
  });
  check('W-06 lets a strict target wait for one before that is parked', async (kit) => {
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    await flow.die();
    await flow.revive();
    const y = { id: 'y', epoch: 1 };
    assert.deepEqual(await flow.reserve(y, { strict: true }), refusal(flow, 'future', 'y', 1, 0));
    assert.equal((await flow.reserve(y)).kind, 'reserved');
  });
  check('takes with `take` what is due, whatever was reserved of other workflows', async (kit) => {
    const [a, b] = [await begun(kit, 'a'), await begun(kit, 'b')];
    await a.emit('x', 'z');
    await b.emit('y');
    assert.equal((await a.reserve({ id: 'x', epoch: 0 })).kind, 'reserved');
    assert.deepEqual(takenOf(await a.take()), [['y', 0]]);
  });
}

function refusal(
  { id: workflow }: Orchestrator,
  kind: 'stale' | 'future',
  id: string,
  epoch: number,
  current: number,
): Taken {
  return { kind, workflow, id, epoch, current };
}
