import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OnceOptions } from '../../src/index.ts';
import { spawnChild } from '../support/child.ts';
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { cli, privateFolder, startCli, Ticker } from './support/cli.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';

leaveNothingBehind();

const folder = privateFolder();
const TTL_MS = 3_000;
const SHORT = ['--ttl', `${TTL_MS}ms`, '--grace', '500ms'];

let redis: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  [redis, cluster] = await Promise.all([startRedis(), startCluster({ replicas: 0 })]);
}, 60_000);
afterAll(async () => {
  await Promise.all([redis.stop(), cluster.stop()]);
});

const stores: readonly [string, () => string][] = [
  ['SQLite', () => `sqlite:${join(folder, 'once.db')}`],
  ['Redis', () => redis.url],
  ['Redis Cluster', () => cluster.url],
];

describe.each(stores)('on %s', (name, urlOf) => {
  it('B-10 keepFor keeps the key from every holder for that time, and then it is free', async () => {
    await using a = await openAt({ url: urlOf() });
    await using b = await openAt({ url: urlOf() });
    const lease = await take(a, 'kept', { ttl: '20s' });
    const sentMs = performance.now();
    expect(await lease.release({ keepFor: '1.5s' })).toEqual({ released: true });
    expect(await b.acquire('kept')).toMatchObject({ ok: false, holder: `${lease.holder} (kept)` });
    const next = await take(b, 'kept', { wait: '10s' });
    expect(performance.now() - sentMs).toBeGreaterThanOrEqual(1_490);
    expect(next.fence).toBeGreaterThan(lease.fence);
  });

  it('B-10 keepFor may be longer than the TTL of the lease', async () => {
    await using a = await openAt({ url: urlOf() });
    const lease = await take(a, 'kept-longer', { ttl: '1s' });
    await lease.release({ keepFor: '20s' });
    const kept = await a.inspect('kept-longer');
    expect(kept.kind === 'held' && kept.expiresInMs).toBeGreaterThan(15_000);
  });

  it('B-09 a job runs once in a period, and again in the next', async () => {
    await using a = await openAt({ url: urlOf() });
    await using b = await openAt({ url: urlOf() });
    const options: OnceOptions = { per: '1.2s', tolerance: '500ms' };
    expect(await a.once('job', options, () => 1)).toMatchObject({ ok: true, value: 1 });
    const again = await b.once('job', options, () => 2);
    expect(again).toMatchObject({ ok: false, reason: 'done' });
    const later = await until(
      async () => {
        const result = await b.once('job', options, () => 3);
        return result.ok ? result : null;
      },
      { what: `the next period on ${name}` },
    );
    if (!again.ok && again.reason === 'done')
      expect(later.startedAt.getTime()).toBeGreaterThanOrEqual(again.nextAt.getTime());
  });
});

/** As cron on hosts with clocks ± 30 s, and a tolerance of two minutes, a hundred times faster. */
const PER_MS = 3_000;
const CRON: OnceOptions = { per: PER_MS, tolerance: 1_200 };
const FIRES = 5;

describe('three processes, each with a clock of its own', () => {
  it('B-09 one run per fire, on Redis', async () => {
    const url = redis.url;
    const hosts = [300, 0, -300].map((offsetMs) =>
      spawnChild('once-host.mjs', { args: [url, String(offsetMs)] }),
    );
    for (const host of hosts) await host.next('ready');
    const firstMs = Date.now() + 1_000;
    const fires = Array.from({ length: FIRES }, (_, n) => firstMs + n * PER_MS);
    for (const host of hosts)
      host.send({ do: 'cron', key: 'cron', fires, options: CRON, jobMs: 50 });
    for (const host of hosts) await host.next('cron', 25_000);
    const said = hosts.flatMap(({ received }) => received);
    const began = said.filter(({ event }) => event === 'began').map(({ fire }) => fire);
    expect(began.sort()).toEqual(fires.map((_, n) => n));
    expect(said.filter(({ event }) => event === 'answered')).toHaveLength(3 * FIRES);
    await Promise.all(hosts.map((host) => host.kill()));
  });

  it('B-09 a process that is killed in the middle: skip leaves the period at that, retry starts over elsewhere', async () => {
    for (const onCrash of ['skip', 'retry'] as const) {
      const hosts = [0, 0].map(() => spawnChild('once-host.mjs', { args: [redis.url, '0'] }));
      const [first, second] = hosts as [(typeof hosts)[0], (typeof hosts)[0]];
      for (const host of hosts) await host.next('ready');
      const options: OnceOptions = { per: '1h', onCrash, ttl: TTL_MS, wait: '15s' };
      const job = { do: 'once', key: `killed-${onCrash}`, options };
      first.send({ ...job, jobMs: 60_000 });
      await first.next('began');
      second.send({ ...job, jobMs: 50 });
      await first.kill();
      const answer = await second.next('once', 15_000);
      if (onCrash === 'retry') expect(answer).toMatchObject({ ok: true });
      else expect(answer).toMatchObject({ ok: false, reason: 'done' });
      await second.kill();
    }
  });
});

/** Each starts several processes: on a machine with much to do, that takes a while. */
const SLOW = { timeout: 90_000 };

