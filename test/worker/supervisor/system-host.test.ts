import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { statOf } from '../../../src/worker/supervisor/proc.ts';
import { processGroup } from '../../../src/worker/supervisor/process-group.ts';
import { systemHost as host } from '../../../src/worker/supervisor/system-host.ts';
import { atExit } from '../../support/process.ts';
import { until } from '../../support/until.ts';

const SESSION = 's-1';

/**
 * A group whose leader says something when it has done what the script says. It does not outlive
 * this test file.
 */
async function startGroup(script: string, session: string | null = SESSION) {
  const child: ChildProcess = spawn('sh', ['-c', script], {
    ...{ detached: true, stdio: ['ignore', 'pipe', 'ignore'] as const },
    env: { ...process.env, ...(session !== null && { HOLDFAST_SESSION_ID: session }) },
  });
  const group = child.pid ?? 0;
  const startedTicks = statOf(group)?.startedTicks ?? 0;
  const { isAlive, signal } = processGroup(group);
  const end = () => signal('SIGKILL');
  atExit(() => void (isAlive() && end()));
  const [said] = (await once(child.stdout as NonNullable<typeof child.stdout>, 'data')) as [Buffer];
  return { child, group, startedTicks, isAlive, end, said: said.toString().trim() };
}

const STUBBORN = 'trap "" TERM; echo ready; while :; do sleep 0.05; done';
/** The leader ends, and leaves a member behind. */
const LEFT = '(while :; do sleep 0.05; done) & echo ready';

it('I-12 identifies this host since its boot, and this process on it', () => {
  expect(host.id).toMatch(/^[0-9a-f-]{36}\/pid:\[\d+\]\/net:\[\d+\]\/uid:\d+$/);
  expect(host.self).toBe(`${process.pid}-${statOf(process.pid)?.startedTicks}`);
  expect(host.isAlive(host.self)).toBe(true);
});

it('I-12 a stopped process is alive; a dead one is not, nor is a zombie or another process with its id', async () => {
  const untilStopped = 'until grep -q "State:.T" /proc/$PPID/status; do sleep 0.01; done';
  const stopped = await startGroup(`sh -c '${untilStopped}' & echo $!; kill -STOP $$`);
  const dead = Number(stopped.said);
  await until(() => statOf(dead)?.isDead, { what: 'the dead to be dead' });
  expect(host.isAlive(`${dead}-${statOf(dead)?.startedTicks}`)).toBe(false);
  await until(() => host.isAlive(`${stopped.group}-${stopped.startedTicks}`), { what: 'it' });
  expect(host.isAlive(`${stopped.group}-${stopped.startedTicks - 1}`)).toBe(false);
  stopped.end();
  await until(() => !host.isAlive(`${stopped.group}-${stopped.startedTicks}`), { what: 'its end' });
  expect(host.isAlive(`${stopped.group}-${stopped.startedTicks}`)).toBe(false);
});

it('I-12 a lock belongs to one process, and is free when it is closed', async () => {
  const name = `lock ${process.pid}`;
  const lock = await host.lock(name);
  expect(lock?.fd).toBeGreaterThan(2);
  expect(await host.lock(name)).toBeNull();
  const other = await host.lock(`${name} 2`);
  expect(other).not.toBeNull();
  other?.close();
  lock?.close();
  const again = await host.lock(name);
  expect(again).not.toBeNull();
  again?.close();
});

it('I-12 a process that connects to a lock gets no answer, and the lock stays', async () => {
  const name = `called ${process.pid}`;
  const lock = await host.lock(name);
  const number = /\d+/.exec(readlinkSync(`/proc/self/fd/${lock?.fd}`))?.[0];
  const lines = readFileSync('/proc/net/unix', 'utf8').split('\n');
  const address = lines.find((line) => line.includes(` ${number} `))?.split('@')[1];
  expect(address).toHaveLength(107);
  const caller = connect(`\0${address}`);
  caller.resume().on('error', () => {});
  await once(caller, 'close');
  expect(await host.lock(name)).toBeNull();
  lock?.close();
});

it('I-12 a group that is gone counts as ended', async () => {
  const { child, group, startedTicks } = await startGroup('echo ready');
  if (child.exitCode === null) await once(child, 'exit');
  expect(await host.endGroup({ group, startedTicks }, SESSION)).toBe(true);
});

it('I-12 a group with the recorded leader is killed', async () => {
  const { child, group, startedTicks } = await startGroup(STUBBORN, null);
  const exit = once(child, 'exit');
  expect(await host.endGroup({ group, startedTicks }, SESSION)).toBe(true);
  expect(await exit).toEqual([null, 'SIGKILL']);
});

it('I-12 what a leader left behind is killed if its environment names the session', async () => {
  const left = await startGroup(LEFT);
  if (left.child.exitCode === null) await once(left.child, 'exit');
  expect(left.isAlive()).toBe(true);
  const { group, startedTicks } = left;
  expect(await host.endGroup({ group, startedTicks }, 'another session')).toBe(false);
  expect(left.isAlive()).toBe(true);
  expect(await host.endGroup({ group, startedTicks }, SESSION)).toBe(true);
  expect(left.isAlive()).toBe(false);
});

it('I-12 a group is left alone if its environment does not name the session', async () => {
  const left = await startGroup(LEFT, null);
  if (left.child.exitCode === null) await once(left.child, 'exit');
  const { group, startedTicks } = left;
  expect(await host.endGroup({ group, startedTicks }, SESSION)).toBe(false);
  expect(left.isAlive()).toBe(true);
  left.end();
});

it('I-12 a later group of the same number is left alone: the recorded one is gone', async () => {
  const later = await startGroup(STUBBORN);
  const { group, startedTicks } = later;
  expect(await host.endGroup({ group, startedTicks: startedTicks - 1 }, SESSION)).toBe(true);
  expect(later.isAlive()).toBe(true);
  expect(await host.endGroup({ group, startedTicks: null }, 'another session')).toBe(false);
  expect(later.isAlive()).toBe(true);
  expect(await host.endGroup({ group, startedTicks: null }, SESSION)).toBe(true);
  expect(later.isAlive()).toBe(false);
});
