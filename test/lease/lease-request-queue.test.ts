import { describe, expect, it } from 'vitest';
import { LeaseRequestQueue } from '../../src/lease/lease-request-queue.ts';
import { deriveTimings, LEASE_CLASSES, type LeasePolicy } from '../../src/lease/timings.ts';
import { WakeWatch } from '../../src/lease/wake-watch.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { LONGEST_TTL_MS } from '../../src/store/port/keyspaces.ts';
import type { LeaseStore } from '../../src/store/port/lease-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { testRuntime } from '../support/runtime.ts';

function makeRequests() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const sent: { verb: string; keys: string[]; timeoutMs: number }[] = [];
  const { acquire, release } = store.leases;
  store.leases.acquire = (requests, call) => {
    sent.push({ verb: 'acquire', keys: requests.map(({ key }) => key), timeoutMs: call.timeoutMs });
    return acquire.call(store.leases, requests, call);
  };
  store.leases.release = (tenures, call) => {
    sent.push({ verb: 'release', keys: tenures.map(({ key }) => key), timeoutMs: call.timeoutMs });
    return release.call(store.leases, tenures, call);
  };
  const policyOf = (ttl: string): LeasePolicy => ({
    leaseClass: LEASE_CLASSES.lease,
    timings: deriveTimings({ ttl }, {}, LONGEST_TTL_MS),
    maxTtlMs: LONGEST_TTL_MS,
  });
  const rt = testRuntime({ store, clock });
  return { clock, store, sent, policyOf, requests: new LeaseRequestQueue(rt, new WakeWatch(rt)) };
}