describe.concurrent('holdfast run --once-per', SLOW, () => {
  const once = (key: string, ...more: string[]) => [
    'run',
    ...SHORT,
    '--once-per',
    '1h',
    ...more,
    key,
  ];

  it('B-09 the first run has its own exit code; a later one exits with 0 and says who ran it and when', async () => {
    const first = await cli([...once('code'), '--', 'sh', '-c', 'exit 3'], { at: redis });
    expect(first).toMatchObject({ code: 3, stderr: '' });
    const second = await cli([...once('code'), '--', 'echo', 'again'], { at: redis });
    expect(second).toMatchObject({ code: 0, stdout: '' });
    expect(second.stderr).toMatch(
      /^holdfast: 'code' is not run here: \S+ ran it at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC for .+\. The next run may begin at .+ UTC\.\n$/,
    );
    const quiet = await cli([...once('code', '--quiet'), '--', 'echo', 'again'], { at: redis });
    expect(quiet).toMatchObject({ code: 0, stdout: '', stderr: '' });
    const json = await cli(['--json', ...once('code'), '--', 'echo', 'again'], { at: redis });
    expect(JSON.parse(json.stderr).skipped).toMatchObject({ code: 'PERIOD_DONE', key: 'code' });
  });

  it('B-09 while it runs elsewhere, another exits with 0, or as --held-exit-code says', async () => {
    const ticker = new Ticker('once-running');
    await using run = startCli([...once('running'), '--', ...ticker.command], { at: redis });
    await ticker.runs();
    const other = await cli([...once('running'), '--', 'echo', 'no'], { at: redis });
    expect(other).toMatchObject({ code: 0, stdout: '' });
    expect(other.stderr).toMatch(
      /^holdfast: 'running' is not run here: \S+ runs it since .* UTC\.\n$/,
    );
    const given = once('running', '--held-exit-code', '9');
    expect(await cli([...given, '--', 'echo', 'no'], { at: redis })).toMatchObject({ code: 9 });
    run.signal('SIGTERM');
    await run.end();
  });

  it('B-09 a command that is killed with holdfast run is started over with --on-crash retry, and not with skip', async () => {
    for (const onCrash of ['skip', 'retry']) {
      const key = `crash-${onCrash}`;
      const ticker = new Ticker(key);
      const args = once(key, '--on-crash', onCrash, '--wait', '15s');
      await using run = startCli([...args, '--', ...ticker.command], { at: redis });
      await ticker.runs();
      run.signal('SIGKILL');
      const next = await cli([...args, '--', 'echo', 'started over'], { at: redis });
      expect(next.code).toBe(0);
      expect(next.stdout).toBe(onCrash === 'retry' ? 'started over\n' : '');
      if (onCrash === 'skip') expect(next.stderr).toContain('and did not end; --on-crash retry');
    }
  });

  it('B-09 a command that a signal ended has crashed: retry starts over at once', async () => {
    const args = once('signal', '--on-crash', 'retry');
    const first = await cli([...args, '--', 'sh', '-c', 'kill -KILL $$'], { at: redis });
    expect(first).toMatchObject({ code: 137 });
    const next = await cli([...args, '--', 'echo', 'started over'], { at: redis });
    expect(next).toMatchObject({ code: 0, stdout: 'started over\n' });
  });

  it('B-09 in quarantine nothing runs: exit code 79, said aloud even with --quiet', async () => {
    await using fresh = await startRedis();
    const options = { at: fresh, env: { HOLDFAST_QUARANTINE: 'on' } };
    const result = await cli([...once('q', '--quiet'), '--', 'echo', 'no'], options);
    expect(result).toMatchObject({ code: 79, stdout: '' });
    expect(result.stderr).toContain("the command of 'q' was not run: the store is in quarantine");
  });

  it('B-09 a period shorter than twice the tolerance is refused: exit code 64, and nothing runs', async () => {
    const flags = ['--once-per', '1m', '--tolerance', '30s'];
    const result = await cli(['run', ...flags, 'bad', '--', 'echo', 'no'], { at: redis });
    expect(result).toMatchObject({ code: 64, stdout: '' });
    expect(result.stderr).toMatch(/--once-per is "1m": a period is longer than twice/);
  });

  it('B-10 --hold-at-least keeps the lease taken after a short command, even longer than maxTtl', async () => {
    const hold = (time: string, key: string) =>
      startCli(['run', '--hold-at-least', time, key, '--', 'echo', 'sent'], { at: redis });
    const short = hold('20s', 'hold');
    expect(await short.end()).toMatchObject({ code: 0, stdout: 'sent\n' });
    const held = await cli(['run', 'hold', '--', 'echo', 'no'], { at: redis });
    expect(held).toMatchObject({ code: 75 });
    expect(held.stderr).toContain('(kept)');
    // Longer than the store keeps a key: the process holds the lease meanwhile. A signal ends that.
    await using long = hold('10m', 'hold-long');
    await until(() => long.stdout === 'sent\n', { what: 'the command' });
    await using holdfast = await openAt(redis);
    expect((await holdfast.inspect('hold-long')).kind).toBe('held');
    const keptBy = async () => {
      const lease = await holdfast.inspect('hold-long');
      return lease.kind === 'held' && lease.holder.endsWith('(kept)');
    };
    await until(
      async () => {
        long.signal('SIGTERM');
        return keptBy();
      },
      { what: 'the lease to be kept', every: 100 },
    );
    // Another of these signals, after that, may have ended it at once.
    await long.end();
  });
});
