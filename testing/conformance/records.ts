import assert from 'node:assert/strict';
import { CHANGES_PAGE, REMOVALS_KEPT } from '../../src/store/port/record-store.ts';
import { CALL, type Check, type Kit } from './kit.ts';

export function recording(check: Check): void {
  writing(check);
  removing(check);
  changing(check);
  listing(check);
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
  check(
    'remembers the fence of what was removed, however many are removed after it',
    async (kit) => {
      await kit.put('a', 1, { fence: 20 });
      await kit.remove('a', { fence: 21 });
      const ids = names('id', REMOVALS_KEPT + 1);
      await write(kit, ids);
      await removeAll(kit, ids);
      assert.deepEqual(await kit.put('a', 'late', { fence: 5 }), { kind: 'stale', seen: 21 });
    },
  );
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
    const ids = names('id', CHANGES_PAGE + 5);
    await write(kit, ids);
    const first = await kit.changes(0);
    assert.deepEqual([first.written.length, first.more], [CHANGES_PAGE, true]);
    const second = await kit.changes(first.version);
    assert.deepEqual([second.written.length, second.more], [5, false]);
    assert.deepEqual([...first.written, ...second.written].sort(), ids.sort());
  });
  check('says to begin again to who presents a version it has not reached', async (kit) => {
    await kit.put('a', 1);
    assert.equal((await kit.changes(8_000_000_000_000_000)).reset, true);
  });
}

function listing(check: Check): void {
  check('gives pages as short as it is asked for', async (kit) => {
    const ids = ['a', 'b', 'c', 'd', 'e'];
    for (const id of ids) await kit.put(id, 1);
    const { version } = await kit.changes(0);
    const first = await kit.changes(0, { most: 2 });
    assert.deepEqual([first.written, first.more], [['a', 'b'], true]);
    assert.deepEqual((await kit.allChanges(0, 2)).written, ids);
    for (const id of ids.slice(1)) await kit.remove(id);
    const since = await kit.allChanges(version, 2);
    assert.deepEqual([since.written, since.removed], [[], ids.slice(1)]);
  });
  check('tells of every removal, or says to begin again', async (kit) => {
    const ids = names('id', REMOVALS_KEPT + 10);
    await write(kit, ids);
    const { version } = await kit.allChanges(0);
    await removeAll(kit, ids);
    // One comes back: fewer are remembered than may be, and some are forgotten all the same.
    await kit.put('id-1005', 1);
    const { removed, reset } = await kit.allChanges(version);
    assert(reset || removed.length === ids.length - 1, `${removed.length} were told`);
    const anew = await kit.allChanges(0);
    assert.deepEqual([anew.written, anew.removed, anew.reset], [['id-1005'], [], false]);
    assert.equal((await kit.changes(anew.version)).reset, false);
  });
  check('lists all there is, however many have been removed since it was written', async (kit) => {
    const live = names('live', CHANGES_PAGE + 10);
    await write(kit, live);
    const old = names('old', REMOVALS_KEPT + 1);
    await write(kit, old);
    await removeAll(kit, old);
    const listed = await kit.allChanges(0);
    assert.deepEqual([listed.written.sort(), listed.removed], [live.sort(), []]);
    assert.equal(listed.reset, false);
    assert.equal((await kit.changes(listed.version)).reset, false);
  });
  check('tells a listing of what is removed while it is read', async (kit) => {
    for (const id of ['a', 'b', 'c', 'd']) await kit.put(id, 1);
    await kit.remove('d');
    const first = await kit.changes(0, { most: 2 });
    await kit.remove('a');
    const { began } = first;
    const second = await kit.changes(first.version, { began, most: 2 });
    assert.deepEqual([second.written, second.removed, second.more], [['c'], ['a'], false]);
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
    const ids = names('id', 100);
    const looking = Array.from({ length: 5 }, () => discover(kit));
    for (const id of ids) await kit.put(id, 1);
    await Promise.all([...looking, write(kit, ids), discover(kit)]);
    await discover(kit);
    assert.deepEqual([...(await kit.changes(0)).written].sort(), [...ids].sort());
    assert.deepEqual((await kit.changes(1)).removed, []);
  });
}

function names(stem: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${stem}-${n}`);
}

async function removeAll(kit: Kit, ids: readonly string[]): Promise<void> {
  const removals = ids.map((id) => ({ id }));
  await kit.store.records.remove(kit.collection, removals, CALL);
}

async function write(kit: Kit, ids: readonly string[]): Promise<void> {
  const writes = ids.map((id) => ({ id, value: id }));
  await kit.store.records.put(kit.collection, writes, CALL);
}
