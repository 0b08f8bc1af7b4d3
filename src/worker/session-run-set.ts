import { assert } from '../core/assert.ts';
import { InternalError } from '../core/errors.ts';
import type { StoredSession } from '../store/port/intent-store.ts';
import type { Runtime } from '../store/runtime.ts';
import type { Pipeline } from './pipelines/pipeline.ts';
import { SessionRecord } from './session-record.ts';
import { SessionRun } from './session-run.ts';
import type { Pipelines, WorkerResources } from './worker-resources.ts';

/** For a session that is only ended here. */
const NO_PIPELINE: Pipeline = {
  resource: null,
  timeLimitMs: null,
  tries: null,
  start: () => {
    throw new InternalError({ expected: 'a worker runs only sessions of its kinds' });
  },
};

/** The sessions that one worker runs, and how many more it may start. */
export class SessionRunSet {
  readonly #rt: Runtime;
  readonly #resources: WorkerResources;
  readonly #maxStarts: number;
  readonly #runs = new Map<string, { readonly run: SessionRun; readonly over: Promise<void> }>();
  /** Sessions whose pipeline has not been started yet, by kind. */
  readonly #starting = new Map<string, Set<string>>();
  /** `leaving`: a run that is added is left at once. `abandoned`: the worker has stopped. */
  #state: 'open' | 'leaving' | 'abandoned' = 'open';
  #pipelines: Pipelines | null = null;
  #onRoom: () => void = () => {};
  #onOver: (id: string) => void = () => {};

  constructor(rt: Runtime, resources: WorkerResources, maxStarts: number) {
    this.#rt = rt;
    this.#resources = resources;
    this.#maxStarts = maxStarts;
  }

  get size(): number {
    return this.#runs.size;
  }

  get ids(): Iterable<string> {
    return this.#runs.keys();
  }

  /** How many more sessions of a kind may be started now. */
  room(kind: string): number {
    return this.#maxStarts - (this.#starting.get(kind)?.size ?? 0);
  }

  /**
   * Whether this worker recovers a session that has no living worker: one of its kinds, or one that
   * only has to be ended, because there may be no worker of its kind any more.
   */
  mayRecover({ kind, state }: StoredSession): boolean {
    return state === 'STOPPING' || this.#pipelines?.has(kind) === true;
  }

  has(id: string): boolean {
    return this.#runs.has(id);
  }

  /** `onRoom` is called when another session may be started, `onOver` when a run is over. */
  listen(onRoom: () => void, onOver: (id: string) => void): void {
    this.#onRoom = onRoom;
    this.#onOver = onOver;
  }

  /** Called once, before the first run. */
  open(pipelines: Pipelines): void {
    this.#pipelines = pipelines;
  }

  /** Runs a session that this worker has claimed. */
  start(record: SessionRecord): void {
    this.#add(record, false);
  }

  /** Continues a session that has no living worker. False: there is no room for it now. */
  recover(stored: StoredSession): boolean {
    if (this.#state !== 'open' || this.room(stored.kind) <= 0) return false;
    this.#add(new SessionRecord(this.#rt, stored), true);
    return true;
  }

  /**
   * Hands a run what the store says of its session. False: this worker does not run the session.
   */
  refresh(id: string, stored: StoredSession | null): boolean {
    const found = this.#runs.get(id);
    found?.run.refresh(stored);
    return found !== undefined;
  }

  /** Leases may have been renewed. */
  extend(): void {
    for (const { run } of this.#runs.values()) run.extend();
  }

  /** Stops all runs. Other workers continue their sessions. */
  leave(): void {
    this.#state = 'leaving';
    for (const { run } of this.#runs.values()) run.leave();
  }

  /** Resolves when no run is left. */
  async over(): Promise<void> {
    await Promise.all([...this.#runs.values()].map(({ over }) => over));
  }

  /** Waits no longer for the runs: see `SessionRun.abandon`. */
  async abandon(): Promise<void> {
    this.#state = 'abandoned';
    await Promise.all([...this.#runs.values()].map(({ run }) => run.abandon()));
  }

  #add(record: SessionRecord, isRecovery: boolean): void {
    const { id } = record;
    const { kind } = record.session;
    if (this.#runs.has(id)) return;
    assert(
      this.#pipelines !== null,
      'the pipelines of a worker are opened before it runs sessions',
    );
    const pipeline = this.#pipelines.get(kind) ?? NO_PIPELINE;
    const run = new SessionRun(this.#rt, this.#resources, pipeline, { record, isRecovery });
    const starting = this.#starting.get(kind) ?? new Set();
    this.#starting.set(kind, starting.add(id));
    const onStarted = () => {
      if (starting.delete(id)) this.#onRoom();
    };
    const over = run.run(onStarted).then(() => {
      this.#runs.delete(id);
      onStarted();
      // The session may belong to another worker, and then it has to be watched.
      if (this.#state === 'open') this.#onOver(id);
    });
    this.#runs.set(id, { run, over });
    if (this.#state !== 'open') run.leave();
    if (this.#state === 'abandoned') void run.abandon();
  }
}
