import { describe, expect, it } from 'vitest';
import { FaultProxy } from '../../testing/fakes/fault-proxy.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind, nextEvent, openAt, take } from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch, SHORT, SHORT_VALID_MS } from './support/lease-watch.ts';

leaveNothingBehind();

/** A primary and its replica behind one address that stays the same, as a service name or Sentinel would keep it. */
class Pair {
  readonly primary: RedisServer;
  readonly replica: RedisServer;
  readonly proxy: FaultProxy;
  readonly #address: { host: string; port: number };

  private constructor(
    parts: Pick<Pair, 'primary' | 'replica' | 'proxy'>,
    address: { host: string; port: number },
  ) {
    this.primary = parts.primary;
    this.replica = parts.replica;
    this.proxy = parts.proxy;
    this.#address = address;
  }

  static async start(): Promise<Pair> {
    const primary = await startRedis();
    const replica = await startRedis({ replicaOf: primary });
    const address = { host: '127.0.0.1', port: primary.port };
    const proxy = await FaultProxy.start({ target: address });
    return new Pair({ primary, replica, proxy }, address);
  }

  async inStep(key: string): Promise<void> {
    const has = async () => (await this.replica.cli('EXISTS', key)) === 1;
    await until(has, { what: `the replica to have ${key}` });
  }

  /** From here on the replica hears nothing of the primary any more: as one that lags, until it is promoted. */
  async fallBehind(): Promise<void> {
    await this.replica.cli('REPLICAOF', 'NO', 'ONE');
  }

  /** Kills the primary. Returns when it was dead. */
  async kill(): Promise<number> {
    await this.primary.kill();
    return hostMs();
  }

  /** Makes the replica a primary, and moves the address over to it. */
  async promote(): Promise<void> {
    await this.replica.cli('REPLICAOF', 'NO', 'ONE');
    this.#address.port = this.replica.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy.close();
    await Promise.all([this.primary.stop(), this.replica.stop()]);
  }
}

describe.concurrent('a failover', () => {
  it('K-02 K-05 to a replica in step keeps the lease and its fence, and fences go on growing', async () => {
    await using pair = await Pair.start();
    await using holdfast = await openAt(pair.proxy);
    await using other = await openAt(pair.proxy);
    const lease = await take(holdfast, 'k', SHORT);
    using watch = new LeaseWatch(lease);
    await pair.inStep('lease:k');
    const renewed = nextEvent(holdfast, 'lease.renewed');
    await pair.kill();
    await pair.promote();
    await renewed;
    expect(lease.isHeld()).toBe(true);
    expect(watch.states).not.toContain('lost');
    const busy = await until(() => other.acquire('k', SHORT), {
      what: 'the new primary to answer',
    });
    expect(busy).toMatchObject({ ok: false, holder: lease.holder, fence: lease.fence });
    expect(await lease.release()).toEqual({ released: true });
    expectRising([lease.fence, (await take(other, 'k', SHORT)).fence]);
  });

  it('K-02 K-04 to a replica that never saw the grant: the next fence is higher all the same, and the old holder stops', async () => {
    await using pair = await Pair.start();
    await using holdfast = await openAt(pair.proxy);
    await using other = await openAt(pair.proxy);
    await pair.fallBehind();
    const lease = await take(holdfast, 'k', SHORT);
    using watch = new LeaseWatch(lease);
    const lost = nextEvent(holdfast, 'lease.lost');
    const deadMs = await pair.kill();
    await pair.promote();
    const next = await take(other, 'k', { ...SHORT, wait: '5s' });
    expectRising([lease.fence, next.fence]);
    expect(await lost).toMatchObject({ fence: lease.fence });
    await watch.neverPassesAfter(deadMs + SHORT_VALID_MS);
    // What the old holder still sends is refused: its writes carry the lower fence.
    await other.records.put('k', 'new', { fence: next.fence });
    const late = holdfast.records.put('k', 'old', { fence: lease.fence });
    await expect(late).rejects.toMatchObject({ code: 'FENCE_STALE', seen: next.fence });
  });

  it('K-15 with quarantine: no new grant for the bound and a second, while renewals go on and vanished keys are put back', async () => {
    await using pair = await Pair.start();
    const on = { quarantine: 'on', maxTtl: SHORT.ttl } as const;
    await using holdfast = await openAt(pair.proxy, on);
    await using other = await openAt(pair.proxy, on);
    const seen = await take(holdfast, 'seen', { ...SHORT, wait: '10s' });
    await pair.inStep('lease:seen');
    await pair.fallBehind();
    const unseen = await take(holdfast, 'unseen', SHORT);
    using seenWatch = new LeaseWatch(seen);
    using unseenWatch = new LeaseWatch(unseen);
    // Whoever is connected first finds out; the others read it in the marker.
    const forgot = Promise.any([holdfast, other].map((one) => nextEvent(one, 'store.forgot')));
    const reasserted = nextEvent(holdfast, 'lease.reasserted');

    // One that has never acquired anything asks for its first lease while there is no connection.
    const cut = nextEvent(other, 'store.disconnected');
    const deadMs = await pair.kill();
    await cut;
    const waiting = take(other, 'fresh', { ...SHORT, wait: '15s' });
    await pair.promote();
    expect(await reasserted).toMatchObject({ key: 'unseen', fence: unseen.fence });
    for (const key of ['seen', 'unseen', 'never used']) {
      expect(await other.acquire(key, SHORT)).toMatchObject({ ok: false, reason: 'quarantine' });
    }
    await waiting;
    expect(hostMs() - deadMs).toBeGreaterThanOrEqual(SHORT.ttl + 1_000);
    expect([seen.isHeld(), unseen.isHeld()]).toEqual([true, true]);
    expect([...seenWatch.states, ...unseenWatch.states]).not.toContain('lost');
    // Those two are held in the new primary as well, by name and fence.
    for (const { key, holder, fence } of [seen, unseen]) {
      expect(await other.acquire(key, SHORT)).toMatchObject({
        ok: false,
        reason: 'held',
        holder,
        fence,
      });
    }
    expect(await forgot).toMatchObject({ why: expect.stringContaining('another server') });
  });
});
