import { describe, expect, it, vi } from 'vitest';
import type { Holdfast, Lease } from '../../src/index.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind, nextEvent, openAt, take } from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch, validMs } from './support/lease-watch.ts';
import { startLessee } from './support/lessee.ts';

leaveNothingBehind();
// Nodes find each other, fail over and restart in real time.
vi.setConfig({ testTimeout: 90_000 });

/** Outlasts a failover of a Cluster whose nodes wait a second before they take one for dead. */
const LASTING = { ttl: 9_000, renewEvery: 500, operationTimeout: 1_000 } as const;
const BRIEF = { ttl: 4_000, renewEvery: 400, operationTimeout: 1_000 } as const;
const BOUND = { maxTtl: LASTING.ttl } as const;
const ON = { quarantine: 'on', ...BOUND } as const;

/** The names of leases, one on each primary. */
const keysOn = (cluster: RedisCluster, name: string) =>
  Promise.all(
    cluster.primaries.map(async (node) =>
      (await cluster.keyOn(node, `lease:${name}`)).slice('lease:'.length),
    ),
  );

async function takeAll(holdfast: Holdfast, keys: readonly string[], options: object) {
  const leases = keys.map((key) => take(holdfast, key, { ...options, wait: '25s' }));
  return (await Promise.all(leases)) as [Lease, Lease, Lease];
}

describe.concurrent('a Redis Cluster', () => {
  it('K-02 K-10 K-15 loses a primary: its leases go on under their fences, newcomers there wait, the others never notice', async () => {
    await using cluster = await startCluster();
    await using holdfast = await openAt(cluster, ON);
    await using other = await openAt(cluster, ON);
    await using waiter = await startLessee(cluster.url, BOUND);
    const keys = await keysOn(cluster, 'k');
    const fresh = await keysOn(cluster, 'fresh');
    const leases = await takeAll(holdfast, keys, LASTING);
    const watches = leases.map((lease) => new LeaseWatch(lease));
    const [replica] = cluster.replicas;
    const isThere = async () => {
      await replica?.cli('READONLY');
      return Number(await replica?.cli('DBSIZE')) >= 2;
    };
    await until(isThere, { what: 'the replica to be in step' });
    const store = await openRedisStore(cluster.url, { quarantine: 'off', maxTtls: null });
    const me = { id: 'me', attributes: { weight: 1 } };
    await store.members.beat(me, { ttlMs: 60_000, timeoutMs: 5_000 });
    await holdfast.records.put('r', 'before');
    const wish = { key: keys[0], options: { ttl: '9s', wait: '28s' } };
    const waiting = waiter.tell('acquire', wish, 29_000);
    const line = `line:{lease:${keys[0]}}`;
    const inLine = async () => (await cluster.primaries[0]?.cli('ZCARD', line)) === 1;
    await until(inLine, { what: 'the line' });

    const old = await cluster.killPrimary(0);
    const deadMs = hostMs();
    await cluster.untilFailedOver(old);
    const quarantined = async () => {
      const answer = await other.acquire(fresh[0] ?? '', LASTING);
      return !answer.ok && answer.reason === 'quarantine';
    };
    await until(quarantined, { what: 'the quarantine of the new primary' });
    // Of that primary only.
    for (const key of fresh.slice(1)) expect((await take(other, key, LASTING)).isHeld()).toBe(true);
    await take(other, fresh[0] ?? '', { ...LASTING, wait: '20s' });
    expect(hostMs() - deadMs).toBeGreaterThanOrEqual(LASTING.ttl + 1_000);
    for (const watch of watches) expect(watch.states).not.toContain('lost');
    for (const { key, fence, holder } of leases)
      expect(await other.inspect(key)).toMatchObject({ kind: 'held', holder, fence });
    expect(await holdfast.records.get('r')).toMatchObject({ value: 'before' });
    expect(await store.members.list({ timeoutMs: 5_000 })).toMatchObject([me]);
    const releasedMs = hostMs();
    expect(await leases[0].release()).toEqual({ released: true });
    const next = await waiting;
    expect(next).toMatchObject({ ok: true });
    expect(hostMs() - releasedMs).toBeLessThan(6_000);
    expectRising([leases[0].fence, Number(next.fence)]);
    expect(await waiter.end()).toBe(0);
    for (const watch of watches) watch[Symbol.dispose]();
    await store.close();
  });

  it('K-04 K-07 K-15 with a primary frozen, flushed, restarted without its data, and all of them restarted', async () => {
    await using cluster = await startCluster({
      replicas: 0,
      args: ['--cluster-require-full-coverage', 'no'],
    });
    await using holdfast = await openAt(cluster, ON);
    const keys = await keysOn(cluster, 'k');
    const spare = await keysOn(cluster, 'spare');
    const leases = await takeAll(holdfast, keys, BRIEF);
    const watches = leases.map((lease) => new LeaseWatch(lease));
    const markerAt = await cluster.ownerOf(await cluster.slotOf('holdfast:marker'));
    const at = cluster.primaries.indexOf(markerAt);
    const elsewhere = [0, 1, 2].filter((i) => i !== at);

    // Frozen: the one that has the marker, which is the worst.
    const lost = nextEvent(holdfast, 'lease.lost');
    await markerAt.freeze();
    const frozenMs = hostMs();
    const frozen = holdfast.acquire(spare[at] ?? '', BRIEF).catch(({ code }) => code);
    for (const i of elsewhere) {
      const startMs = hostMs();
      const lease = await take(holdfast, spare[i] ?? '', BRIEF);
      expect(hostMs() - startMs).toBeLessThan(700);
      await lease.release();
    }
    expect(await frozen).toBe('OUTCOME_UNKNOWN');
    expect(await lost).toMatchObject({ key: keys[at] });
    await watches[at]?.neverPassesAfter(frozenMs + validMs(BRIEF.ttl));
    for (const i of elsewhere) expect(watches[i]?.states).toEqual(['held']);
    await markerAt.thaw();
    await cluster.untilAgreed();

    // Flushed, another one: its holder puts the lease back, and it grants nothing new.
    const [flushedAt = 0, restartedAt = 0] = elsewhere;
    const reasserted = nextEvent(holdfast, 'lease.reasserted');
    await cluster.primaries[flushedAt]?.cli('FLUSHALL');
    expect(await reasserted).toMatchObject({ key: keys[flushedAt] });
    expect(await holdfast.acquire(spare[flushedAt] ?? '', BRIEF)).toMatchObject({
      ok: false,
      reason: 'quarantine',
    });

    // Restarted without its data: as flushed, or lost in time if it takes too long to serve again.
    const returned = new Set<string>();
    holdfast.on('lease.reasserted', ({ key }) => returned.add(key));
    await cluster.primaries[restartedAt]?.restart();
    const isSettled = () =>
      returned.has(keys[restartedAt] ?? '') || leases[restartedAt]?.state === 'lost';
    await until(isSettled, { what: 'the lease to be put back or lost', deadlineMs: 10_000 });
    expect(leases[flushedAt]?.isHeld()).toBe(true);

    // All of them: everything is lost in time or put back, and everything is to be had again.
    await Promise.all(cluster.primaries.map((node) => node.restart()));
    await cluster.untilAgreed();
    await using other = await openAt(cluster, ON);
    const taken = await takeAll(other, spare, BRIEF);
    for (const i of elsewhere) expectRising([leases[i]?.fence ?? 0, taken[i]?.fence ?? 0]);
    for (const watch of watches) watch[Symbol.dispose]();
  });
});
