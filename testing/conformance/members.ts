import assert from 'node:assert/strict';
import { CALL, type Check, type Kit, SHORT_MS } from './kit.ts';

export function belonging(check: Check): void {
  const beat = (kit: Kit, name: string, attributes = {}, ttlMs = 60_000) =>
    kit.store.members.beat({ id: kit.member(name), attributes }, { ...CALL, ttlMs });
  const names = async (kit: Kit) => (await kit.members()).map(({ id }) => id).sort();

  check('lists who beats, with attributes and the time left', async (kit) => {
    await beat(kit, 'a', { weight: 2, draining: false });
    await beat(kit, 'b');
    const members = await kit.members();
    assert.deepEqual(await names(kit), [kit.member('a'), kit.member('b')]);
    const a = members.find(({ id }) => id === kit.member('a'));
    assert.deepEqual(a?.attributes, { weight: 2, draining: false });
    assert(a.expiresInMs > 0 && a.expiresInMs <= 60_000, `${a.expiresInMs} ms`);
  });
  check('keeps what the last beat said', async (kit) => {
    await beat(kit, 'a', { weight: 1 });
    await beat(kit, 'a', { weight: 3 });
    const members = await kit.members();
    assert.deepEqual(
      members.map(({ attributes }) => attributes),
      [{ weight: 3 }],
    );
  });
  check('forgets who has stopped beating, and lists it again when it beats again', async (kit) => {
    await beat(kit, 'a', {}, SHORT_MS);
    await beat(kit, 'b');
    await kit.elapse(SHORT_MS + 10);
    assert.deepEqual(await names(kit), [kit.member('b')]);
    await beat(kit, 'a');
    assert.deepEqual(await names(kit), [kit.member('a'), kit.member('b')]);
  });
  check('forgets who leaves at once', async (kit) => {
    await beat(kit, 'a');
    await beat(kit, 'b');
    await kit.store.members.leave(kit.member('a'), CALL);
    await kit.store.members.leave(kit.member('never-there'), CALL);
    assert.deepEqual(await names(kit), [kit.member('b')]);
  });
  check('finds the same members when it looks thoroughly', async (kit) => {
    await beat(kit, 'a', { version: '1' });
    const found = await kit.members(true);
    assert.deepEqual(
      found.map(({ id, attributes }) => [id, attributes]),
      [[kit.member('a'), { version: '1' }]],
    );
  });
}
