import assert from 'node:assert/strict';
import { CALL, type Check, type Kit, LONG_MS, SHORT_MS } from './kit.ts';

export function transferring(check: Check): void {
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
  check(
    'gives a successor that claims its whole TTL, not what is left of the window',
    async (kit) => {
      await transfer(kit, await kit.granted(kit.key(), 'a'), SHORT_MS);
      await kit.granted(kit.key(), `${kit.topic('b')}/1`);
      await kit.keepsLong(kit.key());
    },
  );
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
        key,
        holder: i === 1 ? 'stranger' : 'a',
        fence: fences[i] ?? 0,
        successor: successors[i] ?? '',
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
  handingMany(check);
}

function handingMany(check: Check): void {
  check('hands hundreds over at once', async (kit) => {
    const keys = Array.from({ length: 300 }, (_, n) => kit.key(String(n)));
    const requests = keys.map((key) => ({ key, holder: 'a' }));
    const call = { ...CALL, ttlMs: LONG_MS, inbox: 'conformance' };
    const granted = await kit.store.leases.acquire(requests, call);
    const handovers = granted.map((reply, i) => {
      assert(reply.kind === 'granted');
      return { key: keys[i] ?? '', holder: 'a', fence: reply.fence, successor: 'b' };
    });
    const replies = await kit.store.leases.transfer(handovers, { ...CALL, windowMs: LONG_MS });
    assert(replies.length === 300 && replies.every(({ kind }) => kind === 'transferred'));
  });
}

export function revoking(check: Check): void {
  check('keeps a tombstone for the time the revoked holder may still act', async (kit) => {
    // Long enough for all that is asked of it meanwhile.
    const ttlMs = 3 * SHORT_MS;
    const fence = await kit.granted(kit.key(), 'a', { ttlMs });
    const reply = await kit.revoke(kit.key());
    assert(reply.kind === 'revoked' && reply.holder === 'a' && reply.fence > fence);
    assert(reply.mayActForMs > 0 && reply.mayActForMs <= ttlMs);
    const busy = await kit.acquire(kit.key(), 'b');
    assert(busy.kind === 'busy' && busy.reason === 'revoked');
    const renewed = await kit.renew(kit.key(), 'a');
    assert(renewed.kind === 'other' && renewed.revoked);
    assert.equal((await kit.revoke(kit.key())).kind, 'not-held');
    await kit.elapse(ttlMs + 10);
    assert((await kit.granted(kit.key(), 'b')) > reply.fence);
  });
  check('frees at once when forced, and the holder can tell it was revoked', async (kit) => {
    await kit.granted(kit.key(), 'a');
    const reply = await kit.revoke(kit.key(), { force: true });
    assert(reply.kind === 'revoked');
    const renewed = await kit.renew(kit.key(), 'a');
    assert.deepEqual(renewed, { kind: 'vanished', fence: reply.fence, revoked: true });
    assert((await kit.granted(kit.key(), 'b')) > reply.fence);
  });
  check('has nothing to revoke on a free key', async (kit) => {
    assert.deepEqual(await kit.revoke(kit.key(), { force: true }), {
      kind: 'not-held',
      holder: null,
      fence: 0,
    });
  });
  for (const force of [false, true]) {
    const how = force ? 'a forced revocation' : 'a revocation';
    check(`K-09 ${how} that arrives late leaves the next holder alone`, async (kit) => {
      const old = await kit.granted(kit.key(), 'a');
      await kit.release(kit.key(), 'a', old);
      const fence = await kit.granted(kit.key(), 'b');
      const reply = await kit.revoke(kit.key(), { force, fence: old });
      assert.deepEqual(reply, { kind: 'not-held', holder: 'b', fence });
      assert.equal((await kit.renew(kit.key(), 'b')).kind, 'renewed');
      assert.equal(await kit.fenceOf(kit.key()), fence);
    });
  }
  check('K-09 a forced revocation that is repeated leaves the next holder alone', async (kit) => {
    const meant = await kit.granted(kit.key(), 'a');
    assert.equal((await kit.revoke(kit.key(), { force: true, fence: meant })).kind, 'revoked');
    const fence = await kit.granted(kit.key(), 'b');
    const again = await kit.revoke(kit.key(), { force: true, fence: meant });
    assert.deepEqual(again, { kind: 'not-held', holder: 'b', fence });
  });
  check(
    'K-09 force frees a key that was revoked without it, by the fence it shows',
    async (kit) => {
      await kit.granted(kit.key(), 'a');
      const first = await kit.revoke(kit.key());
      assert(first.kind === 'revoked');
      const forced = await kit.revoke(kit.key(), { force: true, fence: first.fence });
      assert(forced.kind === 'revoked' && forced.fence > first.fence);
      await kit.granted(kit.key(), 'b');
    },
  );
}
