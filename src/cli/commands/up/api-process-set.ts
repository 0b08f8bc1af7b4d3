/**
 * `holdfast up --processes`: processes that share the port of the API. This process accepts the
 * connections and gives each to the next of them (`node:cluster`). It opens no store and answers
 * nothing itself:
 *
 * - **A process has died.** Another one takes its place after a pause, which doubles while they
 *   keep dying. The others answer meanwhile.
 * - **A process refuses to start**, because a setting is wrong or the port is taken. All stop, and
 *   this process ends with its exit code: another try would fail the same way.
 * - **This process is told to stop.** It tells the others, and waits until each has answered its
 *   open requests. Those that take too long are killed.
 * - **This process has died.** The others end, too: Node ends them when their channel closes.
 */
import cluster, { type Worker as Child } from 'node:cluster';
import { createInterface } from 'node:readline';
import { type Backoff, backoff } from '../../../core/backoff.ts';
import type { Clock, Timer } from '../../../core/clock.ts';
import type { Log } from '../../../telemetry/log.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import type { StopSignals } from '../../ui/stop-signals.ts';
import { counted, spanOf } from '../../ui/text.ts';
import { PROCESS_VARIABLE } from './api-processes.ts';

export interface ApiProcessOptions {
  readonly log: Log;
  /** Gets each line that a process logs, with its line end. */
  onLine(line: string): void;
  /** How long a process may take to stop. */
  readonly stopWithinMs: number;
}

const RESTART = { minMs: 500, maxMs: 30_000 };
/** A process that lives longer has started well: the next pause is the shortest again. */
const GOOD_START_MS = 60_000;
/** What a process may need beyond its own time to stop, before it is killed. */
const KILL_AFTER_MS = 5_000;
/** With these a process ends that cannot be started with these settings. */
const HOPELESS: readonly unknown[] = [EXIT.usage, EXIT.config];

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
}

export class ApiProcessSet {
  readonly #clock: Clock;
  readonly #options: ApiProcessOptions;
  readonly #children = new Set<Child>();
  readonly #stopping = new AbortController();
  /** The exit code of a process that cannot be started. */
  #hopeless: number | null = null;
  #timer: Timer | null = null;

  constructor(clock: Clock, options: ApiProcessOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Runs so many processes until a signal asks this one to stop. */
  async run(count: number, ending: StopSignals): Promise<Exit> {
    cluster.setupPrimary({ stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    this.#options.log.say('info', `starts ${counted(count, 'process')}`, { processes: count });
    const places = Array.from({ length: count }, (_, i) => this.#keep(String(i + 1)));
    const allEnded = Promise.all(places);
    void ending.whenAsked().then(() => this.#stop());
    const signal = await ending.unlessInsisted(allEnded.then(() => null));
    this.#timer?.cancel();
    this.#signal('SIGKILL');
    return signal ?? this.#hopeless ?? EXIT.ok;
  }

  /** Has a process in this place until all are to stop. */
  async #keep(place: string): Promise<void> {
    const { log } = this.#options;
    const pauses = backoff(RESTART);
    while (!this.#stopping.signal.aborted) {
      const startMs = this.#clock.monotonicMs();
      const { code, signal } = await this.#runOne(place);
      if (this.#stopping.signal.aborted) return;
      const livedMs = this.#clock.monotonicMs() - startMs;
      const facts = { process: place, code, signal };
      if (HOPELESS.includes(code)) {
        this.#hopeless = code;
        log.say('error', `process ${place} cannot start (exit code ${code}), so all stop`, facts);
        this.#stop();
        return;
      }
      const pauseMs = nextPause(pauses, livedMs);
      const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
      const next = `another starts in ${spanOf(pauseMs)}`;
      log.say('warn', `process ${place} ended ${how} after ${spanOf(livedMs)}: ${next}`, facts);
      await this.#clock.sleep(pauseMs, this.#stopping.signal).catch(() => {});
    }
  }

  #runOne(place: string): Promise<Ended> {
    const child = cluster.fork({ [PROCESS_VARIABLE]: place });
    this.#children.add(child);
    const { stdout } = child.process;
    if (stdout !== null)
      createInterface({ input: stdout }).on('line', (line) => this.#options.onLine(`${line}\n`));
    return new Promise((resolve) => {
      const end = (ended: Ended) => {
        this.#children.delete(child);
        resolve(ended);
      };
      // `close` comes after the last line, `error` if there is no process at all.
      child.process.once('close', (code, signal) => end({ code, signal }));
      child.process.once('error', () => end({ code: EXIT.internal, signal: null }));
    });
  }

  /** Tells all processes to stop, and kills those that do not in time. */
  #stop(): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    this.#signal('SIGTERM');
    const withinMs = this.#options.stopWithinMs + KILL_AFTER_MS;
    this.#timer = this.#clock.after(withinMs, () => this.#signal('SIGKILL'));
  }

  #signal(signal: NodeJS.Signals): void {
    for (const child of this.#children) child.process.kill(signal);
  }
}

function nextPause(pauses: Backoff, livedMs: number): number {
  if (livedMs >= GOOD_START_MS) pauses.reset();
  return pauses.nextMs();
}
