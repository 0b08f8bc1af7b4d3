/**
 * Two holders of one key could be made by combinations that no test had: clients with different TTLs or classes, a holder that
 * is cut off, a client that comes after the loss, an address that leads back. Here each of them is put together by hand on a
 * simulated Redis, and two clients may never believe in one key at the same time.
 */

import { describe, expect, it, onTestFinished } from 'vitest';
import { Emitter, type EventName } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { type Holdfast, type OpenOptions, open } from '../../src/holdfast.ts';
import { Leases } from '../../src/lease/leases.ts';
import type { AcquireOptions } from '../../src/lease/options.ts';
import { readMaxTtl } from '../../src/store/port/keyspaces.ts';
import type { Dialer } from '../../src/store/redis/client/link.ts';
import { ReplyError } from '../../src/store/redis/client/wire.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { testRuntime } from '../support/runtime.ts';
import { simDialer } from '../support/sim-link.ts';

const BOUND_MS = 30_000;
/** As long as the quarantine of the default bound. */
const QUARANTINE_MS = BOUND_MS + 1_000;

describe('K-15 after a loss of data, one holder', () => {
  it.each([
    ['flushed', (redis: SimRedis) => redis.flush()],
    ['restarted without its data', (redis: SimRedis) => redis.restart('empty')],
    ['restarted with its data', (redis: SimRedis) => redis.restart({ lostMs: 0 })],
    ['failed over', (redis: SimRedis) => redis.failover(5_000)],
  ])(
    'K-15 %s: a client that used short leases waits for a cut-off holder with a long one',
    async (_, lose) => {
      const site = await newSite();
      const short = await site.client();
      const long = await site.client();
      await short.take('warm', { ttl: '1s' });
      await long.take('k', { ttl: '30s' });
      long.isCutOff = true;
      lose(site.redis);
      await short.takeWhenFree('k', { ttl: '1s' });
      site.expectOneHolder();
    },
  );

  it('K-15 a client that comes after the loss waits for a cut-off holder it has never heard of', async () => {
    const site = await newSite();
    const holder = await site.client();
    await holder.take('k', { ttl: '30s' });
    holder.isCutOff = true;
    site.redis.restart('empty');
    await site.clock.advance(5_000);
    const newcomer = await site.client();
    await newcomer.takeWhenFree('k', { ttl: '1s' });
    site.expectOneHolder();
  });

  it('K-15 a client without quarantine may hold a long lease beside one with it', async () => {
    const site = await newSite();
    const careless = await site.client({ quarantine: 'off' });
    const careful = await site.client();
    await careful.take('warm', { ttl: '1s' });
    await careless.take('k', { ttl: '30s' });
    careless.isCutOff = true;
    site.redis.flush();
    await careful.takeWhenFree('k', { ttl: '1s' });
    site.expectOneHolder();
  });

  it('K-15 classes that share keys share a quarantine', async () => {
    const site = await newSite();
    const worker = await site.client();
    const other = await site.client();
    await other.take('warm', { ttl: '1s' });
    await worker.take('k', { class: 'resource' });
    worker.isCutOff = true;
    site.redis.flush();
    await other.takeWhenFree('k', { ttl: '1s' });
    site.expectOneHolder();
  });

  it('K-15 an address that fails over and back is noticed, although the server it leads back to has not changed', async () => {
    const site = await newSite();
    const [a, c] = [await site.client(), await site.client()];
    const there = site.newServer();
    await site.clock.advance(QUARANTINE_MS);
    const here = site.moveTo(there);
    await a.takeWhenFree('k', { ttl: '30s' });
    await c.take('warm', { ttl: '1s' });
    a.isCutOff = true;
    site.moveTo(here);
    await c.takeWhenFree('k', { ttl: '1s' });
    site.expectOneHolder();
    expect(c.happened).toContain('store.forgot an earlier state of its data is back');
  });

  it('K-15 older data in a running server is noticed at the next look', async () => {
    const site = await newSite();
    const [a, b] = [await site.client(), await site.client()];
    await a.take('warm', { ttl: '1s' });
    await site.clock.advance(12_000);
    await a.take('k', { ttl: '30s' });
    a.isCutOff = true;
    await site.clock.advance(9_000);
    site.redis.rewind(9_500);
    await site.clock.advance(10_000);
    expect(b.happened).toContain('store.forgot an earlier state of its data is back');
    await b.takeWhenFree('k', { ttl: '1s' });
    site.expectOneHolder();
  });
});

