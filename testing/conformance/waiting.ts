import assert from 'node:assert/strict';
import { CALL, type Check, type Kit, LONG_MS } from './kit.ts';

const held = async (kit: Kit) => kit.granted(kit.key(), 'a', { ttlMs: LONG_MS });

export function waiting(check: Check): void {
  passingOver(check);
  check('wakes the inbox that waits when the key is released', async (kit) => {
    const fence = await held(kit);
    const inbox = await kit.inbox('waiter');
    await kit.acquire(kit.key(), 'b', { waitedMs: 0, inbox: 'waiter' });
    await kit.release(kit.key(), 'a', fence);
    assert.equal(await inbox.next(), kit.key());
    inbox.unsubscribe();
  });
  check('wakes one inbox per release: the one that has waited longest', async (kit) => {
    const fence = await held(kit);
    const [late, early] = [await kit.inbox('late'), await kit.inbox('early')];
    await kit.acquire(kit.key(), 'b', { waitedMs: 10, inbox: 'late' });
    await kit.acquire(kit.key(), 'c', { waitedMs: 5_000, inbox: 'early' });
    await kit.release(kit.key(), 'a', fence);
    assert.equal(await early.next(), kit.key());
    assert.equal(late.messages.length, 0);
    await kit.release(kit.key(), 'c', await kit.granted(kit.key(), 'c'));
    assert.equal(await late.next(), kit.key());
    for (const inbox of [late, early]) inbox.unsubscribe();
  });
  check('passes over an inbox where nobody listens any more', async (kit) => {
    const fence = await held(kit);
    const inbox = await kit.inbox('alive');
    await kit.acquire(kit.key(), 'b', { waitedMs: 5_000, inbox: 'dead' });
    await kit.acquire(kit.key(), 'c', { waitedMs: 10, inbox: 'alive' });
    await kit.release(kit.key(), 'a', fence);
    assert.equal(await inbox.next(), kit.key());
    inbox.unsubscribe();
  });
  check('passes the hint on when the inbox that got it does not want it', async (kit) => {
    const fence = await held(kit);
    const [first, second] = [await kit.inbox('first'), await kit.inbox('second')];
    await kit.acquire(kit.key(), 'b', { waitedMs: 5_000, inbox: 'first' });
    await kit.acquire(kit.key(), 'c', { waitedMs: 10, inbox: 'second' });
    await kit.release(kit.key(), 'a', fence);
    assert.equal(await first.next(), kit.key());
    const call = { ...CALL, leaving: kit.topic('first'), most: 1, apartMs: 0 };
    assert.deepEqual(await kit.store.leases.wakeNext([kit.key()], call), [1]);
    assert.equal(await second.next(), kit.key());
    for (const inbox of [first, second]) inbox.unsubscribe();
  });
  check('delivers what is published to a topic', async (kit) => {
    const inbox = await kit.inbox('topic');
    await kit.store.signals.publish(kit.topic('topic'), 'hello');
    assert.equal(await inbox.next(), 'hello');
    inbox.unsubscribe();
  });
}

function passingOver(check: Check): void {
  check('B-02 wakes the next ones while the key is free, each to ask in its turn', async (kit) => {
    const fence = await held(kit);
    const names = ['first', 'second', 'third', 'fourth'];
    const inboxes = await Promise.all(names.map((name) => kit.inbox(name)));
    for (const [i, inbox] of names.entries())
      await kit.acquire(kit.key(), `waiter-${i}`, { waitedMs: 5_000 - i, inbox });
    const call = { ...CALL, most: 2, apartMs: 75 };
    assert.deepEqual(await kit.store.leases.wakeNext([kit.key()], call), [0]);
    const released = await kit.release(kit.key(), 'a', fence);
    assert(released.kind === 'released' && released.woke);
    assert.equal(await inboxes[0]?.next(), kit.key());
    assert.deepEqual(await kit.store.leases.wakeNext([kit.key(), kit.key('free')], call), [2, 0]);
    assert.equal(await inboxes[1]?.next(), kit.key());
    assert.equal(await inboxes[2]?.next(), `${kit.key()}\n75`);
    await kit.granted(kit.key(), 'waiter-1');
    assert.deepEqual(await kit.store.leases.wakeNext([kit.key()], call), [0]);
    assert.deepEqual(inboxes[3]?.messages, []);
    for (const inbox of inboxes) inbox.unsubscribe();
  });
  check('says that a release woke nobody where nobody waits', async (kit) => {
    const released = await kit.release(kit.key(), 'a', await held(kit));
    assert(released.kind === 'released' && !released.woke);
  });
}
