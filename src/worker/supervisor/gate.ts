/**
 * Starts a command in two steps, so that it never runs unknown to its owner. First there is a
 * process with the id, group and environment of the command: a shell that waits at a gate, which is
 * a pipe from the supervisor. When the owner has the group on record, the supervisor opens the
 * gate, and the shell becomes the command. If the supervisor dies before that, the pipe ends, and
 * so does the shell: the command never begins. If the supervisor is suspended, the gate stays shut.
 *
 * A command with params reads them from the same pipe, behind the line that opens the gate: the
 * shell reads no further than the end of that line.
 *
 * A shell does not pass on variables whose names are no shell names, for example `my.setting`.
 * These go through `env`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import type { Socket } from 'node:net';
import { resolve } from 'node:path';

const SHELL = '/bin/sh';
/** Waits for a line and exits without one. Its variable is in no environment. */
const WAIT = 'IFS= read -r holdfast_gate <&3 && exec "$@"';
/** The same, for a command without params: it does not inherit the gate. */
const WAIT_AND_CLOSE = `${WAIT} 3<&-`;
/** The names that a shell can have. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Reported instead of ENOENT, because it is not the command that is missing. */
const NO_SHELL = `there is no ${SHELL}`;
/** Used if the environment has no PATH. */
const DEFAULT_PATH = '/usr/local/bin:/bin:/usr/bin';

export interface GatedOptions {
  readonly detached: boolean;
  readonly cwd: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** The text that the command reads from file descriptor 3. */
  readonly params: string | undefined;
  /** The input and the two outputs of the command. */
  readonly stdio: readonly ['inherit' | 'ignore', 'inherit' | 'pipe', 'inherit' | 'pipe'];
}

export interface Gated {
  readonly child: ChildProcess;
  /** Lets the command begin. */
  open(): void;
}

/** Throws the system's error if there is no such program, as spawning it would. */
export function spawnGated(command: readonly string[], options: GatedOptions): Gated {
  const [file = ''] = command;
  const { env, cwd, params, detached } = options;
  if (!isExecutable(SHELL)) throw Object.assign(new Error(NO_SHELL), { code: NO_SHELL });
  checkProgram(file, env.PATH ?? DEFAULT_PATH, cwd ?? process.cwd());
  const odd = Object.entries(env).flatMap(([name, value]) =>
    NAME.test(name) || value === undefined ? [] : [`${name}=${value}`],
  );
  const words = odd.length > 0 ? ['env', ...odd, ...command] : command;
  const wait = params === undefined ? WAIT_AND_CLOSE : WAIT;
  const child = spawn(SHELL, ['-c', wait, 'holdfast', ...words], {
    env,
    cwd,
    detached,
    stdio: [...options.stdio, 'pipe'],
  });
  const gate = (child.stdio as unknown[])[3] as Socket | null | undefined;
  // If the shell is gone, writing to the gate fails, which is fine.
  gate?.on('error', () => {}).resume();
  return { child, open: () => void gate?.end(`\n${params ?? ''}`) };
}

/** Checked here, because the shell would report it on the command's output. */
function checkProgram(file: string, path: string, cwd: string): void {
  if (file.includes('/')) {
    checkExecutable(resolve(cwd, file));
    return;
  }
  let error: unknown = Object.assign(new Error(`${file} was not found`), { code: 'ENOENT' });
  for (const folder of file === '' ? [] : path.split(':')) {
    try {
      checkExecutable(resolve(cwd, folder, file));
      return;
    } catch (found) {
      if ((found as NodeJS.ErrnoException).code === 'EACCES') error = found;
    }
  }
  throw error;
}

function isExecutable(path: string): boolean {
  try {
    checkExecutable(path);
    return true;
  } catch {
    return false;
  }
}

function checkExecutable(path: string): void {
  accessSync(path, constants.X_OK);
  if (statSync(path).isDirectory())
    throw Object.assign(new Error(`${path} is a directory`), { code: 'EACCES' });
}