describe('K-15 a quarantine', () => {
  it('K-15 lasts as long as the bound and a second, however long one lease was asked for', async () => {
    const site = await newSite();
    const maxTtl = { lease: '5s' };
    const client = await site.client({ maxTtl });
    await client.take('k', { ttl: '5s' });
    client.isCutOff = true;
    site.redis.flush();
    const other = await site.client({ maxTtl });
    // It comes after the flush and remembers nothing: the server has been up for long.
    client.isCutOff = false;
    await site.clock.advance(2_500);
    const result = await other.holdfast.acquire('other', { ttl: '1s' });
    expect(result).toMatchObject({ ok: false, reason: 'quarantine' });
    if (!result.ok) expect(result.expiresInMs).toBeLessThanOrEqual(6_000);
  });

  it('K-15 does not last as long as the clock of its server was ahead', async () => {
    const site = await newSite();
    site.serverAheadMs = 3_600_000;
    site.redis.restart('empty');
    await (await site.client()).close();
    site.serverAheadMs = 0;
    const newcomer = await site.client();
    const result = await newcomer.holdfast.acquire('k', { ttl: '1s' });
    if (!result.ok) expect(result.expiresInMs).toBeLessThanOrEqual(QUARANTINE_MS);
    await site.clock.advance(QUARANTINE_MS);
    await newcomer.take('k', { ttl: '1s' });
  });

  it('K-15 is not begun again by each look', async () => {
    const site = await newSite();
    const client = await site.client();
    await client.take('warm', { ttl: '1s' });
    site.redis.restart('empty');
    await client.takeWhenFree('k', { ttl: '1s' });
    expect(client.happened.filter((one) => one.startsWith('store.forgot'))).toHaveLength(1);
    expect(client.happened.filter((one) => one === 'store.quarantined')).toHaveLength(1);
  });

  it('K-15 a holder that notices the loss tells the others, and theirs is back at once', async () => {
    const site = await newSite();
    const [a, b] = [await site.client(), await site.client()];
    // Both listen, because they have waited for something.
    await (await site.client()).take('held', {});
    const waits = [a, b].map(({ leases }) => leases.acquire('held', { wait: 10 }));
    await site.clock.advance(2_000);
    await Promise.all(waits);
    await a.leases.acquire('a', { ttl: '3s' });
    await b.leases.acquire('b', { ttl: '30s' });
    site.redis.flush();
    await site.clock.advance(1_500);
    expect([...site.redis.keys()]).toContain('lease:b');
  });
});

