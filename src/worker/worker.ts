/**
 * The only one who leases, runs and lets go. Takes sessions that intents have started, and runs a pipeline for each while it holds the leases
 * that this needs; `run.ts` says in which order. Any number of processes may run a worker on the same store.
 *
 * What it does not promise: a session runs in one place at a time as far as leases go (`lease.ts`). A command that ends when it is
 * killed is dead before its slot can be another's, whatever becomes of this process. A function is only asked to end: until it has, its leases are
 * kept. They expire under a function that is still running if this process stands still for longer than they last, or if `stop` has waited
 * for it in vain. Only a resource that refuses older fences is safe from such a function.
 *
 * **Starting.** Waits for its name, if it has one: up to a TTL, where a worker that had the name is dead and there is no proof of that. Takes nothing.
 * **Running.** Takes what there is room for, goes on with what others have left or lost, and heeds stops at once, however much is to be started.
 * **Stopping.** Takes nothing new. Pipelines are told to end, leases are released, sessions are left to others, who go on with them.
 */
import { type Clock, isDoneWithin } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import type { Emitter } from '../core/events.ts';
import type { Random } from '../core/random.ts';
import type { Tracing } from '../core/tracing.ts';
import type { Leases } from '../lease/leases.ts';
import type { AcquireOptions } from '../lease/options.ts';
import { Pool } from '../lease/pool/pool.ts';
import type { StoredSession } from '../store/port/intent-store.ts';
import type { Store } from '../store/port/store.ts';
import { builtIn } from './pipelines/built-in.ts';
import { commandPipeline } from './pipelines/command.ts';
import { functionPipeline } from './pipelines/function.ts';
import type { Pipeline } from './pipelines/pipeline.ts';
import { SessionMonitor } from './session-monitor.ts';
import { SessionRecord } from './session-record.ts';
import { type RunParts, SessionRun } from './session-run.ts';
import { StartConsumer } from './start-consumer.ts';
import type { Commands } from './supervisor/commands.ts';
import type { Host, HostLock } from './supervisor/host.ts';
import { WorkerName } from './worker-name.ts';
import {
  type PipelineSettings,
  readWorkerOptions,
  type WorkerOptions,
  type WorkerSettings,
} from './worker-options.ts';

const DEFAULT_STOP_MS = 15_000;

export interface WorkerParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly instanceId: string;
  readonly leases: Leases;
  readonly tracing?: Tracing;
  /** What is before all keys of the store; so that workers of different ones do not take each other for the same. */
  readonly prefix: string;
  readonly host: Host;
  /** Runs commands. What holds the lock goes with whoever ends them. */
  commands(lock: HostLock | null): Commands;
}

type State = 'new' | 'starting' | 'running' | 'stopping' | 'stopped';
type Kind = 'live' | 'vod';

export class Worker implements AsyncDisposable {
  readonly #parts: WorkerParts;
  readonly #settings: WorkerSettings;
  readonly #options: AcquireOptions;
  readonly #pools = new Map<string, { readonly pool: Pool; readonly waitMs: number }>();
  readonly #runs = new Map<string, { readonly run: SessionRun; readonly done: Promise<void> }>();
  /** Those of them whose pipeline has not been started. */
  readonly #starting = new Set<string>();
  readonly #over = new AbortController();
  readonly #intake: StartConsumer;
  readonly #lookout: SessionMonitor;
  readonly #name: WorkerName | null;
  #runParts: RunParts | null = null;
  #commands: Commands | null = null;
  #unsubscribes: (() => void)[] = [];
  #state: State = 'new';
  #stopping: Promise<void> | null = null;

