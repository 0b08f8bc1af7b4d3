import assert from 'node:assert/strict';
import type { KeepAliveReply } from '../../src/store/port/lease-store.ts';
import { CALL, type Check, type Kit, LONG_MS, SHORT_MS } from './kit.ts';
import { begun, Orchestrator } from './orchestrator.ts';

/** Keepalives, in a store that offers them: one row renews all leases that are attached to it. */
export function keepalives(check: Check): void {
  const only: Check = (title, run) =>
    check(title, async (kit) => {
      if (kit.store.leases.keepAlive !== undefined) await run(kit);
    });
  living(only);
  lapsing(only);
  detaching(only);
  attaching(only);
}

/** Of a workflow's lease, too. */
export function workflowKeepalives(check: Check): void {
  check('B-25 tells the keepalive of a workflow that was handed off or revoked', async (kit) => {
    if (kit.store.leases.keepAlive === undefined) return;
    const flow = await begun(kit);
    const keepalive = new TestKeepalive(kit);
    await keepalive.attach({ key: flow.key, holder: flow.leaseId, fence: flow.fence });
    const next = await flow.handOff();
    assert.deepEqual(await keepalive.detached(), [flow.key]);
    await next.acquire();
    await next.begin();
    await keepalive.attach({ key: flow.key, holder: next.leaseId, fence: next.fence });
    await next.revoke();
    assert.deepEqual(await keepalive.detached(), [flow.key]);
  });
  check('B-25 gives out no run while the keepalive of its lease lives', async (kit) => {
    if (kit.store.leases.keepAlive === undefined) return;
    const { id, key, leaseId } = new Orchestrator(kit);
    const name = kit.topic('fulfil');
    const due = async () =>
      (await kit.store.runs.due([name], { ...CALL, most: 1, graceMs: 1 })).runs.length;
    await kit.store.runs.start(id, { function: name, input: null }, CALL);
    assert.equal(await due(), 1);
    const fence = await kit.granted(key, leaseId, { ttlMs: SHORT_MS });
    const keepalive = new TestKeepalive(kit);
    await keepalive.attach({ key, holder: leaseId, fence }, SHORT_MS);
    await keepalive.keep();
    await kit.elapse(SHORT_MS + 10);
    assert.equal(await due(), 0);
  });
}

/** A keepalive as its process has it. */
class TestKeepalive {
  readonly id = Math.random().toString(36).slice(2);
  readonly #kit: Kit;
  readonly #ttlMs: number;
  version = 0;
  #isMade = false;
  #told: number[] = [];

  constructor(kit: Kit, ttlMs = LONG_MS) {
    this.#kit = kit;
    this.#ttlMs = ttlMs;
  }

