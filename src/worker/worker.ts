/**
 * Runs the sessions that intents have started, each under the leases that it needs: see
 * `session-run.ts`. Any number of processes may run a worker on the same store.
 *
 * What a worker does not promise: a session runs in one place at a time only as far as leases go
 * (`lease.ts`). A command that ends when it is killed is dead before another session can have its
 * slot, even if this process is killed or suspended. A function is only asked to end, and its
 * leases are kept until it has. They expire under a function that still runs if this process is
 * suspended for longer than their TTL, or if `stop` has waited for the function in vain. Only a
 * resource that refuses older fences is safe from such a function.
 *
 * **New.** In: at the beginning. Out: `start` → starting; `stop` → stopping.
 *
 * **Starting.** In: as above. Waits for its name, if it has one. That takes up to a TTL where a
 * worker that had the name is dead and nothing proves it. Runs nothing. Out: it has the name →
 * running; another worker has the name → stopped; `stop` → stopping.
 *
 * **Running.** In: as above. Starts as many sessions as it has room for, recovers sessions of dead
 * workers, and stops sessions at once, however many starts wait. Out: `stop` → stopping.
 *
 * **Stopping.** In: as above, or `stop` after a start that failed. Starts nothing. Pipelines are
 * told to end, leases are released, and other workers continue the sessions. Out: nothing is left,
 * or the time is over → stopped.
 *
 * **Stopped.** It never starts again.
 */
import { assert } from '../core/assert.ts';
import { isDoneWithin } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import type { Leases } from '../lease/leases.ts';
import type { Pool } from '../lease/pool/pool.ts';
import type { Runtime } from '../store/runtime.ts';
import { builtIn } from './pipelines/built-in.ts';
import { SessionMonitor } from './session-monitor.ts';
import { SessionRuns } from './session-runs.ts';
import { StartConsumer } from './start-consumer.ts';
import { WorkerName } from './worker-name.ts';
import { readWorkerOptions, type WorkerOptions } from './worker-options.ts';
import { type WorkerEnvironment, WorkerResources } from './worker-resources.ts';

const DEFAULT_STOP_MS = 15_000;

export type State = 'new' | 'starting' | 'running' | 'stopping' | 'stopped';

const FROM: Readonly<Record<State, readonly State[]>> = {
  new: [],
  starting: ['new'],
  running: ['starting'],
  stopping: ['new', 'starting', 'running', 'stopped'],
  stopped: ['starting', 'stopping'],
};

export class Worker implements AsyncDisposable {
  readonly #rt: Runtime;
  readonly #environment: WorkerEnvironment;
  readonly #resources: WorkerResources;
  readonly #runs: SessionRuns;
  readonly #consumer: StartConsumer;
  readonly #monitor: SessionMonitor;
  readonly #name: WorkerName | null;
  #unsubscribes: (() => void)[] = [];
  #state: State = 'new';
  #stopping: Promise<void> | null = null;

  constructor(
    rt: Runtime,
    leases: Leases,
    environment: WorkerEnvironment,
    options: WorkerOptions = {},
  ) {
    const settings = readWorkerOptions(options, builtIn(rt.clock));
    const { name, starts, timings } = settings;
    this.#rt = rt;
    this.#environment = environment;
    this.#resources = new WorkerResources(rt, leases, settings);
    this.#name = name === null ? null : new WorkerName(rt, this.#resources, environment, name);
    this.#runs = new SessionRuns(rt, this.#resources, starts);
    this.#consumer = new StartConsumer(rt, this.#runs);
    this.#monitor = new SessionMonitor(rt, this.#runs, timings.ttl);
    this.#runs.listen(
      () => this.#consumer.wake(),
      (id) => this.#monitor.refresh(id),
    );
  }

  get state(): State {
    return this.#state;
  }

  /** How many sessions this worker runs now, those that it is starting or ending included. */
  get sessions(): number {
    return this.#runs.size;
  }

  /** The pools of its resources. */
  get pools(): readonly Pool[] {
    return this.#resources.pools;
  }

  /**
   * Starts the worker. Resolves when it has read once what there is to do. Throws
   * `WORKER_NAME_TAKEN` if another worker has its name.
   */
  async start(): Promise<this> {
    if (this.#state !== 'new') return this;
    this.#enter('starting');
    try {
      await this.#name?.claim();
    } catch (error) {
      if (!this.#isStopRequested) this.#enter('stopped');
      throw error;
    }
    if (this.#isStopRequested) return this;
    this.#enter('running');
    const lock = this.#name?.lock ?? null;
    this.#resources.openPipelines(() => this.#environment.commands(lock));
    const { events } = this.#rt;
    const extend = () => this.#runs.extend();
    this.#unsubscribes = [
      events.on('lease.renewed', extend),
      events.on('lease.reasserted', extend),
    ];
    await Promise.all([this.#consumer.start(), this.#monitor.start()]);
    return this;
  }

  /**
   * Starts nothing new, ends pipelines and releases their leases; other workers continue the
   * sessions. Waits for pipelines to end for up to `within` (15 s). A pipeline that has not ended
   * by then is left behind: its leases are not renewed any more, and expire.
   */
  async stop({ within = DEFAULT_STOP_MS }: { within?: Duration } = {}): Promise<void> {
    const withinMs = durationMs(within, 'within');
    this.#stopping ??= this.#stop(withinMs);
    await this.#stopping;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #stop(withinMs: number): Promise<void> {
    this.#enter('stopping');
    const ending = this.#end();
    this.#runs.leave();
    const isInTime = await isDoneWithin(this.#rt.clock, withinMs, ending);
    await this.#runs.abandon();
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await this.#resources.closePipelines();
    const unlock = () => this.#name?.unlock();
    // A function that still runs keeps the lock: a worker that got it would free leases at once
    // that have yet to expire.
    if (isInTime) unlock();
    else void ending.then(unlock, unlock);
    this.#enter('stopped');
  }

  /** Resolves when no run is left and the name is released. */
  async #end(): Promise<void> {
    await Promise.all([this.#consumer.stop(), this.#monitor.stop()]);
    await this.#runs.over();
    await this.#name?.release();
  }

  get #isStopRequested(): boolean {
    return this.#state !== 'starting';
  }

  #enter(state: State): void {
    assert(FROM[state].includes(this.#state), `a ${this.#state} worker does not become ${state}`);
    this.#state = state;
  }
}
