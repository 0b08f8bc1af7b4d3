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
import { OpenSessionWatch } from './open-session-watch.ts';
import { builtIn } from './pipelines/function.ts';
import { SessionRunSet } from './session-run-set.ts';
import { StartReader } from './start-reader.ts';
import type { Commands } from './supervisor/commands.ts';
import { WorkerNameLock } from './worker-name-lock.ts';
import { readWorkerOptions, type WorkerOptions, type WorkerSettings } from './worker-options.ts';
import {
  openPipelines,
  type WorkerEnvironment,
  type WorkerResources,
  workerResources,
} from './worker-resources.ts';

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
  readonly #settings: WorkerSettings;
  readonly #resources: WorkerResources;
  readonly #runs: SessionRunSet;
  readonly #starts: StartReader;
  readonly #watch: OpenSessionWatch;
  readonly #name: WorkerNameLock | null;
  /** Null: no pipeline is a command, or the worker does not run yet. */
  #commands: Commands | null = null;
  #unsubscribes: (() => void)[] = [];
  #state: State = 'new';
  #stopping: Promise<void> | null = null;

  constructor(
    rt: Runtime,
    leases: Leases,
    environment: WorkerEnvironment,
    options: WorkerOptions = {},
  ) {
    this.#settings = readWorkerOptions(options, builtIn(rt.clock), environment.kinds);
    const { name, starts, timings } = this.#settings;
    this.#rt = rt;
    this.#environment = environment;
    this.#resources = workerResources(rt, leases, this.#settings);
    this.#name = name === null ? null : new WorkerNameLock(rt, this.#resources, environment, name);
    this.#runs = new SessionRunSet(rt, this.#resources, starts);
    this.#starts = new StartReader(rt, this.#runs, this.#settings.kinds.keys());
    this.#watch = new OpenSessionWatch(rt, this.#runs, timings.ttl);
    this.#runs.listen(
      () => this.#starts.wake(),
      (id) => this.#watch.refresh(id),
    );
  }

  get state(): State {
    return this.#state;
  }

  /** The kinds of sessions that it takes. */
  get kinds(): readonly string[] {
    return [...this.#settings.kinds.keys()];
  }

  /** How many sessions this worker runs now, those that it is starting or ending included. */
  get sessions(): number {
    return this.#runs.size;
  }

  /** The pools of its resources. */
  get pools(): readonly Pool[] {
    return [...this.#resources.pools.values()].map(({ pool }) => pool);
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
    const { clock, events } = this.#rt;
    // Starts the supervisor of commands now, so that no command has to wait for it.
    this.#runs.open(openPipelines(clock, this.#settings, () => this.#openCommands()));
    const extend = () => this.#runs.extend();
    this.#unsubscribes = [
      events.on('lease.renewed', extend),
      events.on('lease.reasserted', extend),
    ];
    await Promise.all([this.#starts.start(), this.#watch.start()]);
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
    await this.#commands?.close();
    const unlock = () => this.#name?.unlock();
    // A function that still runs keeps the lock: a worker that got it would free leases at once
    // that have yet to expire.
    if (isInTime) unlock();
    else void ending.then(unlock, unlock);
    this.#enter('stopped');
  }

  /** Resolves when no run is left and the name is released. */
  async #end(): Promise<void> {
    await Promise.all([this.#starts.stop(), this.#watch.stop()]);
    await this.#runs.over();
    await this.#name?.release();
  }

  #openCommands(): Commands {
    this.#commands ??= this.#environment.commands(this.#name?.lock ?? null);
    return this.#commands;
  }

  get #isStopRequested(): boolean {
    return this.#state !== 'starting';
  }

  #enter(state: State): void {
    assert(FROM[state].includes(this.#state), `a ${this.#state} worker does not become ${state}`);
    this.#state = state;
  }
}
