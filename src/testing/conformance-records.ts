import assert from 'node:assert/strict';
import { CHANGES_PAGE, REMOVALS_KEPT } from '../store/store.ts';
import { CALL, type Check, type Kit } from './conformance-kit.ts';

export function recording(check: Check): void {
  writing(check);
  removing(check);
  changing(check);
  discovering(check);
}

function writing(check: Check): void {
  check('keeps a JSON value and counts its revisions', async (kit) => {
    assert.deepEqual(await kit.get('a'), { kind: 'absent' });
    assert.deepEqual(await kit.put('a', { n: 1 }), { kind: 'written', revision: 1 });
    assert.deepEqual(await kit.put('a', { n: 2, text: 'ä\u0000"' }), {
      kind: 'written',
      revision: 2,
    });
    const expected = { kind: 'found', value: { n: 2, text: 'ä\u0000"' }, revision: 2, fence: 0 };
    assert.deepEqual(await kit.get('a'), expected);
  });
  check('refuses a write with a lower fence than it has seen, and changes nothing', async (kit) => {
    await kit.put('a', 'new', { fence: 20 });
    assert.deepEqual(await kit.put('a', 'old', { fence: 19 }), { kind: 'stale', seen: 20 });
    assert.equal((await kit.put('a', 'same', { fence: 20 })).kind, 'written');
    assert.deepEqual(await kit.get('a'), { kind: 'found', value: 'same', revision: 2, fence: 20 });
  });
  check('keeps the fence it has seen over a write without one', async (kit) => {
    await kit.put('a', 1, { fence: 20 });
    await kit.put('a', 2);
    assert.deepEqual(await kit.put('a', 3, { fence: 19 }), { kind: 'stale', seen: 20 });
  });
  check('creates only where there is none, if told so', async (kit) => {
    assert.deepEqual(await kit.put('a', 1, { ifRevision: 0 }), { kind: 'written', revision: 1 });
    assert.deepEqual(await kit.put('a', 2, { ifRevision: 0 }), { kind: 'conflict', revision: 1 });
  });
  check('writes only over the revision it is told', async (kit) => {
    assert.deepEqual(await kit.put('a', 1, { ifRevision: 4 }), { kind: 'conflict', revision: 0 });
    await kit.put('a', 1);
    await kit.put('a', 2);
    assert.deepEqual(await kit.put('a', 3, { ifRevision: 1 }), { kind: 'conflict', revision: 2 });
    assert.deepEqual(await kit.put('a', 3, { ifRevision: 2 }), { kind: 'written', revision: 3 });
  });
  check('lets one of many that write over the same revision win', async (kit) => {
    await kit.put('a', 0);
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => kit.put('a', n, { ifRevision: 1 })),
    );
    assert.equal(replies.filter(({ kind }) => kind === 'written').length, 1);
  });
  check('answers a batch of writes and reads in order, one by one', async (kit) => {
    await kit.put('b', 'held', { fence: 9 });
    const writes = [
      { id: 'a', value: 1 },
      { id: 'b', value: 2, fence: 8 },
      { id: 'c', value: 3 },
    ];
    const replies = await kit.store.records.put(kit.collection, writes, CALL);
    assert.deepEqual(
      replies.map(({ kind }) => kind),
      ['written', 'stale', 'written'],
    );
    const found = await kit.store.records.get(kit.collection, ['c', 'nobody', 'b'], CALL);
    assert.deepEqual(
      found.map((reply) => (reply.kind === 'found' ? reply.value : reply.kind)),
      [3, 'absent', 'held'],
    );
  });
}

function removing(check: Check): void {
  check('removes a record once', async (kit) => {
    await kit.put('a', 1);
    assert.deepEqual(await kit.remove('a'), { kind: 'removed' });
    assert.deepEqual(await kit.remove('a'), { kind: 'absent' });
    assert.deepEqual(await kit.get('a'), { kind: 'absent' });
  });
  check('removes only under the conditions it is given', async (kit) => {
    await kit.put('a', 1, { fence: 20 });
    assert.deepEqual(await kit.remove('a', { fence: 19 }), { kind: 'stale', seen: 20 });
    assert.deepEqual(await kit.remove('a', { ifRevision: 7 }), { kind: 'conflict', revision: 1 });
    assert.deepEqual(await kit.remove('a', { fence: 20, ifRevision: 1 }), { kind: 'removed' });
  });
  check('remembers fence and revision of what was removed', async (kit) => {
    await kit.put('a', 1, { fence: 20 });
    await kit.remove('a', { fence: 21 });
    assert.deepEqual(await kit.put('a', 2, { fence: 20 }), { kind: 'stale', seen: 21 });
    const again = await kit.put('a', 2, { fence: 21, ifRevision: 0 });
    assert(again.kind === 'written' && again.revision > 1);
  });
}

