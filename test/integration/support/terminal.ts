import { spawnSync } from 'node:child_process';
import { atExit } from '../../support/process.ts';
import { until } from '../../support/until.ts';
import { type CliOptions, startProgram } from './cli.ts';

let terminals = 0;

/** A terminal of its own, with something that runs in it: what is on its screen can be read, and keys be pressed. */
export class Terminal {
  readonly #socket = `holdfast-test-${process.pid}-${++terminals}`;
  readonly #options: CliOptions;
  readonly #forget: () => void;

  constructor(options: CliOptions) {
    this.#options = options;
    // The server of tmux is nobody's child; where it has ended already, this fails, and may.
    this.#forget = atExit(() => void spawnSync('tmux', this.#args(['kill-server'])));
  }

  async start(line: string, { columns = 80, rows = 24 } = {}): Promise<void> {
    const size = ['-x', String(columns), '-y', String(rows)];
    await this.#tmux('new-session', '-d', ...size, line);
  }

  async screen(): Promise<string> {
    return await this.#tmux('capture-pane', '-p');
  }

  /** Waits until the screen shows something like this, and gives it. */
  async shows(text: RegExp, deadlineMs = 20_000): Promise<string> {
    let last = '';
    const look = async () => {
      last = await this.screen();
      return text.test(last) ? last : null;
    };
    return until(look, { what: `a terminal to show ${text}`, deadlineMs, every: 50 }).catch(
      (error: Error) => {
        throw new Error(`${error.message}; it shows:\n${last}`);
      },
    );
  }

  async press(...keys: readonly string[]): Promise<void> {
    await this.#tmux('send-keys', ...keys);
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#tmux('resize-window', '-x', String(columns), '-y', String(rows));
  }

  /** What tmux knows of it: `#{alternate_on}` and the like. */
  async format(format: string): Promise<string> {
    return (await this.#tmux('display-message', '-p', format)).trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux('kill-server').catch(() => {});
    this.#forget();
  }

  async #tmux(...args: readonly string[]): Promise<string> {
    const started = startProgram('tmux', this.#args(args), this.#options);
    const { code, stdout, stderr } = await started.end();
    if (code !== 0) throw new Error(`tmux ${args.join(' ')}: ${stderr || `ended with ${code}`}`);
    return stdout;
  }

  #args(args: readonly string[]): string[] {
    return ['-u', '-L', this.#socket, '-f', '/dev/null', ...args];
  }
}
