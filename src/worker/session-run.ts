/**
 * One session at this worker, from its claim until the worker holds nothing for it.
 *
 * **Acquiring.** In: the worker took the session's start from the stream and claimed it; or the
 * session had no living worker, and this one recovers it. Acquires the leases (`SessionLeases`),
 * and asks again for as long as the store does not answer. Out: all leases are held and the
 * pipeline was started → running; a lease is unavailable, or the run is stopped → releasing.
 *
 * **Running.** In: as above. The store is told the slot and the process group, and then the command
 * begins. The run is stopped when no client needs the session, a lease is lost, the session belongs
 * to another worker or to none, or this worker stops. The pipeline is then told to end, and the run
 * waits until nothing of it is left, however long that takes. Out: nothing of the pipeline is left
 * → releasing; it failed or its time limit was over, and the session may be tried again → pausing.
 *
 * **Pausing.** In: as above. The store counts the failure, then the pause begins. Nothing runs, and
 * the leases are kept. Out: the pause is over → running; the run is stopped → releasing.
 *
 * **Releasing.** In: as above. `STOPPING` and the reason are written first, then the leases are
 * released, the last acquired first, and then `ENDED` is written. So a client that reads `ENDED`
 * finds the leases free, and a worker that recovers the session before that knows its reason. A
 * session that is only left, because this worker stops, keeps its state: its last failure is
 * counted, its leases are released, and then the worker's name is removed from it, so that another
 * worker continues. If the store cannot be told that the pipeline has ended or failed, the leases
 * are not released: they expire, and the next worker counts a loss. Out: → over.
 *
 * **Over.** The worker holds nothing for the session.
 */
import { assert } from '../core/assert.ts';
import { backoff } from '../core/backoff.ts';
import type { Timer } from '../core/clock.ts';
import { ClosedError, LeaseLostError } from '../core/errors.ts';
import { retryStore } from '../core/retry.ts';
import type { Span } from '../core/tracing.ts';
import type { SessionStatus } from '../intents/intent-session.ts';
import { Lease } from '../lease/lease.ts';
import {
  SESSION_CHANGES_TOPIC,
  type SessionState,
  type StoredSession,
} from '../store/port/intent-store.ts';
import type { Runtime } from '../store/runtime.ts';
import type { Pipeline, PipelineEnd, PipelineHold, Running } from './pipelines/pipeline.ts';
import { ProgressWriter } from './pipelines/progress-writer.ts';
import { type Ended, ended, type RunOutcome } from './run-outcome.ts';
import { SessionLeases } from './session-leases.ts';
import type { SessionRecord } from './session-record.ts';
import type { WorkerResources } from './worker-resources.ts';

type State = 'acquiring' | 'running' | 'pausing' | 'releasing' | 'over';

const FROM: Readonly<Record<State, readonly State[]>> = {
  acquiring: [],
  running: ['acquiring', 'pausing'],
  pausing: ['running'],
  releasing: ['acquiring', 'running', 'pausing'],
  over: ['releasing'],
};

/**
 * Why a run is stopped. `stopped`: no client needs the session. `lost`: a lease is lost. `gone`:
 * the session does not belong to this worker any more. `left`: the worker stops.
 */
type Cause = 'stopped' | 'lost' | 'gone' | 'left';

/** The reason of the pipeline's `AbortSignal`. */
const STOP_MESSAGES: Readonly<Record<Cause, string>> = {
  stopped: 'this session was stopped: no client needs it any more',
  lost: 'a lease of this session was lost',
  gone: 'this session does not belong to this worker any more',
  left: 'this worker is stopping: another worker continues this session',
};
const TIME_LIMIT_OVER = 'the time limit of this session is over';
const CALL = { timeoutMs: 2_000 };
/** The pauses before a session is tried again. */
const RETRY_PAUSES = { minMs: 1_000, maxMs: 60_000 };
/** A session is started again after this many lost workers. It may be what kills them. */
const MAX_LOSSES = 3;

/** How one try of a pipeline ended. */
interface Tried {
  readonly end: PipelineEnd;
  /** It was told to end because its time limit was over. */
  readonly isTimeUp: boolean;
  /** The session may be tried again, as far as the pipeline is concerned. */
  readonly isFailure: boolean;
  /** Why the run was stopped before the pipeline ended. Null: it ended by itself. */
  readonly cause: Cause | null;
}

