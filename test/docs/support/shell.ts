import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { atExit } from '../../support/process.ts';
import { until } from '../../support/until.ts';

const STOP_DEADLINE_MS = 5_000;
const MAX_OUTPUT_CHARS = 1_000_000;

/**
 * Takes commands, one after the other, from file descriptor 3, as a person would type them; each is followed by a line
 * that no command writes, with its exit code.
 */
const LOOP = `DOCS_CODE=0
while IFS= read -r -d '' -u 3 DOCS_COMMAND; do
  (exit "$DOCS_CODE")
  eval "$DOCS_COMMAND" </dev/null 3<&-
  DOCS_CODE=$?
  printf '\\n\\036%s\\036\\n' "$DOCS_CODE"
done`;

export interface Outcome {
  /** Of the command; undefined if it had not ended at the deadline. */
  readonly code: number | undefined;
  readonly output: string;
}

/** A bash, and what was started in it. */
export class Shell {
  readonly #child: ChildProcess;
  readonly #deadlineMs: number;
  readonly #forget: () => void;
  #output = '';
  #isEnded = false;

  constructor(folder: string, env: Readonly<Record<string, string>>, deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
    this.#child = spawn('bash', ['--norc', '--noprofile', '-c', `exec 2>&1\n${LOOP}`], {
      ...{ cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
      // A process group of its own: it ends with everything that was started in it.
      detached: true,
    });
    this.#forget = atExit(() => this.#signal('SIGKILL'));
    const collect = (chunk: Buffer) => {
      this.#output = (this.#output + chunk.toString()).slice(-MAX_OUTPUT_CHARS);
    };
    this.#child.stdout?.on('data', collect);
    this.#child.stderr?.on('data', collect);
    this.#child.once('exit', () => {
      this.#isEnded = true;
    });
    this.#child.stdio[3]?.on('error', () => {});
  }

  /** Runs a command to its end. */
  async run(command: string): Promise<Outcome> {
    this.#output = '';
    this.#type(command);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what no command writes.
    const end = /\n\u001e(\d+)\u001e\n/;
    const what = `the end of: ${command}`;
    const isOver = () => end.test(this.#output) || this.#isEnded;
    // Looked at once more behind the deadline: it may be this process that was late.
    await until(isOver, { what, deadlineMs: this.#deadlineMs }).catch(() => {});
    const code = end.exec(this.#output)?.[1];
    const output = this.#output.replace(end, '');
    if (!isOver()) return { code: undefined, output };
    return { code: code === undefined ? 1 : Number(code), output };
  }

  /**
   * Starts a command that goes on running, and waits until what it says shows that it runs. Its output goes to that file.
   * Undefined if it does; else what it has said.
   */
  async start(
    command: string,
    file: string,
    isReady: (output: string) => boolean,
  ): Promise<Outcome | undefined> {
    await this.run(`{ ${command}\n} >"${file}" 2>&1 &`);
    // The shell may not have come to making it.
    const said = () => (existsSync(file) ? readFileSync(file, 'utf8') : '');
    const isSaid = () => isReady(said());
    const options = { what: `the output of: ${command}`, deadlineMs: this.#deadlineMs };
    await until(isSaid, options).catch(() => {});
    return isSaid() ? undefined : { code: undefined, output: said() };
  }

  /** Ends everything that was started in it. */
  async stop(): Promise<void> {
    this.#signal('SIGTERM');
    const isGone = () => !this.#signal(0);
    await until(isGone, { what: 'the end', deadlineMs: STOP_DEADLINE_MS }).catch(() => {
      this.#signal('SIGKILL');
    });
    this.#forget();
  }

  #type(command: string): void {
    (this.#child.stdio[3] as Writable).write(`${command}\0`);
  }

  /** To the whole group. False if nobody is left in it. */
  #signal(signal: NodeJS.Signals | 0): boolean {
    try {
      process.kill(-(this.#child.pid ?? 0), signal);
      return true;
    } catch {
      return false;
    }
  }
}
