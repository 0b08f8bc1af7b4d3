/**
 * What every store must do, as tests any runner can run. A store passes all of them or is not one.
 *
 * ```ts
 * const open = async () => ({ store: await openMyStore(), elapse, dispose });
 * storeConformance('my store', { open }, { describe, it });
 * ```
 */
import assert from 'node:assert/strict';
import { processing } from './actions.ts';
import { delivering } from './deliveries.ts';
import { revoking, transferring } from './handovers.ts';
import { accepting } from './intents.ts';
import { keepalives, workflowKeepalives } from './keepalives.ts';
import { CALL, type Check, type ConformanceStore, inTurn, Kit, LONG_MS, SHORT_MS } from './kit.ts';
import { bounding } from './limits.ts';
import { logging } from './log.ts';
import { belonging } from './members.ts';
import { resulting } from './outcomes.ts';
import { recording } from './records.ts';
import { running } from './runs.ts';
import { accounting } from './sessions.ts';
import { streaming } from './streams.ts';
import { succession } from './tenures.ts';
import { waiting } from './waiting.ts';
import { orchestrating } from './workflows.ts';

export interface ConformanceHarness {
  describe(name: string, run: () => void): void;
  it(name: string, run: () => Promise<void>): void;
}

/** Everything: both layers of the port. */
export function storeConformance(
  name: string,
  source: { open: () => Promise<ConformanceStore> },
  harness: ConformanceHarness,
): void {
  harness.describe(name, () => {
    const check = checkOf(source, harness);
    coordination(check);
    work(check);
  });
}

/** Leases, members and signals, for a store that offers these alone. */
export function coordinationConformance(
  name: string,
  source: { open: () => Promise<ConformanceStore> },
  harness: ConformanceHarness,
): void {
  harness.describe(name, () => coordination(checkOf(source, harness)));
}

function checkOf(
  { open }: { open: () => Promise<ConformanceStore> },
  { it }: ConformanceHarness,
): Check {
  return (title, run) => {
    it(title, async () => {
      const opened = await open();
      try {
        await run(new Kit(opened));
      } finally {
        await opened.dispose();
      }
    });
  };
}

function coordination(check: Check): void {
  acquiring(check);
  batching(check);
  renewing(check);
  releasing(check);
  transferring(check);
  revoking(check);
  keepalives(check);
  waiting(check);
  reading(check);
  belonging(check);
}

function work(check: Check): void {
  recording(check);
  logging(check);
  streaming(check);
  delivering(check);
  orchestrating(check);
  succession(check);
  workflowKeepalives(check);
  processing(check);
  resulting(check);
  running(check);
  bounding(check);
  const checkInTurn = inTurn(check);
  accepting(checkInTurn);
  accounting(checkInTurn);
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
  check('grants one of many that ask at once', async (kit) => {
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => kit.acquire(kit.key(), `holder-${n}`)),
    );
    assert.equal(replies.filter(({ kind }) => kind === 'granted').length, 1);
  });
}

/** Many keys in one call: each has its own answer. */
function batching(check: Check): void {
  check('answers a batch in order, key by key', async (kit) => {
    await kit.granted(kit.key('2'), 'other');
    const requests = ['1', '2', '3'].map((name) => ({ key: kit.key(name), holder: 'a' }));
    const call = { ...CALL, ttlMs: LONG_MS, inbox: 'conformance' };
    const replies = await kit.store.leases.acquire(requests, call);
    assert.deepEqual(
      replies.map(({ kind }) => kind),
      ['granted', 'busy', 'granted'],
    );
  });
  check(
    'K-03 answers requests with and without options in one batch, each as it asks',
    async (kit) => {
      const [plain, floored, held, ahead, last] = ['1', '2', '3', '4', '5'].map((name) =>
        kit.key(name),
      ) as [string, string, string, string, string];
      const floor = 3_000_000_000_000_000;
      const former = await kit.granted(ahead, 'a', { fenceFloor: floor });
      await kit.release(ahead, 'a', former);
      const other = await kit.granted(held, 'other');
      const holder = 'a';
      const requests = [
        { key: plain, holder },
        { key: floored, holder, fenceFloor: floor },
        { key: held, holder },
        { key: ahead, holder },
        { key: last, holder },
      ];
      const call = { ...CALL, ttlMs: LONG_MS, inbox: 'conformance' };
      const replies = await kit.store.leases.acquire(requests, call);
      assert.deepEqual(
        replies.map(({ kind }) => kind),
        ['granted', 'granted', 'busy', 'granted', 'granted'],
      );
      const fences = replies.map((reply) => (reply.kind === 'failed' ? 0 : reply.fence));
      assert.deepEqual(fences.slice(1, 4), [floor, other, floor + 1]);
      const keys = requests.map(({ key }) => key);
      const found = await kit.store.leases.read(keys, CALL);
      const recorded = found.map((reply) => (reply.kind === 'failed' ? 0 : reply.fence));
      assert.deepEqual(recorded, fences);
    },
  );
  check('K-03 frees those of a batch that it has as they are named, and no others', async (kit) => {
    const [first, renamed, last] = ['1', '2', '3'].map((name) => kit.key(name)) as [
      string,
      string,
      string,
    ];
    const fences = [await kit.granted(first, 'a'), await kit.granted(renamed, 'a')];
    const fence = await kit.granted(renamed, 'a');
    fences.push(await kit.granted(last, 'a'));
    const tenancies = [first, renamed, last].map((key, i) => {
      return { key, holder: 'a', fence: fences[i] ?? 0 };
    });
    assert.deepEqual(await kit.store.leases.release(tenancies, CALL), [
      { kind: 'released', woke: false },
      { kind: 'not-held', holder: 'a', fence },
      { kind: 'released', woke: false },
    ]);
    assert.deepEqual(
      [await kit.read(first), await kit.read(renamed), await kit.read(last)].map(
        ({ kind }) => kind,
      ),
      ['free', 'held', 'free'],
    );
  });
}

function renewing(check: Check): void {
  check('lengthens the lease of the holder it names', async (kit) => {
    await kit.granted(kit.key(), 'a');
    assert.equal((await kit.renew(kit.key(), 'a', 2 * LONG_MS)).kind, 'renewed');
    const found = await kit.read(kit.key());
    assert(found.kind === 'held' && found.expiresInMs > LONG_MS);
  });
  check('K-07 a late acquire of the same holder does not shorten its lease', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a');
    assert.equal(await kit.granted(kit.key(), 'a', { fence, ttlMs: SHORT_MS }), fence);
    await kit.keepsLong(kit.key());
    assert((await kit.granted(kit.key(), 'a', { ttlMs: SHORT_MS })) > fence);
    await kit.keepsLong(kit.key());
  });
  check('K-07 a late renewal with a shorter TTL does not shorten the lease', async (kit) => {
    await kit.granted(kit.key(), 'a');
    assert.equal((await kit.renew(kit.key(), 'a', SHORT_MS)).kind, 'renewed');
    await kit.keepsLong(kit.key());
  });
  check('K-03 a renewal that keeps the fence record changes no fence', async (kit) => {
    const fence = await kit.granted(kit.key(), 'a');
    const call = { ...CALL, ttlMs: LONG_MS, keepFences: true };
    const renewed = await kit.store.leases.renew([{ key: kit.key(), holder: 'a' }], call);
    assert.deepEqual(renewed, [{ kind: 'renewed' }]);
    assert.equal(await kit.fenceOf(kit.key()), fence);
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