describe('K-15 the bound', () => {
  it('K-15 a TTL above it is refused before anything is asked of the store', async () => {
    const site = await newSite();
    const client = await site.client();
    client.isCutOff = true;
    const asked = client.holdfast.acquire('k', { ttl: '31s' });
    await expect(asked).rejects.toMatchObject({ code: 'CONFIG_INVALID', field: 'ttl' });
    await expect(asked).rejects.toThrow(/30000 ms.*maxTtl/);
  });

  it('K-15 a shorter one shortens the leases of those who say no TTL', async () => {
    const site = await newSite();
    const client = await site.client({ maxTtl: '3s' });
    const lease = await client.take('k', {});
    expect(lease.remainingMs()).toBeLessThan(3_000);
    const resource = await client.take('r', { class: 'resource' });
    expect(resource.remainingMs()).toBeLessThan(3_000);
  });

  it('K-15 a client with another one is refused, with both values', async () => {
    const site = await newSite();
    await site.client({ maxTtl: { lease: '60s' } });
    const other = site.client();
    await expect(other).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
    await expect(other).rejects.toThrow(/'lease' leases is 60000 ms there and 30000 ms here/);
  });

  it('K-15 a client with another one that comes right after a flush is refused once a running client has looked', async () => {
    const site = await newSite();
    await site.client();
    site.redis.flush();
    const stranger = await site.client({ maxTtl: { lease: '60s' } });
    await site.clock.advance(11_000);
    await expect(stranger.holdfast.acquire('k')).rejects.toMatchObject({
      code: 'STORE_UNSUITABLE',
    });
  });

  it('K-15 the same where the clock of the server was set back before the flush, so that its marker looks older', async () => {
    const site = await newSite();
    site.serverAheadMs = 3_600_000;
    const client = await site.client();
    site.serverAheadMs = 0;
    site.redis.flush();
    const stranger = await site.client({ maxTtl: { lease: '60s' } });
    await site.clock.advance(11_000);
    const refused = { code: 'STORE_UNSUITABLE' };
    await expect(stranger.holdfast.acquire('k')).rejects.toMatchObject(refused);
    await client.takeWhenFree('k', { ttl: '30s' });
  });

  it('K-15 a client that was refused for its bound stays refused after a flush, because a longer lease may be held', async () => {
    const site = await newSite();
    const short = await site.client();
    const operator = await site.client({ observe: true });
    await operator.holdfast.changeMaxTtl({ lease: '60s' });
    const refused = { code: 'STORE_UNSUITABLE' };
    await expect(short.holdfast.acquire('k')).rejects.toMatchObject(refused);
    const long = await site.client({ maxTtl: { lease: '60s' } });
    await long.takeWhenFree('k', { ttl: '60s' });
    long.isCutOff = true;
    site.redis.flush();
    await site.clock.advance(40_000);
    await expect(short.holdfast.acquire('k')).rejects.toMatchObject(refused);
    site.expectOneHolder();
    long.isCutOff = false;
    await site.clock.advance(10_000);
    await expect(short.holdfast.acquire('k')).rejects.toMatchObject(refused);
  });

  it('K-15 one who only looks needs none, records none, and takes no lease', async () => {
    const site = await newSite();
    const looking = await site.client({ observe: true });
    const client = await site.client({ maxTtl: { lease: '60s' } });
    await client.take('k', { ttl: '60s' });
    expect(await looking.holdfast.inspect('k')).toMatchObject({ kind: 'held' });
    expect(await looking.holdfast.maxTtl()).toMatchObject({ lease: 60_000, poll: 30_000 });
    await expect(looking.holdfast.acquire('other')).rejects.toMatchObject({ field: 'observe' });
  });

  it('K-15 is changed while no lease is held: clients with the old one are refused from then on', async () => {
    const site = await newSite();
    const client = await site.client();
    const lease = await client.take('k', {});
    const looking = await site.client({ observe: true });
    const change = () => looking.holdfast.changeMaxTtl({ lease: '60s' });
    await expect(change()).rejects.toThrow(/'lease:k' is held/);
    await lease.release();
    expect(await change()).toMatchObject({ lease: 60_000 });
    await expect(client.holdfast.acquire('k')).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
    const next = await site.client({ maxTtl: { lease: '60s' } });
    await next.takeWhenFree('k', { ttl: '60s' });
  });
});

describe('K-16 a store that has not been used yet', () => {
  it('K-16 stays empty while a process only looks, and is found by it once a client has used it', async () => {
    const site = await newSite();
    const looking = await site.client({ observe: true });
    await site.clock.advance(60_000);
    expect((await looking.holdfast.list()).leases).toEqual([]);
    expect(await looking.holdfast.maxTtl()).toEqual({});
    expect([...site.redis.keys()]).toEqual([]);
    const client = await site.client();
    await client.take('k', {});
    expect(await looking.holdfast.inspect('k')).toMatchObject({ kind: 'held' });
  });

  it('K-15 is in quarantine for the first client as if no process had looked before', async () => {
    const firstAnswer = async ({ isLookedAt }: { isLookedAt: boolean }) => {
      const site = new Site();
      const startedMs = site.clock.monotonicMs();
      if (isLookedAt) await site.client({ observe: true });
      await site.clock.advance(startedMs + 5_000 - site.clock.monotonicMs());
      return (await site.client()).holdfast.acquire('k');
    };
    const answer = await firstAnswer({ isLookedAt: true });
    expect(answer).toMatchObject({ ok: false, reason: 'quarantine' });
    expect(answer).toEqual(await firstAnswer({ isLookedAt: false }));
  });

  it('K-15 is not what a process sees that looked before a flush: it puts the marker back', async () => {
    const site = await newSite();
    const client = await site.client();
    await client.take('k', { ttl: '30s' });
    const looking = await site.client({ observe: true });
    client.isCutOff = true;
    site.redis.flush();
    await site.clock.advance(11_000);
    expect(looking.happened.some((one) => one.startsWith('store.forgot'))).toBe(true);
    const newcomer = await site.client();
    await newcomer.takeWhenFree('k', { ttl: '1s' });
    site.expectOneHolder();
  });
});

describe('K-16 a server that becomes unsuitable', () => {
  it('K-16 grants nothing more once its eviction policy is changed, and still renews what is held', async () => {
    const site = await newSite();
    const client = await site.client();
    const lease = await client.take('k', { ttl: '30s' });
    site.redis.evictionPolicy = 'allkeys-lru';
    await site.clock.advance(10_100);
    await expect(client.holdfast.acquire('other')).rejects.toMatchObject({
      code: 'STORE_UNSUITABLE',
    });
    expect(client.happened).toContain('store.warned');
    await site.clock.advance(40_000);
    expect(lease.isHeld()).toBe(true);
    site.redis.evictionPolicy = 'noeviction';
    await site.clock.advance(10_100);
    await client.take('other', { ttl: '1s' });
  });
});

