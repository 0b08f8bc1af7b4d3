import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lastingPort } from '../support/lasting-port.ts';
import { freePort, startRedis } from '../support/redis-server.ts';
import { install, pathOf, thisMachine } from '../support/require-redis.ts';
import { until } from '../support/until.ts';
import { BIN, cli, privateFolder, type Running, startCli } from './support/cli.ts';
import { configOf, instructionsOf } from './support/dockerfile.ts';
import { ALL, type Manifest, manifest, Pod, readDeploy } from './support/manifests.ts';

/** On a machine that does something else, too, a process takes its time to start. */
const DEADLINE_MS = 60_000;
const SLOW = { timeout: 3 * DEADLINE_MS };
/** For how long the name of a worker is good that can not be shown to be dead. */
const NAME_MS = 30_000;
/** It refuses connections: polls fail, and their targets have owners. */
const URL_OF_NOTHING = 'http://127.0.0.1:1/';
const tokens = () =>
  JSON.stringify([{ id: 'web', token: randomBytes(16).toString('hex'), scope: 'v3:write' }]);
const seconds = (text: string | undefined) => Number(text?.match(/^(\d+)s$/)?.[1]);
const flagOf = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1];

/** Its exit code, and how long it took to stop. */
async function stop(running: Running): Promise<{ code: number | null; tookMs: number }> {
  const startMs = performance.now();
  running.signal('SIGTERM');
  const { code } = await running.end('', DEADLINE_MS);
  return { code, tookMs: performance.now() - startMs };
}

async function isSo(what: string, look: () => Promise<boolean>): Promise<void> {
  await until(look, { what, deadlineMs: DEADLINE_MS, every: 50 });
}