  /** Renews the row of a lease, and attaches it. */
  async attach(tenancy: { key: string; holder: string; fence: number }, ttlMs = this.#ttlMs) {
    const attachTo = { id: this.id, isNew: !this.#isMade };
    this.#isMade = true;
    const call = { ...CALL, ttlMs, attachTo };
    const [reply] = await this.#kit.store.leases.renew([tenancy], call);
    assert(reply);
    if (reply.kind === 'renewed' && reply.version !== undefined) this.version = reply.version;
    return reply;
  }

  async keep({ version = this.version, ttlMs = this.#ttlMs } = {}): Promise<KeepAliveReply> {
    const call = { ...CALL, ttlMs, version, acknowledged: this.#told };
    const reply = await this.#kit.store.leases.keepAlive?.(this.id, call);
    assert(reply);
    return reply;
  }

  /** Keeps it, and acknowledges what it is told the next time. */
  async detached(): Promise<string[]> {
    const reply = await this.keep();
    assert(reply.kind === 'kept', reply.kind);
    this.#told = reply.detached.map(({ number }) => number);
    return reply.detached.map(({ key }) => key);
  }
}

/** A lease that expires soon by itself, and is attached to a keepalive that lives long. */
async function attached(kit: Kit, name = 'key') {
  const key = kit.key(name);
  const fence = await kit.granted(key, 'h', { ttlMs: SHORT_MS });
  const keepalive = new TestKeepalive(kit);
  const tenancy = { key, holder: 'h', fence };
  const reply = await keepalive.attach(tenancy, SHORT_MS);
  assert(reply.kind === 'renewed' && reply.version !== undefined, JSON.stringify(reply));
  assert.deepEqual(await keepalive.detached(), []);
  return { key, fence, keepalive, tenancy };
}

function living(check: Check): void {
  check('B-25 one request renews all leases that are attached', async (kit) => {
    const keepalive = new TestKeepalive(kit, SHORT_MS);
    const keys = [kit.key('a'), kit.key('b')];
    for (const key of keys) {
      const fence = await kit.granted(key, 'h', { ttlMs: SHORT_MS });
      await keepalive.attach({ key, holder: 'h', fence });
    }
    assert.equal((await keepalive.keep({ ttlMs: LONG_MS })).kind, 'kept');
    await kit.elapse(SHORT_MS + 10);
    for (const key of keys) {
      await kit.keepsLong(key);
      const other = await kit.acquire(key, 'other');
      assert(other.kind === 'busy' && other.holder === 'h', JSON.stringify(other));
      assert(other.expiresInMs > LONG_MS / 2);
      assert.equal((await kit.acquire(key, 'other', { waitedMs: 0 })).kind, 'busy');
    }
    const { leases } = await kit.store.leases.list(keys[0] ?? '', CALL);
    assert(leases.length === 1 && (leases[0]?.expiresInMs ?? 0) > LONG_MS / 2);
    const wave = { ...CALL, most: 1, apartMs: 0 };
    assert.deepEqual(await kit.store.leases.wakeNext(keys, wave), [0, 0]);
  });
  check(
    'B-25 a lease that its keepalive keeps is renewed, released and not put back',
    async (kit) => {
      const { key, fence } = await attached(kit);
      await kit.elapse(SHORT_MS + 10);
      assert.equal(await kit.reassert(key, 'h', fence), 'refused');
      assert.equal((await kit.renew(key, 'other')).kind, 'other');
      assert.equal((await kit.renew(key, 'h', SHORT_MS)).kind, 'renewed');
      assert.equal((await kit.release(key, 'h', fence)).kind, 'released');
      assert.equal((await kit.read(key)).kind, 'free');
    },
  );
  check('B-25 a batch is not granted a lease that its keepalive keeps', async (kit) => {
    const { key } = await attached(kit);
    await kit.elapse(SHORT_MS + 10);
    const asks = [key, kit.key('free')].map((each) => ({ key: each, holder: 'other' }));
    const call = { ...CALL, ttlMs: SHORT_MS, inbox: 'inbox' };
    const replies = await kit.store.leases.acquire(asks, call);
    assert.deepEqual(
      replies.map(({ kind }) => kind),
      ['busy', 'granted'],
    );
  });
  check('B-25 a keepalive is never shortened', async (kit) => {
    const { key, keepalive } = await attached(kit);
    assert.equal((await keepalive.keep({ ttlMs: SHORT_MS })).kind, 'kept');
    await kit.keepsLong(key);
  });
}

function lapsing(check: Check): void {
  check('B-25 no lease outlives its keepalive, and a lapsed one renews nothing', async (kit) => {
    const keepalive = new TestKeepalive(kit, SHORT_MS);
    const [a, b] = [kit.key('a'), kit.key('b')];
    for (const key of [a, b]) {
      const fence = await kit.granted(key, 'h', { ttlMs: SHORT_MS });
      await keepalive.attach({ key, holder: 'h', fence });
    }
    await kit.elapse(SHORT_MS + 10);
    assert.equal((await kit.read(a)).kind, 'free');
    assert.equal((await kit.renew(a, 'h')).kind, 'vanished');
    assert.deepEqual(await keepalive.keep(), { kind: 'gone' });
    await kit.granted(a, 'other');
    assert.deepEqual(await keepalive.keep(), { kind: 'gone' });
    assert.equal((await kit.read(b)).kind, 'free');
    const again = await keepalive.attach({ key: a, holder: 'other', fence: await kit.fenceOf(a) });
    assert(again.kind === 'renewed' && again.version === undefined, JSON.stringify(again));
  });
  check('B-25 a lease keeps its own time when its keepalive has lapsed', async (kit) => {
    const key = kit.key();
    const keepalive = new TestKeepalive(kit, SHORT_MS);
    const fence = await kit.granted(key, 'h');
    await keepalive.attach({ key, holder: 'h', fence });
    await kit.elapse(SHORT_MS + 10);
    await kit.keepsLong(key);
    assert.deepEqual(await keepalive.keep(), { kind: 'gone' });
    await kit.keepsLong(key);
  });
  check('B-25 a keepalive of a version that the store has lost is gone', async (kit) => {
    const { key, fence, keepalive } = await attached(kit);
    const before = keepalive.version;
    await keepalive.attach({ key, holder: 'h', fence });
    assert(keepalive.version > before);
    assert.equal((await keepalive.keep({ version: before })).kind, 'kept');
    const lost = await keepalive.keep({ version: keepalive.version + 1 });
    assert.deepEqual(lost, { kind: 'gone' });
  });
}

function detaching(check: Check): void {
  check(
    'B-25 a revocation tells the keepalive, and lasts as long as its holder may act',
    async (kit) => {
      const { key, keepalive } = await attached(kit);
      const reply = await kit.revoke(key);
      assert(reply.kind === 'revoked' && reply.mayActForMs > LONG_MS / 2, JSON.stringify(reply));
      await kit.elapse(SHORT_MS + 10);
      const found = await kit.read(key);
      assert(found.kind === 'revoked' && found.expiresInMs > LONG_MS / 2, JSON.stringify(found));
      assert.deepEqual(await keepalive.detached(), [key]);
      const renewed = await kit.renew(key, 'h');
      assert(renewed.kind === 'other' && renewed.revoked);
    },
  );
  check('B-25 what was detached is told until it is acknowledged', async (kit) => {
    const { key, fence, keepalive } = await attached(kit);
    await kit.revoke(key, { force: true });
    const reply = await keepalive.keep();
    assert(reply.kind === 'kept' && reply.detached[0]?.key === key);
    assert.deepEqual(await keepalive.keep(), reply);
    assert.deepEqual(await keepalive.detached(), [key]);
    assert.deepEqual(await keepalive.detached(), []);
    assert.equal((await kit.release(key, 'h', fence)).kind, 'not-held');
  });
  check('B-25 a release and a transfer tell the keepalive', async (kit) => {
    const { key, fence, keepalive, tenancy } = await attached(kit);
    const call = { ...CALL, windowMs: SHORT_MS };
    const [reply] = await kit.store.leases.transfer([{ ...tenancy, successor: 's' }], call);
    assert.equal(reply?.kind, 'transferred');
    assert.deepEqual(await keepalive.detached(), [key]);
    await kit.elapse(SHORT_MS + 10);
    assert.equal((await kit.read(key)).kind, 'free');
    const next = await kit.granted(key, 'h');
    assert(next > fence);
    await keepalive.attach({ key, holder: 'h', fence: next });
    assert.equal((await kit.release(key, 'h', next)).kind, 'released');
    assert.deepEqual(await keepalive.detached(), [key]);
    assert.equal((await kit.read(key)).kind, 'free');
  });
  check(
    'B-25 a lease that its holder acquires again keeps its time, and is detached',
    async (kit) => {
      const { key, fence, keepalive } = await attached(kit);
      await kit.elapse(SHORT_MS + 10);
      assert.equal(await kit.granted(key, 'h', { fence, ttlMs: SHORT_MS }), fence);
      assert.deepEqual(await keepalive.detached(), [key]);
      await kit.keepsLong(key);
      await keepalive.attach({ key, holder: 'h', fence });
      const next = await kit.granted(key, 'h', { ttlMs: SHORT_MS });
      assert(next > fence);
      assert.deepEqual(await keepalive.detached(), [key]);
      await kit.keepsLong(key);
    },
  );
}

function attaching(check: Check): void {
  check('B-25 a lease has one keepalive, and the one that it leaves is told', async (kit) => {
    const { key, keepalive, tenancy } = await attached(kit);
    const other = new TestKeepalive(kit, SHORT_MS);
    await other.attach(tenancy);
    assert.deepEqual(await keepalive.detached(), [key]);
    assert.deepEqual(await other.detached(), []);
    // The time that the first has given it is not taken away.
    await kit.elapse(SHORT_MS + 10);
    await kit.keepsLong(key);
  });
  check(
    'B-25 only the lease of the fence is attached, and only to a keepalive that lives',
    async (kit) => {
      const { key, fence, keepalive } = await attached(kit);
      const next = await kit.granted(key, 'h', { ttlMs: SHORT_MS });
      const late = await keepalive.attach({ key, holder: 'h', fence });
      assert(late.kind === 'renewed' && late.version === undefined, JSON.stringify(late));
      const call = { ...CALL, ttlMs: SHORT_MS, attachTo: { id: 'never made', isNew: false } };
      const [reply] = await kit.store.leases.renew([{ key, holder: 'h', fence: next }], call);
      assert(reply?.kind === 'renewed' && reply.version === undefined, JSON.stringify(reply));
    },
  );
  check('B-25 a renewal without a keepalive leaves the attachment', async (kit) => {
    const { key, keepalive } = await attached(kit);
    assert.equal((await kit.renew(key, 'h', SHORT_MS)).kind, 'renewed');
    assert.deepEqual(await keepalive.detached(), []);
    await kit.elapse(SHORT_MS + 10);
    await kit.keepsLong(key);
  });
}
