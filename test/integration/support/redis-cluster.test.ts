import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type RedisCluster, startCluster } from '../../support/redis-cluster.ts';
import type { RedisServer } from '../../support/redis-server.ts';

/** A slot of the first primary with four keys in it, and the second primary, where it shall go. */
async function slotWithKeys(cluster: RedisCluster) {
  const [from, to] = cluster.primaries;
  if (from === undefined || to === undefined) throw new Error('two primaries are needed');
  const tag = await cluster.keyOn(from, 'tag');
  const keys = [1, 2, 3, 4].map((number) => `{${tag}}${number}`);
  for (const key of keys) await from.cli('SET', key, 'v');
  return { from, to, keys, slot: await cluster.slotOf(tag), missing: `{${tag}}missing` };
}

async function countKeys(node: RedisServer, slot: number): Promise<number> {
  return Number(await node.cli('CLUSTER', 'COUNTKEYSINSLOT', slot));
}

describe.concurrent('a cluster for a test', () => {
  it('has every slot on one of its primaries, and leaves nothing behind', async () => {
    const cluster = await startCluster();
    const { nodes, primaries, replicas } = cluster;
    expect([primaries.length, replicas.length]).toEqual([3, 1]);
    const hosts = primaries.map(({ port }) => `127.0.0.1:${port}`);
    expect(cluster.url).toBe(`redis+cluster://${hosts.join(',')}`);
    for (const primary of primaries) {
      const key = await cluster.keyOn(primary, 'lease:');
      expect(await cluster.ownerOf(await cluster.slotOf(key))).toBe(primary);
      expect(await primary.cli('SET', key, 'v')).toBe('OK');
    }
    expect(await cluster.slotOf('{a}b')).toBe(await cluster.slotOf('a'));
    const [map] = await cluster.untilAgreed();
    expect(map).toMatchObject({ from: 0, primary: primaries[0]?.port });
    expect(map?.replicas).toEqual([replicas[0]?.port]);

    const pids = nodes.map(({ pid }) => pid);
    await cluster.stop();
    await cluster.stop();
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    expect(nodes.map(({ dir }) => existsSync(dir))).toEqual(nodes.map(() => false));
  });

  it('moves a slot step by step', async () => {
    await using cluster = await startCluster({ replicas: 0 });
    const { from, to, keys, slot, missing } = await slotWithKeys(cluster);
    const ask = `ASK ${slot} 127.0.0.1:${to.port}`;

    await cluster.migrateSlot(slot, to, { stopAt: 'migrating' });
    expect(await from.cli('MGET', ...keys)).toEqual(keys.map(() => 'v'));
    await expect(from.cli('GET', missing)).rejects.toThrow(ask);
    await expect(to.cli('GET', missing)).rejects.toThrow(`MOVED ${slot} 127.0.0.1:${from.port}`);

    await cluster.migrateSlot(slot, to, { stopAt: 'half' });
    await cluster.migrateSlot(slot, to, { stopAt: 'half' });
    expect([await countKeys(from, slot), await countKeys(to, slot)]).toEqual([2, 2]);
    await expect(from.cli('MGET', ...keys)).rejects.toThrow('TRYAGAIN');
    const answers = await Promise.allSettled(keys.map((key) => from.cli('GET', key)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(String(answers.find((answer) => answer.status === 'rejected')?.reason)).toContain(ask);
    expect(await cluster.ownerOf(slot)).toBe(from);

    await cluster.migrateSlot(slot, to);
    expect(await cluster.ownerOf(slot)).toBe(to);
    expect(await to.cli('MGET', ...keys)).toEqual(keys.map(() => 'v'));
    await expect(from.cli('GET', missing)).rejects.toThrow(`MOVED ${slot} 127.0.0.1:${to.port}`);
  });

  it('puts a replica in the place of a primary that dies', async () => {
    await using cluster = await startCluster();
    const [replica] = cluster.replicas;
    const old = await cluster.killPrimary(0);
    await cluster.untilFailedOver(old);
    expect(await cluster.ownerOf(0)).toBe(replica);
    const key = await cluster.keyOn(await cluster.ownerOf(0));
    expect(await replica?.cli('SET', key, 'v')).toBe('OK');

    await old.restart();
    await cluster.untilAgreed();
    expect((await old.info('replication')).master_port).toBe(String(replica?.port));
    await expect(old.cli('SET', key, 'w')).rejects.toThrow(`127.0.0.1:${replica?.port}`);
  });

  it('puts a replica in the place of its primary by hand, and back', async () => {
    await using cluster = await startCluster({ replicas: 3 });
    const [, second] = cluster.primaries;
    const [, replica] = cluster.replicas;
    if (second === undefined || replica === undefined) throw new Error('two of each are needed');
    const slot = await cluster.slotOf(await cluster.keyOn(second));
    await cluster.failover(replica);
    expect(await cluster.ownerOf(slot)).toBe(replica);
    await cluster.failover(second);
    expect(await cluster.ownerOf(slot)).toBe(second);
    await cluster.failover(replica, 'TAKEOVER');
    expect(await cluster.ownerOf(slot)).toBe(replica);
  });

  it('says why it did not start', async () => {
    await expect(startCluster({ args: ['--no-such-option', '1'] })).rejects.toThrow(
      'no-such-option',
    );
  });
});