describe.concurrent('the manifests for Kubernetes (examples/deploy/kubernetes)', () => {
  it.each(['Deployment/holdfast-api', 'StatefulSet/holdfast-worker'])(
    '%s is whole, and what belongs to it finds it',
    (path) => {
      const [kind = '', name = ''] = path.split('/');
      const { spec, apiVersion } = manifest(kind, name);
      const { labels } = spec.template.metadata;
      const pod = spec.template.spec;
      const [container] = pod.containers;
      expect(apiVersion).toBe('apps/v1');
      expect(spec.replicas).toBeGreaterThan(1);
      expect(spec.selector.matchLabels).toEqual(labels);
      const service = manifest('Service', name);
      expect(service.spec.selector).toEqual(labels);
      const portNames = container.ports.map((port) => port.name);
      expect(portNames).toContain(service.spec.ports?.[0]?.targetPort);
      const budget = manifest('PodDisruptionBudget', name);
      expect(budget.spec.selector.matchLabels).toEqual(labels);
      expect(budget.spec.maxUnavailable).toBeLessThan(spec.replicas ?? 0);
      for (const probe of [
        container.startupProbe,
        container.livenessProbe,
        container.readinessProbe,
      ])
        expect(portNames).toContain(probe.httpGet.port);
      for (const { name: mounted } of container.volumeMounts)
        expect(pod.volumes.map((volume) => volume.name)).toContain(mounted);
      expect(flagOf(container.args, '--port')).toBe(String(container.ports[0]?.containerPort));
    },
  );

  it('leave time to stop: what comes before SIGTERM and what --stop-within allows is less than what Kubernetes does', () => {
    const workloads = ALL.filter(({ kind }) => ['Deployment', 'StatefulSet'].includes(kind));
    expect(workloads).toHaveLength(2);
    for (const { spec } of workloads) {
      const pod = spec.template.spec;
      const [{ args, lifecycle }] = pod.containers;
      const script = lifecycle?.preStop.exec.command.at(-1) ?? '';
      const waits = [...script.matchAll(/\b(?:timeout|sleep) (\d+)/g)];
      const before = waits.reduce((sum, [, atMost]) => sum + Number(atMost), 0);
      const within = seconds(flagOf(args, '--stop-within'));
      expect(within).toBeGreaterThanOrEqual(10);
      expect(before + within).toBeLessThan(pod.terminationGracePeriodSeconds);
    }
  });

  it(
    'hand over what a pod polls before it is told to stop, while it still answers',
    SLOW,
    async () => {
      await using redis = await startRedis();
      const workload = manifest('Deployment', 'holdfast-api');
      const [first, second] = [0, 1].map((number) => podOn(workload, redis.url, number));
      if (first === undefined || second === undefined) throw new Error('there are no pods');
      await using ana = await first.start();
      await using ben = await second.start();
      for (const pod of [first, second])
        await isSo('to be ready', () => pod.passes(pod.container.readinessProbe));
      const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
      const at = { at: redis };
      for (const id of ids)
        expect(await cli(['targets', 'add', '--id', id, URL_OF_NOTHING], at)).toMatchObject({
          code: 0,
        });
      const owned = async (name: string) => {
        const { stdout } = await cli(['map', '--json'], at);
        return JSON.parse(stdout).targets.filter(({ owner }: { owner: string | null }) =>
          owner?.startsWith(name),
        ).length;
      };
      await isSo(
        'both to own some',
        async () => (await owned('holdfast-api-0')) > 0 && (await owned('holdfast-api-1')) > 0,
      );
      await using hook = first.preStop();
      expect(await hook.end('', DEADLINE_MS)).toMatchObject({ code: 0 });
      expect(await first.passes(first.container.livenessProbe)).toBe(true);
      expect(await owned('holdfast-api-1')).toBe(ids.length);
      expect(await stop(ana)).toMatchObject({ code: 0 });
      expect(await stop(ben)).toMatchObject({ code: 0 });
    },
  );

  it('give each worker a name of its own, in one PID namespace for the life of its pod', () => {
    const { spec } = manifest('StatefulSet', 'holdfast-worker');
    const pod = spec.template.spec;
    expect(spec.serviceName).toBe('holdfast-worker');
    expect(manifest('Service', 'holdfast-worker').spec.clusterIP).toBe('None');
    expect(pod.shareProcessNamespace).toBe(true);
    const name = pod.containers[0].env.find((each) => each.name === 'HOLDFAST_WORKER_NAME');
    expect(name?.valueFrom?.fieldRef?.fieldPath).toBe('metadata.name');
  });

  it('refuse to run with a token that nobody has replaced', SLOW, async () => {
    const pod = new Pod(manifest('Deployment', 'holdfast-api'), {});
    await using running = await pod.start();
    const { code, stderr } = await running.end('', DEADLINE_MS);
    expect({ code, stderr }).toEqual({
      code: 78,
      stderr: expect.stringContaining('must be 16 to'),
    });
    expect(stderr).not.toContain('REPLACE-ME');
  });

  it(
    'have probes that mean what they say while the store is not there yet, hangs, is gone, and when it stops',
    SLOW,
    async () => {
      await using redis = await startRedis({ port: await lastingPort() });
      const pod = podOn(manifest('Deployment', 'holdfast-api'), redis.url);
      const { startupProbe, livenessProbe, readinessProbe } = pod.container;
      const isReady = () => pod.passes(readinessProbe);
      const expectAway = async (reason: string) => {
        await isSo(`to be not ready: ${reason}`, async () => {
          const answer = await pod.ask(readinessProbe);
          return answer?.status === 503 && answer.text.includes(reason);
        });
        expect(await pod.passes(livenessProbe)).toBe(true);
      };

      await redis.kill();
      await using running = await pod.start();
      await isSo('to be started', () => pod.passes(startupProbe));
      await expectAway('it has not connected to the store yet');
      await redis.restart();
      await isSo('to be ready', isReady);
      await redis.freeze();
      await expectAway('the store');
      await redis.thaw();
      await isSo('to be ready again', isReady);
      await redis.kill();
      await expectAway('the store is unreachable');
      await redis.restart();
      await isSo('to be ready once more', isReady);

      const { terminationGracePeriodSeconds } = pod.spec;
      const stopping = stop(running);
      await isSo('to be no longer ready', async () => !(await isReady()));
      const { code, tookMs } = await stopping;
      expect(code, running.stdout).toBe(0);
      expect(tookMs).toBeLessThan(terminationGracePeriodSeconds * 1_000);
    },
  );

  it(
    'have workers that are ready and at work, at work again at once after they were killed, and that stop',
    SLOW,
    async () => {
      await using redis = await startRedis();
      const pod = podOn(manifest('StatefulSet', 'holdfast-worker'), redis.url);
      await using killed = await pod.start();
      await isSo('to be ready', () => pod.passes(pod.container.readinessProbe));
      await isSo('to be at work', async () => killed.stdout.includes('is up: runs live with sh'));
      killed.signal('SIGKILL');
      await killed.end();
      await using running = await pod.start();
      await isSo('to be at work again', async () => running.stdout.includes('is up: runs live'));
      const waitedMs = saidAtMs(running, 'is up') - saidAtMs(running, 'listens on');
      expect(waitedMs, running.stdout).toBeLessThan(NAME_MS - 5_000);
      expect(await stop(running)).toMatchObject({ code: 0 });
    },
  );
});

/** When the log of a process had a line of these words, by its own clock. */
function saidAtMs({ stdout }: Running, words: string): number {
  const lines = stdout.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
  const said = lines.map((line) => JSON.parse(line) as { time: string; msg: string });
  return Date.parse(said.find(({ msg }) => msg.startsWith(words))?.time ?? '');
}

function podOn(workload: Manifest, store: string, number = 0): Pod {
  return new Pod(workload, { store, 'tokens.json': tokens() }, number);
}

/** What a unit says under a name, in order. */
function keysOf(text: string): (name: string) => string[] {
  const pairs = text.split('\n').flatMap((line) => {
    const [, name = '', value = ''] = line.match(/^([A-Za-z]+)=(.*)$/) ?? [];
    return name === '' ? [] : [{ name, value }];
  });
  return (wanted) => pairs.filter(({ name }) => name === wanted).map(({ value }) => value);
}

