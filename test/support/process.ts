import { type ChildProcess, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { until } from './until.ts';

const actions = new Set<() => void>();
let isWatching = false;

/**
 * Runs the action when this process ends, also when a runner ends it by signal; the last one given
 * runs first. The function returned takes it back.
 */
export function atExit(action: () => void): () => void {
  actions.add(action);
  if (!isWatching) {
    isWatching = true;
    process.once('exit', runActions);
    // A signal without a listener ends a process without 'exit', and so vitest stops its workers.
    // process.exit would not do: vitest makes it throw while a test runs.
    for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        runActions();
        process.kill(process.pid, signal);
      });
    }
    // The runner has died without a word.
    process.once('disconnect', () => {
      runActions();
      process.kill(process.pid, 'SIGKILL');
    });
  }
  return () => actions.delete(action);
}

function runActions(): void {
  for (const action of [...actions].reverse()) action();
}

/** Sees to it that the process does not outlive this one. */
export function killAtExit(child: ChildProcess): void {
  const forget = atExit(() => child.kill('SIGKILL'));
  child.once('exit', forget);
}

/** SIGSTOP; returns when the process does stand still. */
export async function freezeProcess(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  await until(() => isStopped(pid), { what: `process ${pid} to stand still`, every: 1 });
}

/** SIGCONT; returns when the process may run again. */
export async function thawProcess(pid: number): Promise<void> {
  process.kill(pid, 'SIGCONT');
  await until(() => !isStopped(pid), { what: `process ${pid} to go on`, every: 1 });
}

/** Whether it has ended. One that its parent has not asked about yet counts as ended. */
export function isGone(pid: number): boolean {
  try {
    return stateOf(pid).startsWith('Z');
  } catch {
    return true;
  }
}

/** Whether it stands still now. */
export function isStopped(pid: number): boolean {
  return stateOf(pid).startsWith('T');
}

function stateOf(pid: number): string {
  if (process.platform !== 'linux') {
    return execFileSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' });
  }
  // "pid (name) state …", and the name may have spaces and brackets of its own.
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2);
}
