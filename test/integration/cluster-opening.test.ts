import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../src/index.ts';
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts';
import { freePort, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { codeOf, leaveNothingBehind, nextEvent, openAt, take } from './support/holdfasts.ts';
import { hostMs, SHORT } from './support/lease-watch.ts';

leaveNothingBehind();

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster({ replicas: 0 });
}, 60_000);
afterAll(() => cluster.stop());

const failure = (opening: Promise<unknown>) =>
  opening.then(
    () => null,
    (error: Error) => error,
  );

/** A key of each primary. */
const keysOn = (prefix: string) =>
  Promise.all(
    cluster.primaries.map(async (node) =>
      (await cluster.keyOn(node, `${prefix}lease:k`)).slice(`${prefix}lease:`.length),
    ),
  );

/** What docs/redis.md says to grant in addition, for a line that begins with this. */
function documented(user: string): string[] {
  const page = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');
  const rights = new RegExp(`^${user} (.*)$`, 'm').exec(page)?.[1];
  if (rights === undefined) throw new Error(`docs/redis.md has no line '${user}'`);
  return rights.split(' ');
}

describe.concurrent('opening a Redis Cluster', () => {
  it('K-16 by one server that is up: the others are found, and an unreachable one in the URL does no harm', async () => {
    const [first] = cluster.primaries;
    const url = `redis+cluster://127.0.0.1:${await freePort()},127.0.0.1:${first?.port}`;
    await using holdfast = await openAt({ url }, { prefix: 'seed:' });
    const leases = (await keysOn('seed:')).map((key) => take(holdfast, key, SHORT));
    expect((await Promise.all(leases)).map((lease) => lease.isHeld())).toEqual([true, true, true]);
  });

  it('K-16 a server that is cut off from the others is not believed while another says that all is well', async () => {
    // Has no slots but a few: to it the Cluster is down, and its map says nothing of the others.
    await using lonely = await startRedis({ args: ['--cluster-enabled', 'yes'] });
    await lonely.cli('CLUSTER', 'ADDSLOTS', 0, 1, 2);
    const [first] = cluster.primaries;
    const url = `redis+cluster://127.0.0.1:${lonely.port},127.0.0.1:${first?.port}`;
    await using holdfast = await openAt({ url }, { prefix: 'cut:' });
    expect((await take(holdfast, 'k', SHORT)).isHeld()).toBe(true);
  });

  it('K-16 nobody there: STORE_UNREACHABLE, with an address, in time', async () => {
    const port = await freePort();
    const startMs = hostMs();
    const error = await failure(openAt({ url: `redis+cluster://127.0.0.1:${port}` }));
    expect(error).toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(error?.message).toContain(`127.0.0.1:${port}`);
    expect(hostMs() - startMs).toBeLessThan(8_000);
  });

  it('K-16 as a single server, or a single server as a Cluster: STORE_UNSUITABLE, with the right URL', async () => {
    await using single = await startRedis();
    const [node] = cluster.primaries;
    const asCluster = await failure(openAt({ url: `redis+cluster://127.0.0.1:${single.port}` }));
    const asSingle = await failure(openAt({ url: `redis://127.0.0.1:${node?.port}` }));
    expect([asCluster, asSingle]).toMatchObject([
      { code: 'STORE_UNSUITABLE' },
      { code: 'STORE_UNSUITABLE' },
    ]);
    expect(asCluster?.message).toContain(`redis://127.0.0.1:${single.port}`);
    expect(asSingle?.message).toContain('redis+cluster://');
  });

  it('K-15 two clients at once on one never used, up for long enough: granted at once on all primaries', async () => {
    const isOld = async () => {
      const ages = cluster.primaries.map(async (node) =>
        Number((await node.info('server')).uptime_in_seconds),
      );
      return Math.min(...(await Promise.all(ages))) >= 6;
    };
    await until(isOld, { what: 'the Cluster to be old enough', deadlineMs: 15_000, every: 100 });
    const options = { quarantine: 'on', prefix: 'old:', maxTtl: SHORT.ttl } as const;
    const [one, other] = await Promise.all([openAt(cluster, options), openAt(cluster, options)]);
    await using _one = one;
    await using _other = other;
    const keys = await keysOn('old:');
    for (const holdfast of [one, other]) {
      const leases = keys.map((key) => take(holdfast, `${key}${holdfast.instanceId}`, SHORT));
      expect((await Promise.all(leases)).every((lease) => lease.isHeld())).toBe(true);
    }
    expect(await other.acquire(`${keys[0]}${one.instanceId}`, SHORT)).toMatchObject({
      ok: false,
      reason: 'held',
    });
  });

  it('K-16 with the least rights: what docs/redis.md lists for one server, and a little more', async () => {
    const rights = [
      ...documented('ACL SETUSER holdfast on >PASSWORD'),
      ...documented('ACL SETUSER holdfast(?= \\+)'),
    ];
    const user = ['ACL', 'SETUSER', 'lessee', 'reset', 'on', '>secret', ...rights];
    for (const node of cluster.primaries) {
      await node.cli(...user);
      await node.cli('ACL', 'LOG', 'RESET');
    }
    const url = cluster.url.replace('//', '//lessee:secret@');
    await using holdfast = await openAt({ url }, { quarantine: 'on', maxTtl: '5s' });
    await using other = await openAt({ url }, { maxTtl: '5s' });
    const keys = await keysOn('');
    const leases = await Promise.all(
      keys.map((key) => take(other, key, { ttl: '5s', wait: '10s' })),
    );
    const waiting = keys.map((key) => take(holdfast, key, { ...SHORT, wait: '20s' }));
    for (const [i, key] of keys.entries()) {
      const inLine = async () =>
        (await cluster.primaries[i]?.cli('ZCARD', `line:{lease:${key}}`)) === 1;
      await until(inLine, { what: 'the line' });
    }
    for (const lease of leases) expect(await lease.release()).toEqual({ released: true });
    await Promise.all(waiting);
    await nextEvent(holdfast, 'lease.renewed');
    await holdfast.records.put('r', 1);
    expect(await holdfast.records.get('r')).toMatchObject({ value: 1 });
    // A slot that is on its way.
    const [from, to] = cluster.primaries;
    if (from === undefined || to === undefined) throw new Error('two primaries are needed');
    const slot = await cluster.slotOf(`lease:${keys[0]}`);
    await cluster.migrateSlot(slot, to, { stopAt: 'half' });
    await nextEvent(holdfast, 'lease.renewed');
    await cluster.migrateSlot(slot, to);
    expect(await (await waiting[0])?.release()).toEqual({ released: true });
    await cluster.migrateSlot(slot, from);
    for (const node of cluster.primaries) expect(await node.cli('ACL', 'LOG')).toEqual([]);
    expect(await codeOf(holdfast.examine())).toContain('resolved');
  });
});

describe('a Redis Cluster with a frozen primary', () => {
  it.each(['on', 'off'] as const)(
    'K-16 (quarantine %s) is not opened, and says so in time; closing leaves nothing',
    async (quarantine) => {
      const [, , third] = cluster.primaries;
      try {
        await third?.freeze();
        const startMs = hostMs();
        const options = { quarantine, prefix: 'cold:', on: { 'store.warned': () => {} } };
        const code = await codeOf(open(cluster.url, options));
        expect(code).toBe('STORE_UNREACHABLE');
        expect(hostMs() - startMs).toBeLessThan(9_000);
      } finally {
        await third?.thaw();
      }
      await cluster.untilAgreed();
    },
  );
});