export class SessionRun {
  readonly #rt: Runtime;
  readonly #record: SessionRecord;
  readonly #isRecovery: boolean;
  readonly #leases: SessionLeases;
  readonly #pipeline: Pipeline;
  readonly #graceMs: number;
  readonly #stop = new AbortController();
  readonly #abandoned = new AbortController();
  #state: State = 'acquiring';
  #cause: Cause | null = null;
  /** Which lease was lost, and why. */
  #lost = 'its leases: they were not renewed in time';
  /** The pipeline after its start, and after its end. */
  #running: Running | null = null;
  /** The failures with the last one, while the store does not know of that one. */
  #uncounted: number | null = null;
  /** The store names this worker as the worker of the session, or did so. */
  #isClaimed: boolean;

  /** `isRecovery`: the session belonged to another worker, which is dead or has left it. */
  constructor(
    rt: Runtime,
    resources: WorkerResources,
    pipeline: Pipeline,
    { record, isRecovery }: { record: SessionRecord; isRecovery: boolean },
  ) {
    this.#rt = rt;
    this.#record = record;
    this.#isRecovery = isRecovery;
    this.#isClaimed = !isRecovery;
    this.#leases = new SessionLeases(rt, resources, record.session, isRecovery);
    this.#pipeline = pipeline;
    this.#graceMs = resources.graceMs;
  }

  /** Takes over what the store says of the session. */
  refresh(stored: StoredSession | null): void {
    this.#record.refresh(stored);
    this.#stopIfRecordSaysSo();
  }

