import { describe, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { LEASE_CLASSES } from '../../src/lease/classes.ts';
import { LeaseRequests } from '../../src/lease/lease-requests.ts';
import type { Terms } from '../../src/lease/tenure.ts';
import { deriveTimings } from '../../src/lease/timings.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { LONGEST_TTL_MS } from '../../src/store/port/keyspaces.ts';
import type { LeaseStore } from '../../src/store/port/lease-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

function makeDispatch() {
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
  const terms = (ttl: string): Terms => ({
    clock,
    events: new Emitter(),
    leaseClass: LEASE_CLASSES.lease,
    timings: deriveTimings({ ttl }, {}, LONGEST_TTL_MS),
    renewNow: () => {},
    onLost: () => {},
  });
  return {
    clock,
    store,
    sent,
    terms,
    dispatch: new LeaseRequests({ store, clock, inbox: 'inbox' }),
  };
}

describe('coalescing', () => {
  it('K-01 sends what is asked for in one turn of the event loop as one call, and answers each caller', async () => {
    const { dispatch, sent, terms } = makeDispatch();
    const t = terms('3s');
    const keys = Array.from({ length: 64 }, (_, i) => `k${i}`);
    const replies = await Promise.all(keys.map((key) => dispatch.acquire(t, { key, holder: 'h' })));
    expect(sent).toEqual([{ verb: 'acquire', keys, timeoutMs: 500 }]);
    expect(replies.every(({ reply }) => reply.kind === 'granted')).toBe(true);
  });

  it('K-03 keeps the order of requests for one key, whatever their verbs', async () => {
    const { dispatch, sent, terms } = makeDispatch();
    const t = terms('3s');
    const first = await dispatch.acquire(t, { key: 'k', holder: 'a' });
    const fence = first.reply.kind === 'granted' ? first.reply.fence : 0;
    sent.length = 0;
    const other = dispatch.acquire(t, { key: 'other', holder: 'b' });
    const released = dispatch.release(t, { key: 'k', holder: 'a', fence });
    const again = dispatch.acquire(t, { key: 'k', holder: 'b' });
    const late = dispatch.acquire(t, { key: 'late', holder: 'b' });
    expect((await released).kind).toBe('released');
    expect((await again).reply.kind).toBe('granted');
    await Promise.all([other, late]);
    expect(sent.map(({ verb, keys }) => `${verb} ${keys}`)).toEqual([
      'acquire other',
      'release k',
      'acquire k,late',
    ]);
  });

  it('K-03 splits what is too much for one call', async () => {
    const { dispatch, sent, terms } = makeDispatch();
    const t = terms('3s');
    const one = dispatch.acquire(t, { key: 'first', holder: 'h' });
    await Promise.resolve();
    const many = Array.from({ length: 600 }, (_, i) =>
      dispatch.acquire(t, { key: `k${i}`, holder: 'h' }),
    );
    await Promise.all([one, ...many]);
    expect(sent.map(({ keys }) => keys.length)).toEqual([1, 256, 256, 88]);
  });

  it('K-01 sends half of a large batch first where nothing is under way, so that both sides are at work', async () => {
    const { dispatch, sent, terms } = makeDispatch();
    const t = terms('3s');
    const keys = Array.from({ length: 200 }, (_, i) => `k${i}`);
    await Promise.all(keys.map((key) => dispatch.acquire(t, { key, holder: 'h' })));
    expect(sent.map((call) => call.keys)).toEqual([keys.slice(0, 100), keys.slice(100)]);
  });

  it('K-12 does not mix terms', async () => {
    const { dispatch, sent, terms } = makeDispatch();
    const [short, long] = [terms('3s'), terms('30s')];
    await Promise.all([
      dispatch.acquire(short, { key: 'a', holder: 'h' }),
      dispatch.acquire(long, { key: 'b', holder: 'h' }),
    ]);
    expect(sent.map(({ timeoutMs }) => timeoutMs)).toEqual([500, 5_000]);
  });

  it('K-15 does not send a handover after the deadline of its tenure, and sends the others', async () => {
    const { clock, dispatch, terms } = makeDispatch();
    const t = terms('3s');
    const handovers = await Promise.all(
      ['k1', 'k2'].map(async (key) => {
        const { reply } = await dispatch.acquire(t, { key, holder: 'a' });
        const fence = reply.kind === 'granted' ? reply.fence : 0;
        return { key, holder: 'a', fence, successor: 'b' };
      }),
    );
    const deadlines = [50, 100].map((ms) => clock.monotonicMs() + ms);
    const sending = handovers.map((handover, i) =>
      dispatch
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

  it('K-07 fails every caller of a call that fails, and only those', async () => {
    const { dispatch, store, terms } = makeDispatch();
    const t = terms('3s');
    const works = store.leases.acquire;
    const fails: LeaseStore['acquire'] = async () => {
      throw new Error('down');
    };
    store.leases.acquire = fails;
    const failed = [
      dispatch.acquire(t, { key: 'a', holder: 'h' }),
      dispatch.acquire(t, { key: 'b', holder: 'h' }),
    ];
    for (const one of failed) await expect(one).rejects.toThrow('down');
    store.leases.acquire = works;
    expect((await dispatch.acquire(t, { key: 'a', holder: 'h' })).reply.kind).toBe('granted');
  });

  it('K-07 refuses more than it can gather in one turn', async () => {
    const { dispatch, terms } = makeDispatch();
    const t = terms('3s');
    const all = Array.from({ length: 100_001 }, (_, i) =>
      dispatch.acquire(t, { key: `k${i}`, holder: 'h' }),
    );
    await expect(all.at(-1)).rejects.toMatchObject({ code: 'OVERLOADED', limit: 100_000 });
    await Promise.all(all.slice(0, -1));
  });
});
