/**
 * Starts a command in two steps, so that it never runs unknown. First there is a process, with the id, group and environment that the command will
 * have: a shell that waits at a gate, which is a pipe from the supervisor. Then, when whoever ordered the command has its group on record, the
 * supervisor opens the gate, and the shell becomes the command. If the supervisor dies before that, the pipe ends, and so does the shell: the command
 * has never begun. If the supervisor stands still, the gate stays shut.
 *
 * A shell passes on the variables of its environment except those whose names it cannot have itself, `my.setting` for example. These go through `env`.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import type { Socket } from 'node:net';
import { resolve } from 'node:path';

const SHELL = '/bin/sh';
/** Waits for a line, under a name that is in no environment of ours, and ends without one. The gate is closed for the command. */
const WAIT = 'IFS= read -r holdfast_gate <&3 && exec "$@" 3<&-';
/** What a shell can have as a name. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Instead of the code of a system's error: it is not the command that was not found. */
const NO_SHELL = `there is no ${SHELL}`;
/** Where programs are looked for if there is no PATH. */
const DEFAULT_PATH = '/usr/local/bin:/bin:/usr/bin';

export interface GatedOptions extends Pick<SpawnOptions, 'detached' | 'cwd'> {
  readonly env: NodeJS.ProcessEnv;
  /** Of the command: its input and its two outputs. */
  readonly stdio: readonly ['inherit' | 'ignore', 'inherit' | 'pipe', 'inherit' | 'pipe'];
}

export interface Gated {
  readonly child: ChildProcess;
  /** The command begins. */
  open(): void;
}

/** Throws what the system says where there is no such program, as starting it would. */
export function spawnGated(command: readonly string[], options: GatedOptions): Gated {
  const [file = ''] = command;
  const { env, cwd } = options;
  if (!isExecutable(SHELL)) throw Object.assign(new Error(NO_SHELL), { code: NO_SHELL });
  checkProgram(file, env.PATH ?? DEFAULT_PATH, String(cwd ?? process.cwd()));
  const odd = Object.entries(env).flatMap(([name, value]) =>
    NAME.test(name) || value === undefined ? [] : [`${name}=${value}`],
  );
  const words = odd.length > 0 ? ['env', ...odd, ...command] : command;
  const child = spawn(SHELL, ['-c', WAIT, 'holdfast', ...words], {
    ...options,
    stdio: [...options.stdio, 'pipe'],
  });
  const gate = (child.stdio as unknown[])[3] as Socket | null | undefined;
  // Where the shell has gone nobody waits at the gate, which is fine.
  gate?.on('error', () => {}).resume();
  return { child, open: () => void gate?.end('\n') };
}

/** The shell would say it in its own words, on the command's output. */
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