class Client {
  isCutOff = false;
  readonly happened: string[] = [];
  holdfast!: Holdfast;
  /** On the emitter of the store, as those are that `open` makes itself. */
  leases!: Leases;
  readonly #site: Site;

  constructor(site: Site) {
    this.#site = site;
  }

  async take(key: string, options: AcquireOptions) {
    const result = await this.holdfast.acquire(key, options);
    if (!result.ok) throw new Error(`'${key}' was not granted: ${result.reason}`);
    if (key === 'k') this.#site.believers.push(() => result.lease.isHeld());
    return result.lease;
  }

  /** Asks every half second, and looks each time at who believes. */
  async takeWhenFree(key: string, options: AcquireOptions): Promise<void> {
    for (let asked = 0; asked < 200; asked++) {
      this.#site.expectOneHolder();
      const result = await this.holdfast.acquire(key, options).catch(() => null);
      if (result?.ok) {
        this.#site.believers.push(() => result.lease.isHeld());
        return;
      }
      await this.#site.clock.advance(500);
    }
    throw new Error(`'${key}' was never granted`);
  }

  async close(): Promise<void> {
    const closing = this.holdfast.close({ within: 0 });
    await this.#site.clock.advance(10_000);
    await closing;
  }
}

class Site {
  readonly clock = new FakeClock();
  readonly believers: (() => boolean)[] = [];
  serverAheadMs = 0;
  redis: SimRedis;
  #seeds = 1;

  constructor() {
    this.redis = this.newServer();
  }

  newServer(): SimRedis {
    const wallMs = () => this.clock.wallMs() + this.serverAheadMs;
    const random = seededRandom(this.#seeds++);
    return new SimRedis({ wallMs, nowMs: () => this.clock.monotonicMs(), random });
  }

  /** The address leads to another server from now on; gives the one it led to. */
  moveTo(server: SimRedis): SimRedis {
    const before = this.redis;
    this.redis = server;
    return before;
  }

  async client(options: OpenOptions = {}): Promise<Client> {
    const client = new Client(this);
    const { clock } = this;
    // No two clients come at the same microsecond.
    await clock.advance(10);
    const random = seededRandom(this.#seeds++);
    const { observe = false, quarantine = 'on' } = options;
    const holdfastEvents = ['store.forgot', 'store.quarantined', 'store.warned'] as const;
    const events = new Emitter();
    for (const name of holdfastEvents) {
      events.on(name, (facts: object) => {
        const why = 'why' in facts ? ` ${facts.why}` : '';
        client.happened.push(`${name satisfies EventName}${why}`);
      });
    }
    const dial: Dialer['dial'] = async (attempt) => {
      const at = this.redis;
      if (client.isCutOff) throw new Error('no route to host');
      const link = await simDialer(at).dial(attempt);
      const send: typeof link.send = async (args) => {
        const isGone = client.isCutOff || at !== this.redis;
        const reply = isGone ? Promise.reject(new Error('connection reset')) : link.send(args);
        return reply.catch((error: unknown) => {
          // An answer that says no is no reason to give the connection up.
          if (!(error instanceof ReplyError)) attempt.onEnd(String(error));
          throw error;
        });
      };
      return { ...link, send };
    };
    const store = await openRedisStoreOn(
      { name: 'redis://simulated', dial },
      { clock, random, events, quarantine, maxTtls: observe ? null : readMaxTtl(options.maxTtl) },
    );
    client.holdfast = await open(store, { clock, random, observe });
    const maxTtls = store.leases.maxTtls ?? null;
    const instanceId = `client-${this.#seeds}`;
    const rt = testRuntime({ store, clock, random, events, instanceId });
    client.leases = new Leases(rt, maxTtls);
    onTestFinished(async () => {
      const closing = client.leases
        .close(0)
        .then(() => client.holdfast.close({ within: 0 }))
        .then(() => store.close());
      await clock.advance(10_000);
      await closing;
    });
    return client;
  }

  expectOneHolder(): void {
    expect(this.believers.filter((believes) => believes()).length).toBeLessThanOrEqual(1);
  }
}

/** A Redis that has been up for long: no quarantine keeps a client from its first lease. */
async function newSite(): Promise<Site> {
  const site = new Site();
  await site.clock.advance(600_000);
  return site;
}
