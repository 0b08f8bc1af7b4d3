import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { decoder, type Ended, encode, type Moment, type Order, type Report } from './orders.ts';

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
  readonly #line: Socket | undefined;
  #group: number | null = null;

  /** Starts the process, which then waits for orders: it takes as long to start as the store takes to connect to. */
  constructor() {
    const child: ChildProcess = spawn(process.execPath, [SCRIPT], {
      // A session of its own, so that what a terminal or a shell does to us is not done to it.
      detached: true,
      stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    });
    this.#line = child.stdio?.[3] as Socket | undefined;
    this.outcome = new Promise((resolve) => {
      const gone = () => resolve({ event: 'gone' });
      child.once('error', gone);
      // Not the exit of the process: what it said before may not have been read by then.
      this.#line?.on('close', gone);
      this.#line?.on('error', () => {});
      this.#line?.setEncoding('utf8');
      this.#line?.on(
        'data',
        decoder<Report>((report) => {
          if (report.event === 'started') this.#group = report.group;
          else resolve(report);
        }),
      );
    });
    child.unref();
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
    this.#line?.destroy();
  }

  #tell(order: Order, then?: () => void): void {
    this.#line?.write(encode(order), () => then?.());
  }
}