  constructor(parts: WorkerParts, options: WorkerOptions = {}) {
    this.#parts = parts;
    this.#settings = readWorkerOptions(options, builtIn(parts.clock));
    const { resources, timings, name } = this.#settings;
    this.#options = { ...timings, class: 'resource' };
    parts.leases.check(this.#options);
    for (const { name: resource, slots, key, waitMs } of resources) {
      const pool = new Pool(parts, resource, { ...this.#options, slots, key });
      this.#pools.set(resource, { pool, waitMs });
    }
    this.#name =
      name === null
        ? null
        : new WorkerName(parts, { name, options: this.#options, pools: this.pools });
    this.#intake = new StartConsumer({
      ...parts,
      room: () => this.#room(),
      has: (id) => this.#runs.has(id),
      claimed: (file) => this.#begin(file, false),
    });
    this.#lookout = new SessionMonitor({
      ...parts,
      patienceMs: timings.ttl,
      own: () => this.#runs.keys(),
      seen: (id, stored) => this.#seen(id, stored),
      recover: (stored) => this.#recover(stored),
    });
  }

  get state(): State {
    return this.#state;
  }

  /** How many sessions it has in hands. */
  get sessions(): number {
    return this.#runs.size;
  }

  /** The pools of its resources. */
  get pools(): readonly Pool[] {
    return [...this.#pools.values()].map(({ pool }) => pool);
  }

  /** Begins. Throws `WORKER_NAME_TAKEN` if it has a name that another has. Resolves when it has looked for what there is to do. */
  async start(): Promise<this> {
    if (this.#state !== 'new') return this;
    this.#state = 'starting';
    try {
      await this.#name?.claim();
    } catch (error) {
      this.#state = 'stopped';
      throw error;
    }
    if (!this.#hasName()) return this;
    this.#runParts = this.#equip();
    const { events } = this.#parts;
    const extend = () => {
      for (const { run } of this.#runs.values()) run.extend();
    };
    this.#unsubscribes = [
      events.on('lease.renewed', extend),
      events.on('lease.reasserted', extend),
    ];
    await Promise.all([this.#intake.start(), this.#lookout.start()]);
    return this;
  }

  /**
   * Takes nothing new, ends pipelines, lets go of everything; others go on with the sessions. Waits for pipelines to end for up to `within`
   * (15 s). A pipeline that has not ended by then is left behind: its leases are not renewed any more, and expire.
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
    const { clock } = this.#parts;
    this.#state = 'stopping';
    const ending = (async () => {
      await Promise.all([this.#intake.stop(), this.#lookout.stop()]);
      for (const { run } of this.#runs.values()) run.leave();
      await Promise.all([...this.#runs.values()].map(({ done }) => done));
      await this.#name?.release();
    })();
    for (const { run } of this.#runs.values()) run.leave();
    const isInTime = await isDoneWithin(clock, withinMs, ending);
    this.#over.abort(new Error('the worker has stopped'));
    await Promise.all([...this.#runs.values()].map(({ run }) => run.abandon()));
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await this.#commands?.close();
    const unlock = () => this.#name?.unlock();
    // A function that still runs keeps the lock: a worker that got it would free leases at once that have yet to expire.
    if (isInTime) unlock();
    else void ending.then(unlock, unlock);
    this.#state = 'stopped';
  }

  /** False: it was told to stop meanwhile. */
  #hasName(): boolean {
    if (this.#state !== 'starting') return false;
    this.#state = 'running';
    return true;
  }

  /** What runs need, and what can only be made once the name is had. */
  #equip(): RunParts {
    const { live, vod } = this.#settings.pipelines;
    const pipelines: Readonly<Record<Kind, Pipeline>> = {
      live: this.#pipeline(live),
      vod: this.#pipeline(vod),
    };
    return {
      ...this.#parts,
      options: this.#options,
      graceMs: this.#settings.graceMs,
      over: this.#over.signal,
      pipelineFor: (kind) => pipelines[kind],
      poolFor: (resource) => {
        const found = this.#pools.get(resource);
        if (found === undefined) throw new Error(`there is no pool '${resource}'`);
        return found;
      },
    };
  }

  #pipeline({ work, resource }: PipelineSettings): Pipeline {
    const { clock } = this.#parts;
    if (typeof work === 'function') return functionPipeline(work, resource, { clock });
    this.#commands ??= this.#parts.commands(this.#name?.lock ?? null);
    const { graceMs } = this.#settings;
    return commandPipeline(work, resource, { clock, commands: this.#commands, graceMs });
  }

  #room(): number {
    return this.#settings.starts - this.#starting.size;
  }

  #seen(id: string, stored: StoredSession | null): boolean {
    const found = this.#runs.get(id);
    found?.run.see(stored);
    return found !== undefined;
  }

  #recover(stored: StoredSession): boolean {
    if (this.#state !== 'running' || this.#room() <= 0) return false;
    this.#begin(new SessionRecord(this.#parts, stored), true);
    return true;
  }

  #begin(file: SessionRecord, isRecovery: boolean): void {
    const { id } = file;
    if (this.#runParts === null || this.#runs.has(id)) return;
    const run = new SessionRun(this.#runParts, file, { isRecovery });
    this.#starting.add(id);
    const hasRoom = () => {
      if (this.#starting.delete(id)) this.#intake.hint();
    };
    const done = run.go(hasRoom).then(() => {
      this.#runs.delete(id);
      hasRoom();
      // It may be somebody's still, and somebody has to keep an eye on it.
      if (this.#state === 'running') this.#lookout.look(id);
    });
    this.#runs.set(id, { run, done });
    if (this.#state !== 'running') run.leave();
  }
}