function changing(check: Check): void {
  check(
    'says what has been written and removed since a version, the earliest first',
    async (kit) => {
      assert.deepEqual((await kit.changes(0)).written, []);
      for (const id of ['a', 'b', 'c']) await kit.put(id, 1);
      const all = await kit.changes(0);
      assert.deepEqual(all, {
        ...all,
        written: ['a', 'b', 'c'],
        removed: [],
        more: false,
        reset: false,
      });
      await kit.put('a', 2);
      await kit.remove('b');
      const since = await kit.changes(all.version);
      assert.deepEqual([since.written, since.removed, since.reset], [['a'], ['b'], false]);
      assert(since.version > all.version);
      const none = await kit.changes(since.version);
      assert.deepEqual([none.written, none.removed, none.version], [[], [], since.version]);
    },
  );
  check('tells of no removal that was refused, or had nothing to remove', async (kit) => {
    await kit.put('a', 1, { fence: 20 });
    const { version } = await kit.changes(0);
    await kit.remove('a', { fence: 19 });
    await kit.remove('never-there');
    const { written, removed } = await kit.changes(version);
    assert.deepEqual([written, removed], [[], []]);
  });
  check('gives a long list in pages, each record once', async (kit) => {
    const ids = Array.from({ length: CHANGES_PAGE + 5 }, (_, n) => `id-${n}`);
    await write(kit, ids);
    const first = await kit.changes(0);
    assert.deepEqual([first.written.length, first.more], [CHANGES_PAGE, true]);
    const second = await kit.changes(first.version);
    assert.deepEqual([second.written.length, second.more], [5, false]);
    assert.deepEqual([...first.written, ...second.written].sort(), ids.sort());
  });
  check('says to begin again when it has forgotten what was removed', async (kit) => {
    const ids = Array.from({ length: REMOVALS_KEPT + 10 }, (_, n) => `id-${n}`);
    await write(kit, ids);
    const { version } = await kit.changes(0);
    const removals = ids.map((id) => ({ id }));
    await kit.store.records.remove(kit.collection, removals, CALL);
    assert.equal((await kit.changes(version)).reset, true);
    assert.equal((await kit.changes(0)).reset, false);
  });
  check('says to begin again to who presents a version it has not reached', async (kit) => {
    await kit.put('a', 1);
    assert.equal((await kit.changes(8_000_000_000_000_000)).reset, true);
  });
}

function discovering(check: Check): void {
  const discover = (kit: Kit) => kit.store.records.discover(kit.collection, CALL);
  check('discovers nothing in what it has written and removed itself', async (kit) => {
    await write(kit, ['a', 'b', 'c']);
    await kit.put('a', 2, { fence: 20 });
    await kit.remove('b');
    const { version } = await kit.changes(1);
    assert.equal(await discover(kit), 0);
    const { written, removed } = await kit.changes(version);
    assert.deepEqual([written, removed], [[], []]);
    assert.deepEqual(await kit.get('a'), { kind: 'found', value: 2, revision: 2, fence: 20 });
  });
  check('loses no change, and tells of no removal, while it looks', async (kit) => {
    const ids = Array.from({ length: 100 }, (_, n) => `id-${n}`);
    const looking = Array.from({ length: 5 }, () => discover(kit));
    for (const id of ids) await kit.put(id, 1);
    await Promise.all([...looking, write(kit, ids), discover(kit)]);
    await discover(kit);
    assert.deepEqual([...(await kit.changes(0)).written].sort(), [...ids].sort());
    assert.deepEqual((await kit.changes(1)).removed, []);
  });
}

async function write(kit: Kit, ids: readonly string[]): Promise<void> {
  const writes = ids.map((id) => ({ id, value: id }));
  await kit.store.records.put(kit.collection, writes, CALL);
}
