/**
 * What every store must do, as tests any runner can run. A store passes all of them or is not one.
 *
 * ```ts
 * storeConformance('my store', { open: async () => ({ store: await openMyStore(), elapse, dispose }) }, { describe, it });
 * ```
 */
import assert from 'node:assert/strict';
import { processing } from './conformance-actions.ts';
import { delivering } from './conformance-deliveries.ts';
import { accepting } from './conformance-intents.ts';
import {
  CALL,
  type Check,
  type ConformanceStore,
  inTurn,
  Kit,
  LONG_MS,
  SHORT_MS,
} from './conformance-kit.ts';
import { logging } from './conformance-log.ts';
import { belonging } from './conformance-members.ts';
import { resulting } from './conformance-outcomes.ts';
import { recording } from './conformance-records.ts';
import { accounting } from './conformance-sessions.ts';
import { streaming } from './conformance-streams.ts';
import { succession } from './conformance-tenures.ts';
import { orchestrating } from './conformance-workflows.ts';

export interface ConformanceHarness {
  describe(name: string, run: () => void): void;
  it(name: string, run: () => Promise<void>): void;
}

export function storeConformance(
  name: string,
  { open }: { open: () => Promise<ConformanceStore> },
  { describe, it }: ConformanceHarness,
): void {
  const check = (title: string, run: (kit: Kit) => Promise<void>) => {
    it(title, async () => {
      const opened = await open();
      try {
        await run(new Kit(opened));
      } finally {
        await opened.dispose();
      }
    });
  };
  describe(name, () => {
    acquiring(check);
    renewing(check);
    releasing(check);
    transferring(check);
    revoking(check);
    waiting(check);
    reading(check);
    belonging(check);
    recording(check);
    logging(check);
    streaming(check);
    delivering(check);
    orchestrating(check);
    succession(check);
    processing(check);
    resulting(check);
    const checkInTurn = inTurn(check);
    accepting(checkInTurn);
    accounting(checkInTurn);
  });
}

function acquiring(check: Check): void {
  check('grants a free key, and the fence is the time in microseconds or more', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a');
    assert(Number.isSafeInteger(fence) && fence > 1_600_000_000_000_000, `fence ${fence}`);
    const found = await kit.read(kit.key());
    assert(
      found.kind === 'held' &&
        found.holder === 'a' &&
        found.fence === fence &&
        found.expiresInMs <= LONG_MS,
    );
  });
  check('refuses a held key and says who holds it, with which fence, for how long', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a');
    const reply = await kit.acquire(kit.key(), 'b');
    assert(
      reply.kind === 'busy' &&
        reply.reason === 'held' &&
        reply.holder === 'a' &&
        reply.fence === fence,
    );
    assert(reply.expiresInMs > 0 && reply.expiresInMs <= LONG_MS);
  });
  check('grants anew after expiry, with a higher fence', async (kit) => {
    const first = await kit.granted(kit.key(), 'a', { ttlMs: SHORT_MS });
    await kit.elapse(SHORT_MS + 10);
    assert((await kit.granted(kit.key(), 'b')) > first);
  });
  check('refreshes a holder that presents the current fence, which stays', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a');
    assert.equal(await kit.granted(kit.key(), 'a', { fence }), fence);
  });
  check(
    'mints a new fence for the holder it names when none, or an old one, is presented',
    async (kit) => {
      const first = await kit.granted(kit.key(), 'a');
      const second = await kit.granted(kit.key(), 'a');
      assert(second > first);
      assert((await kit.granted(kit.key(), 'a', { fence: first })) > second);
    },
  );
  check('mints at least the floor it is given', async (kit) => {
    const floor = 3_000_000_000_000_000;
    assert.equal(await kit.granted(kit.key(), 'a', { ttlMs: SHORT_MS, fenceFloor: floor }), floor);
    await kit.elapse(SHORT_MS + 10);
    assert.equal(await kit.granted(kit.key(), 'a'), floor + 1);
  });
  check('answers a batch in order, key by key', async (kit) => {
    await kit.granted(kit.key('2'), 'other');
    const requests = ['1', '2', '3'].map((name) => ({ key: kit.key(name), holder: 'a' }));
    const call = { ...CALL, ttlMs: LONG_MS, inbox: 'conformance', leaseClass: 'lease' };
    const replies = await kit.store.leases.acquire(requests, call);
    assert.deepEqual(
      replies.map(({ kind }) => kind),
      ['granted', 'busy', 'granted'],
    );
  });
  check('grants one of many that ask at once', async (kit) => {
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => kit.acquire(kit.key(), `holder-${n}`)),
    );
    assert.equal(replies.filter(({ kind }) => kind === 'granted').length, 1);
  });
}

