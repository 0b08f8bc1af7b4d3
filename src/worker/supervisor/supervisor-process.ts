/**
 * Starts the supervisor's process. It imports next to nothing, so that `holdfast run` starts the
 * supervisor before it loads its own code: a Node process takes half of such a run to start.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('./supervisor.js', import.meta.url));

/** A supervisor that has the input and outputs of this process, and no owner yet. */
let early: ChildProcess | null = null;

/** Starts the supervisor of this process's first command. It ends with this process if unused. */
export function startEarly(): void {
  early = spawnSupervisor(true);
  early?.unref();
  // Its owner finds out: such a process has no id.
  early?.on('error', () => {});
}

/** The supervisor that `startEarly` started, for its first caller. Null: there is none. */
export function takeEarly(): ChildProcess | null {
  const taken = early;
  early = null;
  return taken?.pid === undefined ? null : taken;
}

/** `lockFd` is a file that the supervisor keeps open. */
export function spawnSupervisor(isInherited: boolean, lockFd?: number): ChildProcess | null {
  const own = isInherited ? 'inherit' : 'ignore';
  try {
    return spawn(process.execPath, [SCRIPT], {
      // In its own session, so that a terminal or a shell does not signal it together with us.
      detached: true,
      stdio: [own, own, 'inherit', 'pipe', 'pipe', ...(lockFd === undefined ? [] : [lockFd])],
    });
  } catch {
    return null;
  }
}