  /** A lease of this run may have been renewed. */
  extend(): void {
    if (this.#cause !== 'lost') this.#running?.extend();
  }

  /** This worker stops: another worker continues the session. */
  leave(): void {
    this.#stopFor('left');
  }

  /**
   * The worker waits no longer, and no write to the store is tried again. The leases of a pipeline
   * that still runs are never handed over: they are not renewed any more, and expire.
   */
  async abandon(): Promise<void> {
    this.#abandoned.abort(new Error('the worker has stopped'));
    if (this.#state === 'running') await this.#leases.abandon(this.#running?.ended);
  }

  /**
   * Resolves when the run is over. Never rejects. Calls `onStarted` when the pipeline was started.
   */
  async run(onStarted: () => void): Promise<void> {
    const { tracing } = this.#rt;
    const { id, kind } = this.#record.session;
    const attributes = { 'holdfast.session': id, 'holdfast.kind': kind };
    const session = { name: 'holdfast.session', attributes, isRoot: true } as const;
    const pipeline = { name: 'holdfast.pipeline', attributes };
    const outcome = await tracing.run(session, async (span) => {
      try {
        this.#stopIfRecordSaysSo();
        const refusal = await this.#acquireLeases(span);
        if (refusal !== null) return refusal;
        return await tracing.run(pipeline, (inner) => this.#runPipeline(onStarted, inner));
      } catch (error) {
        return this.#outcomeOfError(error);
      }
    });
    if (this.#state !== 'releasing') this.#enter('releasing');
    try {
      if (outcome.kind === 'ended') await this.#endSession(outcome);
      else await this.#leaveSession(outcome);
    } catch {
      await this.#releaseUntold(outcome);
    }
    this.#enter('over');
  }

  /** Null: the run holds all leases that the pipeline needs. */
  async #acquireLeases(span: Span): Promise<RunOutcome | null> {
    const { signal } = this.#stop;
    const own = await this.#leases.acquireOwn(signal);
    if (!(own instanceof Lease)) return own;
    this.#watch(own, span);
    const refusal = this.#isRecovery ? await this.#claimRecovered() : await this.#readAgain();
    if (refusal !== null) return refusal;
    const { resource } = this.#pipeline;
    if (resource === null) return null;
    const slot = await this.#leases.acquireSlot(resource, signal);
    if (!(slot instanceof Lease)) return slot;
    this.#watch(slot, span);
    return null;
  }

  #watch(lease: Lease, span: Span): void {
    span.watch(lease);
    const onLost = () => {
      const { reason } = lease.signal;
      this.#lost = `'${lease.key}' (${reason instanceof LeaseLostError ? reason.reason : reason})`;
      this.#stopFor('lost');
    };
    if (lease.signal.aborted) onLost();
    else lease.signal.addEventListener('abort', onLost, { once: true });
  }

  /**
   * The previous holder of the lease may have recovered and ended this session. No other worker can
   * do that while this one holds the lease, so this read stays true.
   */
  async #readAgain(): Promise<null> {
    const { signal } = this.#stop;
    const { id } = this.#record;
    const read = () => this.#rt.store.intents.read([id], CALL);
    const [stored = null] = await retryStore(this.#rt, signal, read);
    this.refresh(stored);
    signal.throwIfAborted();
    return null;
  }

  /** Writes this worker's name to a session of a dead worker. Null: the session is to run here. */
  async #claimRecovered(): Promise<RunOutcome | null> {
    const { events, instanceId } = this.#rt;
    const { id, session: found } = this.#record;
    const { worker: from, tenant } = found;
    while (this.#record.isOpen) {
      const { state, worker, losses: before, reason } = this.#record.session;
      const losses = (before ?? 0) + (worker === null ? 0 : 1);
      const change = losses > 0 ? { worker: instanceId, losses } : { worker: instanceId };
      if (!(await this.#write(state, change, this.#stop.signal))) continue;
      this.#isClaimed = true;
      events.emit('session.recovered', { session: id, tenant, from });
      if (state === 'STOPPING') return ended(reason ?? 'R_STOPPED', this.#record.session.detail);
      if (this.#hasTriesLeft(losses)) return null;
      return ended('R_WORKER_LOST', { why: `${losses} workers died while they ran it` });
    }
    return { kind: 'gone', isPipelineGone: true };
  }

  /** Whether the session may be started again after so many lost workers. */
  #hasTriesLeft(losses: number): boolean {
    const { tries } = this.#pipeline;
    if (tries === null) return losses <= MAX_LOSSES;
    return losses + (this.#record.session.failures ?? 0) < tries;
  }

  /** Runs the pipeline, and again after a failure if the session may be tried again. */
  async #runPipeline(onStarted: () => void, span: Span): Promise<RunOutcome> {
    const { clock, random } = this.#rt;
    const pauses = backoff(RETRY_PAUSES, random);
    for (;;) {
      const tried = await this.#tryPipeline(onStarted, span);
      const { tries } = this.#pipeline;
      const { losses = 0, failures: before = 0 } = this.#record.session;
      const failures = before + 1;
      const mayRetry =
        tried.isFailure && tries !== null && losses + failures < tries && tried.cause === null;
      if (!mayRetry) {
        this.#enter('releasing');
        return this.#outcomeOf(tried);
      }
      this.#enter('pausing');
      this.#uncounted = failures;
      await this.#countFailure(this.#stop.signal);
      this.#stopIfRecordSaysSo();
      this.#stop.signal.throwIfAborted();
      const pauseMs = pauses.nextMs();
      this.#reportRetry(tried, losses + failures + 1, pauseMs);
      await clock.sleep(pauseMs, this.#stop.signal);
    }
  }

  /** The store counts a failure before the next try, so that no crash makes one more. */
  async #countFailure(signal: AbortSignal): Promise<void> {
    if (this.#uncounted === null) return;
    const change = { failures: this.#uncounted };
    const isWritten = () => this.#write(this.#record.session.state, change, signal);
    while (this.#record.isMine && !(await isWritten()));
    this.#uncounted = null;
  }

  #reportRetry({ end, isTimeUp }: Tried, attempt: number, inMs: number): void {
    const { id: session, tenant } = this.#record.session;
    const why = isTimeUp ? TIME_LIMIT_OVER : (end.detail.error ?? null);
    this.#rt.events.emit('pipeline.retried', { session, tenant, attempt, why, inMs });
  }

  async #tryPipeline(onStarted: () => void, span: Span): Promise<Tried> {
    const { clock, events } = this.#rt;
    const { session } = this.#record;
    const { fence, slot } = this.#leases;
    this.#stop.signal.throwIfAborted();
    this.#leases.assertHeld();
    const progress = new ProgressWriter(clock, (value) => this.#writeProgress(value));
    const limit = new AbortController();
    const signal = AbortSignal.any([this.#stop.signal, limit.signal]);
    const running = this.#pipeline.start(session, this.#hold(progress, signal));
    this.#running = running;
    this.#enter('running');
    onStarted();
    const timer = this.#limitTime(limit);
    const facts = { session: session.id, tenant: session.tenant, slot: slot?.key ?? null };
    span.set({ 'holdfast.fence': fence, 'holdfast.slot': slot?.key ?? '' });
    events.emit('pipeline.started', { ...facts, fence });
    const over = new AbortController();
    const announcing = this.#announce(running, over.signal).catch(() => {});
    const end = await this.#endOf(running, signal);
    over.abort(new Error('the pipeline has ended'));
    timer?.cancel();
    progress.close();
    const { how, detail, isGone } = end;
    const isTimeUp = limit.signal.aborted;
    // The supervisor knew of the deadline before this process did, which may have been suspended.
    if (how === 'stopped' && !isTimeUp) this.#stopFor('lost');
    // What stops the run from here on comes too late to change how the pipeline ended.
    const cause = this.#cause;
    const { tookMs, error: why = null } = detail;
    span.set({ 'holdfast.outcome': how });
    if (how === 'failed') span.fail(why ?? 'the pipeline failed');
    events.emit('pipeline.ended', { ...facts, how, why, isGone, tookMs });
    await announcing;
    // A pipeline that may still act is not started a second time.
    return { end, isTimeUp, cause, isFailure: isGone && (how === 'failed' || isTimeUp) };
  }

  #limitTime(limit: AbortController): Timer | null {
    const { timeLimitMs } = this.#pipeline;
    if (timeLimitMs === null) return null;
    return this.#rt.clock.after(timeLimitMs, () => limit.abort(new Error(TIME_LIMIT_OVER)));
  }

  #hold(progress: ProgressWriter, signal: AbortSignal): PipelineHold {
    const { losses = 0, failures = 0 } = this.#record.session;
    // Those of now: later there may be none left, and no lease would guard nothing.
    const { all } = this.#leases;
    return {
      signal,
      attempt: losses + failures + 1,
      fence: this.#leases.fence,
      slot: this.#leases.slot?.name ?? null,
      assertHeld: () => {
        signal.throwIfAborted();
        this.#leases.assertHeld();
      },
      guard: (transaction) => all.guard(transaction),
      progress: (value) => progress.report(value),
      deadline: () => this.#leases.deadline,
      confirm: () => this.#leases.confirm(),
    };
  }

  /**
   * Writes `RUNNING`, the slot and the process group. The command begins when the store has them.
   * `over`: the pipeline has ended, and nothing is left to begin.
   */
  async #announce(running: Running, over: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([this.#abandoned.signal, over]);
    const group = await running.started;
    // A command that could not be started reports that in the same turn, and has never run.
    await new Promise<void>((resolve) => this.#rt.clock.soon(resolve));
    const slot = this.#leases.slot?.key ?? null;
    const change = group === null ? { slot } : { slot, group };
    while (this.#state === 'running' && this.#record.isMine) {
      const { state } = this.#record.session;
      if (await this.#write(state === 'STARTING' ? 'RUNNING' : state, change, signal)) {
        running.begin();
        return;
      }
      this.#stopIfRecordSaysSo();
    }
  }

  /** False: the store does not take progress now. */
  async #writeProgress(progress: unknown): Promise<boolean> {
    const isRunning = () => this.#record.isMine && this.#record.session.state === 'RUNNING';
    const isWritten = await this.#record.write('RUNNING', { progress }, isRunning);
    this.#stopIfRecordSaysSo();
    return isWritten;
  }

  /** Tells the pipeline to end when `signal` fires. Resolves when nothing of it is left. */
  async #endOf(running: Running, signal: AbortSignal): Promise<PipelineEnd> {
    const { clock, events } = this.#rt;
    const { id, session } = this.#record;
    const over = new AbortController();
    const onStop = () => {
      running.stop();
      const stoppedAtMs = clock.monotonicMs();
      const stuck = clock.after(this.#graceMs, () => {
        const runsForMs = clock.monotonicMs() - stoppedAtMs;
        events.emit('pipeline.stuck', { session: id, tenant: session.tenant, runsForMs });
      });
      over.signal.addEventListener('abort', () => stuck.cancel(), { once: true });
    };
    if (signal.aborted) onStop();
    else signal.addEventListener('abort', onStop, { once: true, signal: over.signal });
    const end = await running.ended;
    over.abort();
    return end;
  }

  /** Null: the pipeline was never started, or is not started again. */
  #outcomeOf(tried: Tried | null): RunOutcome {
    const { detail = {}, isGone = true, how = 'failed' } = tried?.end ?? {};
    const cause = tried === null ? this.#cause : tried.cause;
    if (cause === 'gone' || cause === 'left') return { kind: cause, isPipelineGone: isGone };
    if (cause === 'stopped') return ended('R_STOPPED', detail, isGone);
    if (cause === 'lost')
      return ended('R_LEASE_EXPIRED', { ...detail, why: `lost ${this.#lost}` }, isGone);
    if (tried?.isTimeUp) return ended('R_TIME_LIMIT', { ...detail, why: TIME_LIMIT_OVER }, isGone);
    return ended(how === 'completed' ? 'R_PIPELINE_ENDED' : 'R_PIPELINE_FAILED', detail, isGone);
  }

  /** Something threw while no pipeline ran. */
  #outcomeOfError(error: unknown): RunOutcome {
    // A stopped run throws the reason of its signal.
    if (this.#cause !== null) return this.#outcomeOf(null);
    if (error instanceof ClosedError) return { kind: 'left', isPipelineGone: true };
    return ended('R_PIPELINE_FAILED', { error: String(error) });
  }

  #release({ isPipelineGone }: RunOutcome): Promise<void> {
    return isPipelineGone ? this.#leases.release() : this.#leases.abandon();
  }

  /**
   * The store could not be told how the run ended. If it says `STOPPING`, the worker that recovers
   * the session only ends it, and may do so at once. If it still says `RUNNING`, that worker would
   * start the pipeline again: the leases are left to expire, so that a write that is still under
   * way arrives first.
   */
  #releaseUntold(outcome: RunOutcome): Promise<void> {
    const isStopping = this.#record.session.state === 'STOPPING';
    if (isStopping || !outcome.isPipelineGone) return this.#release(outcome);
    return this.#leases.expire();
  }