function renewing(check: Check): void {
  check('lengthens the lease of the holder it names', async (kit) => {
    await kit.granted(kit.key(), 'a');
    assert.equal((await kit.renew(kit.key(), 'a', 2 * LONG_MS)).kind, 'renewed');
    const found = await kit.read(kit.key());
    assert(found.kind === 'held' && found.expiresInMs > LONG_MS);
  });
  check('renews nothing for another holder, and says who it is', async (kit) => {
    await kit.granted(kit.key(), 'a');
    assert.deepEqual(await kit.renew(kit.key(), 'b'), {
      kind: 'other',
      holder: 'a',
      revoked: false,
    });
  });
  check('never brings back an expired lease, and reports the fence record', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a', { ttlMs: SHORT_MS });
    await kit.elapse(SHORT_MS + 10);
    assert.deepEqual(await kit.renew(kit.key(), 'a'), { kind: 'vanished', fence, revoked: false });
    assert.equal((await kit.read(kit.key())).kind, 'free');
  });
  check('reports a key it has never heard of with fence 0', async (kit) => {
    assert.deepEqual(await kit.renew(kit.key(), 'a'), {
      kind: 'vanished',
      fence: 0,
      revoked: false,
    });
  });
  check('puts back a vanished lease whose fence record is the holder’s', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a', { ttlMs: SHORT_MS });
    await kit.elapse(SHORT_MS + 10);
    assert.equal(await kit.reassert(kit.key(), 'a', fence), 'reasserted');
    const found = await kit.read(kit.key());
    assert(found.kind === 'held' && found.holder === 'a' && found.fence === fence);
  });
  check('puts nothing back where somebody else has been granted the key since', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a', { ttlMs: SHORT_MS });
    await kit.elapse(SHORT_MS + 10);
    const newer = await kit.granted(kit.key(), 'b');
    assert.equal(await kit.reassert(kit.key(), 'a', fence), 'refused');
    await kit.release(kit.key(), 'b', newer);
    assert.equal(await kit.reassert(kit.key(), 'a', fence), 'refused');
  });
  check('puts nothing back on the word of a holder it has no record of', async (kit) => {
    assert.equal(await kit.reassert(kit.key(), 'a', 1_700_000_000_000_000), 'refused');
  });
}

function releasing(check: Check): void {
  check('frees a key for the holder and fence it names', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a');
    assert.equal((await kit.release(kit.key(), 'a', fence)).kind, 'released');
    assert.deepEqual(await kit.read(kit.key()), { kind: 'free', fence });
    assert((await kit.granted(kit.key(), 'b')) > fence);
  });
  check('frees nothing for another holder', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a');
    assert.deepEqual(await kit.release(kit.key(), 'b', fence), {
      kind: 'not-held',
      holder: 'a',
      fence,
    });
  });
  check('frees nothing for an earlier tenure of the same holder', async (kit) => {
    const old = await kit.granted(kit.key(), 'a');
    const fence = await kit.granted(kit.key(), 'a');
    assert.deepEqual(await kit.release(kit.key(), 'a', old), {
      kind: 'not-held',
      holder: 'a',
      fence,
    });
  });
  check('frees nothing twice', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a');
    await kit.release(kit.key(), 'a', fence);
    assert.deepEqual(await kit.release(kit.key(), 'a', fence), {
      kind: 'not-held',
      holder: null,
      fence,
    });
  });
}