describe.concurrent('the unit for systemd (examples/deploy/holdfast.service)', () => {
  const text = readDeploy('holdfast.service');
  const keys = keysOf(text);
  const start = (keys('ExecStart')[0] ?? '').split(' ');

  it('tells Holdfast alone to stop, and leaves it the time that it takes', () => {
    expect(keys('Type')).toEqual(['exec']);
    expect(keys('KillMode')).toEqual(['mixed']);
    const within = seconds(flagOf(start, '--stop-within'));
    expect(within).toBeGreaterThanOrEqual(10);
    expect(within).toBeLessThan(seconds(keys('TimeoutStopSec')[0]));
    expect(keys('Restart')).toEqual(['on-failure']);
    expect(keys('RestartPreventExitStatus')).toEqual(['64 69 78']);
    for (const switched of ['NoNewPrivileges', 'ProtectHome', 'PrivateTmp', 'RestrictSUIDSGID'])
      expect(keys(switched)).toEqual(['yes']);
    // Without them Node does not start, or a worker could not prove that one of its name is dead.
    for (const harmful of ['MemoryDenyWriteExecute', 'ProcSubset', 'PrivatePIDs', 'PrivateNetwork'])
      expect(keys(harmful)).toEqual([]);
  });

  it('is right by what systemd says of it', SLOW, () => {
    expect(verified(text)).toEqual({ status: 0, stderr: '' });
  });

  it('would not be right with a setting that systemd does not know', SLOW, () => {
    const { stderr } = verified(text.replace('KillMode=mixed', 'KillMode=gently'));
    expect(stderr).toContain('Failed to parse kill mode specification, ignoring: gently');
  });

  it('starts what is ready, and ends with 0 when it is told to stop', SLOW, async () => {
    await using redis = await startRedis();
    const root = privateFolder();
    mkdirSync(join(root, 'credentials'));
    writeFileSync(join(root, 'credentials/tokens.json'), tokens(), { mode: 0o400 });
    const specifiers = { '%d': join(root, 'credentials'), '%H': hostname(), '%S': root };
    const settings = readDeploy('holdfast.env')
      .replace(/=redis:.*/, `=${redis.url}`)
      .split('\n');
    const variables = [...keys('Environment'), ...settings].flatMap((line) => {
      const [, name = '', value = ''] = line.match(/^([A-Z_]+)=(.*)$/) ?? [];
      return name === '' ? [] : [[name, expand(value, specifiers)] as const];
    });
    const port = String(await freePort());
    const args = start.slice(1).map((word) => (word === '4747' ? port : word));
    const env = { ...Object.fromEntries(variables), HOLDFAST_QUARANTINE: 'off' };
    expect(env).toMatchObject({ HOLDFAST_STORE: redis.url, HOLDFAST_WORKER_NAME: hostname() });
    await using running = startCli(args, { cwd: root, env });
    await isSo('to be ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok);
    const { code, tookMs } = await stop(running);
    expect(code, running.stderr).toBe(0);
    expect(tookMs).toBeLessThan(seconds(keys('TimeoutStopSec')[0]) * 1_000);
  });
});

/** What `systemd-analyze verify` says of a unit. */
function verified(text: string): { status: number | null; stderr: string } {
  if (pathOf('systemd-analyze', process.env.PATH) === undefined) install(thisMachine, ['systemd']);
  const folder = privateFolder();
  symlinkSync(BIN, join(folder, 'holdfast'));
  const unit = join(folder, 'holdfast.service');
  // It looks for the program, which is not installed here.
  writeFileSync(unit, text.replace('/usr/local/bin/', `${folder}/`));
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
  return { status, stderr };
}

function expand(text: string, specifiers: Readonly<Record<string, string>>): string {
  return Object.entries(specifiers).reduce((all, [from, to]) => all.replaceAll(from, to), text);
}

describe('the image (examples/deploy/Dockerfile)', () => {
  it('runs as the user that the manifests name, and hears signals itself', () => {
    const text = readDeploy('Dockerfile');
    const { user, entrypoint, cmd } = configOf(instructionsOf(text));
    // Node's own images have this user as 1000.
    expect(text).toMatch(/^FROM node:/m);
    expect(user).toBe('node');
    for (const name of ['holdfast-api', 'holdfast-worker'])
      expect(podSpecOf(name).securityContext).toMatchObject({ runAsUser: 1_000, fsGroup: 1_000 });
    const { command, image } = podSpecOf('holdfast-api').containers[0];
    expect(entrypoint).toEqual(command);
    expect(text.split('\n')[0]).toContain(`--tag ${image} `);
    expect(cmd).toEqual(['up', '--host', '0.0.0.0', '--port', '4747']);
  });
});

function podSpecOf(name: string) {
  const kind = name === 'holdfast-api' ? 'Deployment' : 'StatefulSet';
  return manifest(kind, name).spec.template.spec;
}
