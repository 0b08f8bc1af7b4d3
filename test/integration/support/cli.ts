import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExitStatus } from '../../support/child.ts';
import { atExit, killAtExit } from '../../support/process.ts';
import { until, within } from '../../support/until.ts';

const path = (from: string) => fileURLToPath(new URL(from, import.meta.url));
export const BIN = path('../../../dist/lib/cli/bin.js');
const TICKER = path('../../children/ticker.mjs');
const END_DEADLINE_MS = 20_000;

export interface Result extends ExitStatus {
  stdout: string;
  stderr: string;
}

/** A private folder for one test file: working directory of its commands, and for what these write. */
export function privateFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-cli-'));
  atExit(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

const folder = privateFolder();

/** The environment of the one who runs the tests, without what would change what `holdfast` does. */
function cleanEnv(): Record<string, string | undefined> {
  const names = Object.keys(process.env).filter(
    (name) => !/^(HOLDFAST_|NO_COLOR|FORCE_)/.test(name),
  );
  return Object.fromEntries(names.map((name) => [name, process.env[name]]));
}

export interface CliOptions {
  /** The store, without quarantine. */
  at?: { url: string };
  env?: Record<string, string>;
  cwd?: string;
}

/** Starts `holdfast` with these arguments. */
export function startCli(args: readonly string[], options: CliOptions = {}): Running {
  return startProgram(process.execPath, [BIN, ...args], options);
}

/** Runs `holdfast` to its end. */
export function cli(args: readonly string[], options: CliOptions = {}): Promise<Result> {
  return startCli(args, options).end();
}

/** Starts a line of shell in which `holdfast` is the command. */
export function startShell(shell: string, line: string, options: CliOptions = {}): Running {
  const script = `holdfast() { "${process.execPath}" "${BIN}" "$@"; }\n${line}`;
  return startProgram(shell, ['-c', script], options);
}

export function startProgram(
  file: string,
  args: readonly string[],
  { at, env = {}, cwd = folder }: CliOptions,
): Running {
  const store = at && { HOLDFAST_STORE: at.url, HOLDFAST_QUARANTINE: 'off' };
  return new Running(
    spawn(file, args, { cwd, env: { ...cleanEnv(), ...store, ...env }, stdio: 'pipe' }),
  );
}

/** A process whose output is kept. */
export class Running {
  stdout = '';
  stderr = '';
  readonly #child: ChildProcess;
  readonly #ended: Promise<Result>;

  constructor(child: ChildProcess) {
    this.#child = child;
    killAtExit(child);
    child.stdout?.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString();
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    // It may end without having read what it was given.
    child.stdin?.on('error', () => {});
    this.#ended = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Writes to its stdin, and leaves it open. */
  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** From now on nobody reads what it says. */
  pause(): void {
    this.#child.stdout?.pause();
  }

  /** Waits until it has ended, read to the end or not. */
  async exited(): Promise<ExitStatus> {
    if (this.#child.exitCode === null && this.#child.signalCode === null)
      await within(END_DEADLINE_MS, once(this.#child, 'exit'));
    const status = { code: this.#child.exitCode, signal: this.#child.signalCode };
    this.#child.stdout?.resume();
    return status;
  }

  /** Closes its stdin, unless it is given something to read first, and waits until it and its output have ended. */
  async end(input = '', deadlineMs = END_DEADLINE_MS): Promise<Result> {
    this.#child.stdin?.end(input);
    return within(deadlineMs, this.#ended).catch(() => {
      throw new Error(`did not end within ${deadlineMs} ms: ${this.stdout}${this.stderr}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.end();
  }
}

/** A command that writes down until when it lived: see test/children/ticker.mjs. */
export class Ticker {
  readonly command: readonly string[];
  readonly file: string;

  constructor(name: string, ...how: readonly 'stubborn'[]) {
    this.file = join(folder, `${name}.ticks`);
    this.command = [process.execPath, TICKER, this.file, ...how];
  }

  /** What it has written: moments as numbers, names of signals as text. */
  get lines(): string[] {
    try {
      return readFileSync(this.file, 'utf8').split('\n').filter(Boolean);
    } catch {
      return [];
    }
  }

  get ticksMs(): number[] {
    return this.lines.map(Number).filter((tick) => !Number.isNaN(tick));
  }

  get lastMs(): number {
    return this.ticksMs.at(-1) ?? 0;
  }

  /** Waits until it runs. */
  async runs(): Promise<void> {
    const count = this.ticksMs.length;
    const what = `${this.file} to be written to`;
    await until(() => this.ticksMs.length > count, { what, deadlineMs: 30_000 });
  }
}

/** Processes with this parent, with what they were started as. */
export function childrenOf(parent: number): { pid: number; command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const [, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        if (Number(ppid) !== parent) return [];
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
        return [{ pid: Number(name), command }];
      } catch {
        return [];
      }
    });
}

/** The supervisor of a `holdfast run`. It is not ours to wait for, but frozen by us it would stay for ever. */
export async function supervisorOf({ pid }: Running): Promise<number> {
  const find = () => childrenOf(pid).find(({ command }) => command.includes('supervisor.js'))?.pid;
  const supervisor = await until(find, { what: 'the supervisor' });
  atExit(() => {
    if (childrenOf(1).some((orphan) => orphan.pid === supervisor))
      process.kill(supervisor, 'SIGKILL');
  });
  return supervisor;
}

/** `R`, `S`, `T` and so on, as ps shows it. */
export function stateOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.charAt(stat.lastIndexOf(')') + 2);
}