function transferring(check: Check): void {
  const transfer = async (kit: Kit, fence: number, windowMs = LONG_MS) => {
    const successor = `${kit.topic('b')}/1`;
    const handover = { key: kit.key(), holder: 'a', fence, successor };
    const [reply] = await kit.store.leases.transfer([handover], { ...CALL, windowMs });
    assert(reply !== undefined);
    return reply;
  };
  check('names the successor with a new fence, and tells its inbox', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a');
    const inbox = await kit.inbox('b');
    const reply = await transfer(kit, fence);
    assert(reply.kind === 'transferred' && reply.fence > fence);
    assert.equal(await inbox.next(), kit.key());
    inbox.unsubscribe();
    assert.equal((await kit.acquire(kit.key(), 'c')).kind, 'busy');
    assert((await kit.granted(kit.key(), `${kit.topic('b')}/1`)) > reply.fence);
  });
  check('leaves the key to anyone when the successor does not claim in time', async (kit) => {
    await transfer(kit, await kit.granted(kit.key(), 'a'), 50);
    await kit.elapse(60);
    await kit.granted(kit.key(), 'c');
  });
  check('transfers nothing for an earlier tenure', async (kit) => {
    const old = await kit.granted(kit.key(), 'a');
    await kit.granted(kit.key(), 'a');
    assert.equal((await transfer(kit, old)).kind, 'not-held');
  });
  check(
    'answers a batch of handovers in order, and tells each successor of its own',
    async (kit) => {
      const keys = ['1', '2', '3'].map((name) => kit.key(name));
      const fences = await Promise.all(keys.map((key) => kit.granted(key, 'a')));
      const [b, c] = [await kit.inbox('b'), await kit.inbox('c')];
      const successors = [kit.topic('b'), kit.topic('b'), kit.topic('c')];
      const handovers = keys.map((key, i) => ({
        ...{ key, holder: i === 1 ? 'stranger' : 'a' },
        ...{ fence: fences[i] ?? 0, successor: successors[i] ?? '' },
      }));
      const replies = await kit.store.leases.transfer(handovers, { ...CALL, windowMs: LONG_MS });
      assert.deepEqual(replies[1], { kind: 'not-held', holder: 'a', fence: fences[1] });
      for (const i of [0, 2]) {
        const reply = replies[i];
        assert(reply?.kind === 'transferred' && reply.fence > (fences[i] ?? 0));
        const found = await kit.read(keys[i] ?? '');
        assert(found.kind === 'held' && found.holder === successors[i]);
        assert.equal(found.fence, reply.fence);
      }
      assert.deepEqual([await b.next(), await c.next()], [keys[0], keys[2]]);
      assert.deepEqual([b.messages, c.messages], [[], []]);
      for (const inbox of [b, c]) inbox.unsubscribe();
    },
  );
  check('hands hundreds over at once', async (kit) => {
    const keys = Array.from({ length: 300 }, (_, n) => kit.key(String(n)));
    const requests = keys.map((key) => ({ key, holder: 'a' }));
    const call = { ...CALL, ttlMs: LONG_MS, inbox: 'conformance', leaseClass: 'lease' };
    const granted = await kit.store.leases.acquire(requests, call);
    const handovers = granted.map((reply, i) => {
      assert(reply.kind === 'granted');
      return { key: keys[i] ?? '', holder: 'a', fence: reply.fence, successor: 'b' };
    });
    const replies = await kit.store.leases.transfer(handovers, { ...CALL, windowMs: LONG_MS });
    assert(replies.length === 300 && replies.every(({ kind }) => kind === 'transferred'));
  });
}

function revoking(check: Check): void {
  check('keeps a tombstone for the time the revoked holder may still act', async (kit) => {
    // Long enough for all that is asked of it meanwhile.
    const ttlMs = 3 * SHORT_MS;
    const fence = await kit.granted(kit.key(), 'a', { ttlMs });
    const reply = await kit.store.leases.revoke(kit.key(), { ...CALL, force: false });
    assert(reply.kind === 'revoked' && reply.holder === 'a' && reply.fence > fence);
    assert(reply.mayActForMs > 0 && reply.mayActForMs <= ttlMs);
    const busy = await kit.acquire(kit.key(), 'b');
    assert(busy.kind === 'busy' && busy.reason === 'revoked');
    const renewed = await kit.renew(kit.key(), 'a');
    assert(renewed.kind === 'other' && renewed.revoked);
    assert.equal(
      (await kit.store.leases.revoke(kit.key(), { ...CALL, force: false })).kind,
      'not-held',
    );
    await kit.elapse(ttlMs + 10);
    assert((await kit.granted(kit.key(), 'b')) > reply.fence);
  });
  check('frees at once when forced, and the holder can tell it was revoked', async (kit) => {
    await kit.granted(kit.key(), 'a');
    const reply = await kit.store.leases.revoke(kit.key(), { ...CALL, force: true });
    assert(reply.kind === 'revoked');
    const renewed = await kit.renew(kit.key(), 'a');
    assert.deepEqual(renewed, { kind: 'vanished', fence: reply.fence, revoked: true });
    assert((await kit.granted(kit.key(), 'b')) > reply.fence);
  });
  check('has nothing to revoke on a free key', async (kit) => {
    assert.deepEqual(await kit.store.leases.revoke(kit.key(), { ...CALL, force: true }), {
      kind: 'not-held',
    });
  });
}

function waiting(check: Check): void {
  const held = async (kit: Kit) => kit.granted(kit.key(), 'a', { ttlMs: LONG_MS });
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
    await kit.store.leases.forgo(kit.key(), kit.topic('first'), CALL);
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

function reading(check: Check): void {
  check('reads a key it has never heard of as free with fence 0', async (kit) => {
    assert.deepEqual(await kit.read(kit.key()), { kind: 'free', fence: 0 });
  });
  check('lists the leases below a prefix, and nothing else', async (kit) => {
    const names = ['a', 'b', 'c'].map((name) => kit.key(name));
    for (const key of names) await kit.granted(key, 'holder', { ttlMs: LONG_MS });
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await kit.store.leases.list(kit.key(''), {
        ...CALL,
        ...(cursor !== undefined && { cursor }),
      });
      found.push(...page.leases.map(({ key }) => key));
      cursor = page.cursor;
    } while (cursor !== undefined);
    assert.deepEqual(found.sort(), names);
  });
}
