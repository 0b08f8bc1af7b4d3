/**
 * The process between those who hold leases and the commands that run under them: see `supervision.ts`. Loads next to
 * nothing, because it stays for as long as the commands run, and `holdfast run` starts one every time. Whatever else it
 * was given open it keeps open, and gives to nobody: a lock on a name of its host is free when it is gone, too.
 */
import type { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import { systemClock } from '../../core/clock.ts';
import { CommandOutput } from './command-output.ts';
import { type Gated, spawnGated } from './gate.ts';
import { type About, decoder, encode, type Order, type Start } from './orders.ts';
import { statOf } from './proc.ts';
import { processGroup } from './process-group.ts';
import type { Spawned, SpawnListener } from './supervision.ts';
import { Supervisions } from './supervisions.ts';

/** Where orders come from; its end says that whoever gives them is no more. */
const orders = new Socket({ fd: 3, readable: true, writable: false });
/**
 * Where reports go to. Not back over the first: an order to the dead breaks its pipe, and what was not read is lost.
 * Never waited for: whoever gives orders may stand still, and commands have to be stopped all the same.
 */
const reports = new Socket({ fd: 4, readable: false, writable: true });
/** What our own settings are called in the environment, now and before. */
const OURS = /^(HOLDFAST|XG2G)_/;
/** While more than that is not read, nothing is said of progress. How a command ended is kept for whenever it is. */
const UNHEARD_BYTES = 64 * 1_024;

const supervisions = new Supervisions({
  clock: systemClock,
  spawn: spawnCommand,
  report: (report) => void reports.write(encode(report)),
  leave: () => process.exit(),
});

function spawnCommand(start: Start, on: SpawnListener): Spawned | null {
  const failed = (error: NodeJS.ErrnoException) => on.onError(error.code ?? error.message);
  try {
    const { child, open } = spawnWaiting(start);
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

/** In a session and group of its own; and of our files it gets the first three at most, never the pipes to our orders. */
function spawnWaiting({ command, env, cwd, isInherited }: Start): Gated {
  return spawnGated(command, {
    detached: true,
    stdio: isInherited ? ['inherit', 'inherit', 'inherit'] : ['ignore', 'pipe', 'pipe'],
    env: { ...(isInherited ? process.env : withoutOurs(process.env)), ...env },
    ...(cwd !== undefined && { cwd }),
  });
}

/** Tokens, secrets and the password of the store are in there, and what is run for a session needs none of them. */
function withoutOurs(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !OURS.test(name)));
}

function readOutput({ stdout, stderr }: ChildProcess, on: SpawnListener): Spawned['endOutput'] {
  const output = new CommandOutput({
    clock: systemClock,
    isHeard: () => reports.writableLength < UNHEARD_BYTES,
    onProgress: (text) => on.onProgress(text),
  });
  const streams = [stdout, stderr].filter((stream) => stream !== null);
  for (const stream of streams) stream.on('data', output.reader()).on('error', () => {});
  return () => {
    // Somebody may still have them open; that is no business of ours.
    for (const stream of streams) stream.destroy();
    return output.end();
  };
}

orders.setEncoding('utf8');
orders.on(
  'data',
  decoder<About<Order>>((order) => supervisions.hear(order)),
);
orders.on('error', () => {});
orders.on('close', () => supervisions.orphan());
// Nobody is there to hear them; the commands are stopped all the same.
reports.on('error', () => {});

process.on('SIGTERM', () => supervisions.terminate());
// Meant for the command, which gets them passed on; or for debuggers.
for (const signal of ['SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const) {
  process.on(signal, () => {});
}
