import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Moment } from './host.ts';
import { decoder, type Ended, encode, type Order, type Report } from './orders.ts';

const SCRIPT = fileURLToPath(new URL('./supervisor.js', import.meta.url));

export type Outcome =
  | Ended
  | Extract<Report, { event: 'failed' }>
  /** The supervisor itself is no more, and has not said what became of the command. */
  | { readonly event: 'gone' };

/** The supervisor as `holdfast run` sees it: see `supervision.ts`. */
export class SupervisorProcess {
  /** What became of the command. */
  readonly outcome: Promise<Outcome>;
  readonly #child: ChildProcess;
  readonly #orders: Writable | undefined;
  #group: number | null = null;

  /** Starts the process, which then waits for orders: it takes as long to start as the store takes to connect to. */
  constructor() {
    this.#child = spawn(process.execPath, [SCRIPT], {
      // A session of its own, so that what a terminal or a shell does to us is not done to it.
      detached: true,
      stdio: ['inherit', 'inherit', 'inherit', 'pipe', 'pipe'],
    });
    this.#child.unref();
    // Where it can not be started, there are no pipes to it either.
    const [, , , orders, reports] = this.#child.stdio ?? [];
    this.#orders = orders as Writable | undefined;
    // Whoever does not read orders any more has said what there is to say on the other pipe, which shows its end too.
    this.#orders?.on('error', () => {});
    this.outcome = new Promise((resolve) => {
      const gone = () => resolve({ event: 'gone' });
      this.#child.once('error', gone);
      this.#hear(reports as Readable | undefined, resolve, gone);
    });
  }

  /** The command's process group, once it is known. */
  get group(): number | null {
    return this.#group;
  }

  start(what: Omit<Extract<Order, { do: 'start' }>, 'do'>): void {
    this.#tell({ do: 'start', ...what });
  }

  extend(deadline: Moment): void {
    this.#tell({ do: 'extend', deadline });
  }

  /** Passes a signal on to the command's group; `then` is called when it is on its way. */
  signal(signal: NodeJS.Signals, then?: () => void): void {
    this.#tell({ do: 'signal', signal }, then);
  }

  stop(): void {
    this.#tell({ do: 'stop' });
  }

  /** No more orders. If the command runs, it is stopped. */
  dismiss(): void {
    this.#orders?.destroy();
  }

  /** For one that does not do its work, when somebody else has. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #tell(order: Order, then?: () => void): void {
    this.#orders?.write(encode(order), () => then?.());
  }

  #hear(
    reports: Readable | undefined,
    resolve: (outcome: Outcome) => void,
    gone: () => void,
  ): void {
    const decode = decoder<Report>((report) => {
      if (report.event === 'started') this.#group = report.group;
      else resolve(report);
    });
    reports?.setEncoding('utf8').on('data', decode).on('close', gone).on('error', gone);
  }
}
