/**
 * The program of the supervisor process, which is between a process that holds leases and the
 * commands under them: see `group-run.ts`. It loads next to nothing, because it lives as long as
 * the commands, and `holdfast run` starts one every time. It keeps every other file that it
 * inherits open, and passes none on: so a lock on a name of the host is not free before this
 * process is gone.
 */
import type { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import { systemClock } from '../../core/clock.ts';
import { CommandOutput } from './command-output.ts';
import { type Gated, spawnGated } from './gate.ts';
import type { Spawned, SpawnListener } from './group-run.ts';
import { GroupRunSet } from './group-run-set.ts';
import { type About, decoder, encode, type Order, type Start } from './orders.ts';
import { statOf } from './proc.ts';
import { processGroup } from './process-group.ts';

/** The pipe for orders. Its end means that the owner is gone. */
const orders = new Socket({ fd: 3, readable: true, writable: false });
/**
 * The pipe for reports. There are two pipes because an order to a dead supervisor breaks the pipe,
 * and reports in it that were not read would be lost. Reports are never waited for: a suspended
 * owner must not keep its commands from being stopped.
 */
const reports = new Socket({ fd: 4, readable: false, writable: true });
/** Our own settings in the environment, under the present and the former name. */
const OWN_VARIABLES = /^(HOLDFAST|XG2G)_/;
/** While more bytes than this are unread, progress is not reported. The end of a command is. */
const MAX_UNREAD_BYTES = 64 * 1_024;

const runs = new GroupRunSet(
  systemClock,
  spawnCommand,
  (report) => void reports.write(encode(report)),
  () => process.exit(),
);

function spawnCommand(start: Start, on: SpawnListener): Spawned | null {
  const failed = (error: NodeJS.ErrnoException) => on.onError(error.code ?? error.message);
  try {
    const { child, open } = spawnAtGate(start);
    child.once('error', failed);
    child.once('exit', (code, signal) => on.onExit({ code, signal }));
    child.once('close', () => on.onRead());
    if (child.pid === undefined) return null;
    const { pid } = child;
    const startedTicks = statOf(pid)?.startedTicks ?? null;
    const endOutput = readOutput(child, on);
    return { group: pid, startedTicks, processes: processGroup(pid), endOutput, begin: open };
  } catch (error) {
    failed(error as NodeJS.ErrnoException);
    return null;
  }
}

/** In its own session and group. It inherits at most the first three files, never our two pipes. */
function spawnAtGate({ command, env, cwd, params, isInherited }: Start): Gated {
  return spawnGated(command, {
    params,
    detached: true,
    stdio: isInherited ? ['inherit', 'inherit', 'inherit'] : ['ignore', 'pipe', 'pipe'],
    env: { ...(isInherited ? process.env : withoutOwn(process.env)), ...env },
    cwd,
  });
}

/** Our variables may have tokens, secrets and the store's password. Pipelines need none of them. */
function withoutOwn(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !OWN_VARIABLES.test(name)));
}

function readOutput({ stdout, stderr }: ChildProcess, on: SpawnListener): Spawned['endOutput'] {
  const output = new CommandOutput(systemClock, {
    isReady: () => reports.writableLength < MAX_UNREAD_BYTES,
    onProgress: (text) => on.onProgress(text),
  });
  const streams = [stdout, stderr].filter((stream) => stream !== null);
  for (const stream of streams) stream.on('data', output.reader()).on('error', () => {});
  return () => {
    // A process outside the group may still have them open, and is not waited for.
    for (const stream of streams) stream.destroy();
    return output.end();
  };
}

orders.setEncoding('utf8');
orders.on(
  'data',
  decoder<About<Order>>((order) => runs.receive(order)),
);
orders.on('error', () => {});
orders.on('close', () => runs.orphan());
// The owner is gone. The commands are stopped all the same.
reports.on('error', () => {});

process.on('SIGTERM', () => runs.terminate());
// Meant for the command, to which its owner passes them on; or for debuggers.
for (const signal of ['SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const) {
  process.on(signal, () => {});
}