  async #endSession(outcome: Ended): Promise<void> {
    const { reason, outcome: result, detail } = outcome;
    const change = { reason, outcome: result, detail: { ...detail } };
    // If this worker dies here, the worker that recovers the session must not run it again.
    if (this.#running !== null) await this.#advance('STOPPING', change);
    await this.#release(outcome);
    await this.#advance('ENDED', change);
  }

  async #leaveSession(outcome: RunOutcome): Promise<void> {
    if (outcome.kind === 'left') await this.#countFailure(this.#abandoned.signal);
    await this.#release(outcome);
    if (outcome.kind === 'left') await this.#removeWorker();
  }

  /** Writes what became of the session, unless the session belongs to another worker by now. */
  async #advance(state: SessionState, change: Partial<SessionStatus>): Promise<void> {
    const { instanceId: worker } = this.#rt;
    while (this.#mayWrite()) {
      // A session that was never this worker's, and that another writer has changed, is left alone.
      if ((await this.#write(state, { ...change, worker })) || !this.#isClaimed) return;
    }
  }

  #mayWrite(): boolean {
    return this.#isClaimed ? this.#record.isMine : this.#record.isOpen;
  }

  /** Removes this worker's name, so that other workers need not wait for its leases to expire. */
  async #removeWorker(): Promise<void> {
    const { signals } = this.#rt.store;
    while (this.#record.isMine) {
      const { state } = this.#record.session;
      if (!(await this.#write(state, { worker: null, slot: null }))) continue;
      // The store sends a hint only when the state changes.
      await signals.publish(SESSION_CHANGES_TOPIC, this.#record.id).catch(() => {});
      return;
    }
  }

  #write(
    state: SessionState,
    change: Partial<SessionStatus>,
    signal = this.#abandoned.signal,
  ): Promise<boolean> {
    const mayStill = () => this.#mayWrite();
    return retryStore(this.#rt, signal, () => this.#record.write(state, change, mayStill));
  }

  #stopIfRecordSaysSo(): void {
    if (!this.#isClaimed) return;
    if (!this.#record.isMine) this.#stopFor('gone');
    else if (this.#record.session.state === 'STOPPING') this.#stopFor('stopped');
  }

  /** The first cause counts. */
  #stopFor(cause: Cause): void {
    if (this.#cause !== null) return;
    this.#cause = cause;
    this.#stop.abort(new Error(STOP_MESSAGES[cause]));
  }

  #enter(state: State): void {
    assert(FROM[state].includes(this.#state), `a ${this.#state} run does not become ${state}`);
    this.#state = state;
  }
}
