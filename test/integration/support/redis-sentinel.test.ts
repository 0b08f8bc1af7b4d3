import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { startSentinels } from '../../support/redis-sentinel.ts';
import { call } from '../../support/resp.ts';
import { until } from '../../support/until.ts';

const DEADLINE_MS = 5_000;

describe.concurrent('a primary watched by sentinels, for a test', () => {
  it('is named by every sentinel, and leaves nothing behind', async () => {
    const watched = await startSentinels();
    const [first, ...others] = watched.servers;
    expect(await watched.primary()).toBe(first);
    expect(await watched.replicas()).toEqual(others);
    const hosts = watched.sentinels.map(({ port }) => `127.0.0.1:${port}`);
    expect(watched.url()).toBe(`redis+sentinel://${hosts.join(',')}/mymaster`);
    for (const sentinel of watched.sentinels) {
      expect(await sentinel.cli('SENTINEL', 'CKQUORUM', 'mymaster')).toContain('OK 3 usable');
    }

    const all = [...watched.servers, ...watched.sentinels];
    const pids = all.map(({ pid }) => pid);
    expect(pids).toHaveLength(5);
    await watched.stop();
    await watched.stop();
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    expect(all.map(({ dir }) => existsSync(dir))).toEqual(all.map(() => false));
  });

  it('changes by hand, the old one follows, and it changes back', async () => {
    await using watched = await startSentinels();
    const old = await watched.primary();
    const successor = await watched.failover();
    expect(successor).not.toBe(old);
    expect(await watched.primary()).toBe(successor);
    expect(await watched.replicas()).toEqual([old]);
    expect(await successor.cli('SET', 'k', 'v')).toBe('OK');
    await expect(old.cli('SET', 'k', 'w')).rejects.toThrow('READONLY');
    // What a replica has not received yet is lost when it takes over.
    await until(async () => (await old.cli('GET', 'k')) === 'v', {
      what: 'the old one to have it',
    });
    expect(await watched.failover()).toBe(old);
    expect(await old.cli('GET', 'k')).toBe('v');
  });

  it('is replaced when it dies, and is a replica when it comes back', async () => {
    const args = ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '1'];
    await using watched = await startSentinels({ replicas: 2, args });
    const old = await watched.primary();
    await old.kill();
    const successor = await watched.untilFailedOver(old);
    expect(successor).not.toBe(old);
    expect(await successor.cli('SET', 'k', 'v')).toBe('OK');

    await old.restart();
    await watched.untilHealthy();
    expect((await old.info('replication')).master_port).toBe(String(successor.port));
  });

  it('is replaced with one of the sentinels frozen, not with two', async () => {
    await using watched = await startSentinels();
    const [first, second, third] = watched.sentinels;
    const old = await watched.primary();
    await first?.freeze();
    await second?.freeze();
    await old.kill();
    const seen = async () => String(await third?.cli('SENTINEL', 'MASTERS')).includes('s_down');
    await until(seen, { what: 'the last sentinel to take the primary for down' });
    expect(await watched.primary()).toBe(old);
    await second?.thaw();
    expect(await watched.untilFailedOver(old)).not.toBe(old);
  });

  it.each([{ username: 'lessee', password: 'sésame "open" ?' }, { password: 'sesame-open' }])(
    'asks for the credentials %o',
    async (credentials) => {
      const sentinelCredentials = { ...credentials, password: 'barley' };
      await using watched = await startSentinels({ credentials, sentinelCredentials });
      const [server] = watched.servers;
      const [sentinel] = watched.sentinels;
      await expect(call(server?.port ?? 0, ['PING'], DEADLINE_MS)).rejects.toThrow('NOAUTH');
      const question = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'mymaster'];
      await expect(call(sentinel?.port ?? 0, question, DEADLINE_MS)).rejects.toThrow('NOAUTH');
      const { username = '', password } = credentials;
      expect(watched.url()).toContain(`//${username}:${encodeURIComponent(password)}@127.0.0.1:`);
      const successor = await watched.failover();
      expect(await successor.cli('SET', 'k', 'v')).toBe('OK');
    },
  );

  it('says why it did not start', async () => {
    await expect(startSentinels({ args: ['--no-such-option', '1'] })).rejects.toThrow(
      'no-such-option',
    );
  });
});
