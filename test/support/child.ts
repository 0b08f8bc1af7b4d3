import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { freezeProcess, killAtExit, thawProcess } from './process.ts';
import { within } from './until.ts';

const CHILDREN = new URL('../children/', import.meta.url);
const NEXT_DEADLINE_MS = 10_000;
const EXIT_DEADLINE_MS = 10_000;
/** The end of the child's stderr that an error shows. */
const MAX_STDERR_CHARS = 8_000;
/** A child that says more than this without being listened to is out of hand: it is killed. */
const MAX_UNREAD_MESSAGES = 10_000;

/** One line of the child's stdout: JSON with the name of what happened, and the facts. */
export interface Message {
  event: string;
  [fact: string]: unknown;
}

export interface ExitStatus {
  code: number | null;
  signal: NodeJS.Signals | null;
}

interface SpawnOptions {
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** Words in front of the command, such as those of a `Home`. */
  enter?: readonly string[];
}

type Match = string | ((message: Message) => boolean);

/**
 * Starts `test/children/<script>` as a real Node process. It speaks JSON lines: `{"event": …}` on its
 * stdout, and whatever the test sends on its stdin. Other lines on stdout count as part of stderr.
 */
export function spawnChild(script: string, options: SpawnOptions = {}): Child {
  const { args = [], env = {}, enter = [] } = options;
  const path = fileURLToPath(new URL(script, CHILDREN));
  const [file = '', ...words] = [...enter, process.execPath, path, ...args];
  return new Child(
    script,
    spawn(file, words, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    }),
  );
}

export class Child {
  /** Everything it has said, in order, read or not. */
  readonly received: Message[] = [];
  readonly #script: string;
  readonly #process: ChildProcess;
  readonly #unread: Message[] = [];
  readonly #ended: Promise<ExitStatus>;
  #waiting: (() => void)[] = [];
  #status: ExitStatus | undefined;
  #stderr = '';

  constructor(script: string, child: ChildProcess) {
    this.#script = script;
    this.#process = child;
    killAtExit(child);
    child.stderr?.on('data', (chunk: Buffer) => this.#note(chunk.toString()));
    child.stdin?.on('error', (error) => this.#note(`[stdin: ${error.message}]\n`));
    if (child.stdout)
      createInterface({ input: child.stdout }).on('line', (line) => this.#hear(line));
    this.#ended = new Promise((resolve) => {
      child.once('error', (error) => this.#note(`[${error.message}]\n`));
      child.once('close', (code, signal) => {
        this.#status = { code, signal };
        resolve(this.#status);
        this.#wake();
      });
    });
  }

  get pid(): number {
    if (this.#process.pid === undefined) throw this.#error('did not start');
    return this.#process.pid;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /**
   * The oldest unread message of that name, or for which the function says true; waits for one to come.
   * Each message is returned once; those passed over stay unread.
   */
  async next(match: Match, deadlineMs = NEXT_DEADLINE_MS): Promise<Message> {
    const isMatch =
      typeof match === 'string' ? (message: Message) => message.event === match : match;
    const wanted = typeof match === 'string' ? `'${match}'` : 'the message waited for';
    const startedAt = performance.now();
    for (;;) {
      const index = this.#unread.findIndex(isMatch);
      const [found] = index === -1 ? [] : this.#unread.splice(index, 1);
      if (found !== undefined) return found;
      if (this.#status !== undefined) throw this.#error(`ended without ${wanted}`);
      const leftMs = deadlineMs - (performance.now() - startedAt);
      if (leftMs <= 0) throw this.#error(`did not say ${wanted} within ${deadlineMs} ms`);
      await within(leftMs, this.#somethingNew()).catch(() => {});
    }
  }

  /** One JSON line to its stdin. */
  send(message: unknown): void {
    if (this.#status !== undefined) throw this.#error('has ended and can be told nothing');
    this.#process.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  /** Sends a signal and does not wait, for instance `signal('SIGTERM')` before `exit()`. */
  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** SIGSTOP; returns when it does stand still. */
  freeze(): Promise<void> {
    return freezeProcess(this.pid);
  }

  /** SIGCONT. */
  thaw(): Promise<void> {
    return thawProcess(this.pid);
  }

  /** SIGKILL, and waits for the end. A child that has ended already is fine. */
  kill(): Promise<ExitStatus> {
    this.#process.kill('SIGKILL');
    return this.exit();
  }

  /** Waits for it to end by itself. */
  async exit(deadlineMs = EXIT_DEADLINE_MS): Promise<ExitStatus> {
    return await within(deadlineMs, this.#ended).catch(() => {
      throw this.#error(`did not end within ${deadlineMs} ms`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #hear(line: string): void {
    const message = parseMessage(line);
    if (message === undefined) {
      this.#note(`${line}\n`);
      return;
    }
    this.received.push(message);
    this.#unread.push(message);
    if (this.#unread.length > MAX_UNREAD_MESSAGES) {
      this.#note(`[killed: more than ${MAX_UNREAD_MESSAGES} unread messages]\n`);
      this.#process.kill('SIGKILL');
    }
    this.#wake();
  }

  #somethingNew(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #note(text: string): void {
    this.#stderr = (this.#stderr + text).slice(-MAX_STDERR_CHARS);
  }

  #error(what: string): Error {
    const { code, signal } = this.#status ?? {};
    const status = this.#status ? `ended with ${signal ?? `code ${code}`}` : 'still running';
    const unread = this.#unread.slice(-10).map((message) => JSON.stringify(message));
    return new Error(
      [
        `child ${this.#script} ${what} (${status})`,
        `unread: ${unread.join('\n        ') || 'nothing'}`,
        `stderr: ${this.#stderr.trimEnd() || 'nothing'}`,
      ].join('\n'),
    );
  }
}

function parseMessage(line: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(line);
    const isMessage =
      typeof value === 'object' &&
      value !== null &&
      'event' in value &&
      typeof value.event === 'string';
    return isMessage ? (value as Message) : undefined;
  } catch {
    return undefined;
  }
}