describe('LeaseRequestQueue', () => {
  it('K-01 a request that is alone is sent at once, and the others of its turn as one call, and each caller gets its own answer', async () => {
    const { requests, sent, policyOf } = makeRequests();
    const t = policyOf('3s');
    const keys = Array.from({ length: 64 }, (_, i) => `k${i}`);
    const replies = await Promise.all(keys.map((key) => requests.acquire(t, { key, holder: 'h' })));
    expect(sent).toEqual([
      { verb: 'acquire', keys: keys.slice(0, 1), timeoutMs: 500 },
      { verb: 'acquire', keys: keys.slice(1), timeoutMs: 500 },
    ]);
    expect(replies.every(({ reply }) => reply.kind === 'granted')).toBe(true);
  });

  it('K-01 after a turn with several requests the next are sent as one call, from the first on, until one is alone again', async () => {
    const { requests, sent, policyOf } = makeRequests();
    const t = policyOf('3s');
    const acquire = (...keys: string[]) =>
      Promise.all(keys.map((key) => requests.acquire(t, { key, holder: 'h' })));
    await acquire('a', 'b', 'c');
    await acquire('d', 'e');
    await acquire('f');
    const alone = acquire('g');
    expect(sent.map(({ keys }) => keys.join())).toEqual(['a', 'b,c', 'd,e', 'f', 'g']);
    await alone;
  });

  it('K-03 requests for one key keep their order, whatever their verbs', async () => {
    const { requests, sent, policyOf } = makeRequests();
    const t = policyOf('3s');
    const first = await requests.acquire(t, { key: 'k', holder: 'a' });
    const fence = first.reply.kind === 'granted' ? first.reply.fence : 0;
    sent.length = 0;
    const other = requests.acquire(t, { key: 'other', holder: 'b' });
    const released = requests.release(t, { key: 'k', holder: 'a', fence });
    const again = requests.acquire(t, { key: 'k', holder: 'b' });
    const late = requests.acquire(t, { key: 'late', holder: 'b' });
    expect((await released).kind).toBe('released');
    expect((await again).reply.kind).toBe('granted');
    await Promise.all([other, late]);
    expect(sent.map(({ verb, keys }) => `${verb} ${keys}`)).toEqual([
      'acquire other',
      'release k',
      'acquire k,late',
    ]);
  });

  it('K-03 more requests than fit into one call are split', async () => {
    const { requests, sent, policyOf } = makeRequests();
    const t = policyOf('3s');
    const one = requests.acquire(t, { key: 'first', holder: 'h' });
    const many = Array.from({ length: 600 }, (_, i) =>
      requests.acquire(t, { key: `k${i}`, holder: 'h' }),
    );
    await Promise.all([one, ...many]);
    expect(sent.map(({ keys }) => keys.length)).toEqual([1, 128, 128, 256, 88]);
  });

  it('K-01 half of a large batch is sent first if no request is in flight, so that client and store both work', async () => {
    const { requests, sent, policyOf } = makeRequests();
    const t = policyOf('3s');
    await Promise.all(['a', 'b', 'c'].map((key) => requests.acquire(t, { key, holder: 'h' })));
    sent.length = 0;
    const keys = Array.from({ length: 200 }, (_, i) => `k${i}`);
    await Promise.all(keys.map((key) => requests.acquire(t, { key, holder: 'h' })));
    expect(sent.map((call) => call.keys)).toEqual([keys.slice(0, 100), keys.slice(100)]);
  });

  it('K-12 requests of different policies are not sent together', async () => {
    const { requests, sent, policyOf } = makeRequests();
    const [short, long] = [policyOf('3s'), policyOf('30s')];
    await Promise.all([
      requests.acquire(short, { key: 'a', holder: 'h' }),
      requests.acquire(long, { key: 'b', holder: 'h' }),
    ]);
    expect(sent.map(({ timeoutMs }) => timeoutMs)).toEqual([500, 5_000]);
  });

  it('K-15 a handover is not sent after the deadline of its tenure, and the others of its batch are sent', async () => {
    const { clock, requests, policyOf } = makeRequests();
    const t = policyOf('3s');
    const handovers = await Promise.all(
      ['k1', 'k2'].map(async (key) => {
        const { reply } = await requests.acquire(t, { key, holder: 'a' });
        const fence = reply.kind === 'granted' ? reply.fence : 0;
        return { key, holder: 'a', fence, successor: 'b' };
      }),
    );
    const deadlines = [50, 100].map((ms) => clock.monotonicMs() + ms);
    const sending = handovers.map((handover, i) =>
      requests
        .transfer(t, handover, { windowMs: 2_000, deadlineMs: deadlines[i] ?? 0 })
        .catch((error: unknown) => error),
    );
    // The event loop was blocked before they could go out.
    clock.block(60);
    expect(await Promise.all(sending)).toMatchObject([
      { code: 'STORE_UNREACHABLE' },
      { kind: 'transferred' },
    ]);
  });

  it('K-07 a call that fails rejects its own callers, and no others', async () => {
    const { requests, store, policyOf } = makeRequests();
    const t = policyOf('3s');
    const works = store.leases.acquire;
    const fails: LeaseStore['acquire'] = async () => {
      throw new Error('down');
    };
    store.leases.acquire = fails;
    const failed = [
      requests.acquire(t, { key: 'a', holder: 'h' }),
      requests.acquire(t, { key: 'b', holder: 'h' }),
    ];
    for (const one of failed) await expect(one).rejects.toThrow('down');
    store.leases.acquire = works;
    expect((await requests.acquire(t, { key: 'a', holder: 'h' })).reply.kind).toBe('granted');
  });

  it('K-07 more requests in one turn than the limit are refused', async () => {
    const { requests, policyOf } = makeRequests();
    const t = policyOf('3s');
    // The first is sent at once.
    const all = Array.from({ length: 100_002 }, (_, i) =>
      requests.acquire(t, { key: `k${i}`, holder: 'h' }),
    );
    await expect(all.at(-1)).rejects.toMatchObject({ code: 'OVERLOADED', limit: 100_000 });
    await Promise.all(all.slice(0, -1));
  });
});
