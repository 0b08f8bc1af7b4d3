/**
 * One session in the hands of this worker, from the moment it is claimed until nothing of it is held here any more.
 *
 * **Taking.** In: its start was taken from the stream, and the store says that it is this worker's; or it was nobody's any more. Takes its leases
 * (`taking.ts`). A store that does not answer is asked again, for as long as it takes. Out: all of them are had → running; one is not to
 * be had, or it is to stop → letting go.
 *
 * **Running.** In: as above; the pipeline was started, and the store is told. Out: it ends by itself, nobody needs the session any
 * more, a lease is lost, the session is another worker's or nobody's, this worker stops → letting go.
 *
 * **Letting go.** In: as above; the pipeline is told to end. Waits until nothing of it is left, however long that takes: what may still
 * act is never handed over. Then the store is told that it is over and why (`STOPPING`), the leases are released, the last taken first, and it is
 * `ENDED`. So who reads that finds everything free; and who finds it before that, because we died here, knows what to say of it.
 *
 * A session that is only left, because this worker stops, keeps its state: its leases are released, then the worker's name is taken off
 * it, and others go on.
 */
import type { Clock } from '../core/clock.ts';
import { ClosedError, LeaseLostError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import type { Random } from '../core/random.ts';
import { retryStore } from '../core/retry.ts';
import { type Span, type Tracing, untraced } from '../core/tracing.ts';
import type { SessionStatus } from '../intents/intent-session.ts';
import { Lease } from '../lease/lease.ts';
import type { Leases } from '../lease/leases.ts';
import type { AcquireOptions } from '../lease/options.ts';
import type { Pool } from '../lease/pool/pool.ts';
import {
  SESSION_CHANGES_TOPIC,
  type SessionState,
  type StoredSession,
} from '../store/port/intent-store.ts';
import type { Store } from '../store/port/store.ts';
import type { Pipeline, PipelineEnd, PipelineHold, Running } from './pipelines/pipeline.ts';
import { Progress } from './pipelines/progress.ts';
import { type Ended, ended, type RunOutcome } from './run-outcome.ts';
import { takeOwn, takeSlot } from './session-leases.ts';
import type { SessionRecord } from './session-record.ts';
import { SessionTenures } from './session-tenures.ts';

export interface RunParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly instanceId: string;
  readonly leases: Pick<Leases, 'acquire'>;
  readonly tracing?: Tracing;
  /** How its leases are taken. */
  readonly options: AcquireOptions;
  readonly graceMs: number;
  /** Fires when the worker is over: nothing is tried again any more. */
  readonly over: AbortSignal;
  pipelineFor(kind: 'live' | 'vod'): Pipeline;
  poolFor(resource: string): { readonly pool: Pool; readonly waitMs: number };
}

/** Why a run is told to end: nobody needs its session; a lease is lost; the session is not this worker's; the worker stops. */
type Cause = 'stopped' | 'lost' | 'gone' | 'left';

const TOLD: Readonly<Record<Cause, string>> = {
  stopped: 'nobody needs this session any more',
  lost: 'a lease of this session is lost',
  gone: 'this session is not in the hands of this worker any more',
  left: 'this worker stops, and others go on with this session',
};
const CALL = { timeoutMs: 2_000 };
/** How often a session is begun again after its worker was lost: it may be what ends them. */
const MOST_LOSSES = 3;

export class SessionRun {
  readonly #parts: RunParts;
  readonly #file: SessionRecord;
  readonly #isRecovery: boolean;
  readonly #tenures: SessionTenures;
  readonly #stop = new AbortController();
  #cause: Cause | null = null;
  /** Which lease, and why. */
  #lost = 'its leases: its time was up';
  /** The name of its slot, and the key of that. */
  #slot: { readonly name: string; readonly key: string } | null = null;
  #running: Running | null = null;
  #hasEnded = false;
  /** The store says that the session is this worker's, or was told so. */
  #isClaimed: boolean;

  constructor(parts: RunParts, file: SessionRecord, { isRecovery }: { isRecovery: boolean }) {
    this.#parts = parts;
    this.#file = file;
    this.#isRecovery = isRecovery;
    this.#isClaimed = !isRecovery;
    this.#tenures = new SessionTenures();
  }

  get id(): string {
    return this.#file.id;
  }

  /** What the store shows of its session now. */
  see(stored: StoredSession | null): void {
    this.#file.see(stored);
    this.#heed();
  }

  /** A lease of its may have been renewed. */
  extend(): void {
    if (this.#cause !== 'lost') this.#running?.extend();
  }

  /** This worker stops: others are to go on with it. */
  leave(): void {
    this.#end('left');
  }

  /** The worker waits no longer. Leases of a pipeline that still runs are never handed over: they are not renewed any more, and expire. */
  async abandon(): Promise<void> {
    if (this.#running !== null && !this.#hasEnded) await this.#tenures.abandon(this.#running.ended);
  }

  /** Until nothing of it is held here any more. Never rejects. `onRunning` is called as soon as its pipeline was started. */
  async go(onRunning: () => void): Promise<void> {
    const verdict = await this.#traced('holdfast.session', (span) => this.#bring(onRunning, span));
    try {
      await this.#letGo(verdict);
    } catch {
      // The store could not be told: the worker that finds the session goes on from what the store knows. It finds the leases free.
      await this.#release(verdict);
    }
  }

  async #bring(onRunning: () => void, span: Span): Promise<RunOutcome> {
    try {
      this.#heed();
      const run = (inner: Span) => this.#run(onRunning, inner);
      return (await this.#take(span)) ?? (await this.#traced('holdfast.pipeline', run));
    } catch (error) {
      // Whoever waits in there is called back by an error, too. Nothing runs.
      if (this.#cause !== null) return this.#verdictOf(this.#cause, null);
      if (error instanceof ClosedError) return { kind: 'left', isGone: true };
      return ended('R_PIPELINE_FAILED', { error: String(error) });
    }
  }

  #traced<T>(name: string, work: (span: Span) => Promise<T>): T | Promise<T> {
    const { tracing = untraced } = this.#parts;
    const { id, kind } = this.#file.session;
    const attributes = { 'holdfast.session': id, 'holdfast.kind': kind };
    const isWhole = name === 'holdfast.session';
    return tracing.run({ name, attributes, ...(isWhole && { isRoot: true }) }, work);
  }

  /** Null: it has all it needs. */
  async #take(span: Span): Promise<RunOutcome | null> {
    const { signal } = this.#stop;
    const wish = { session: this.#file.session, isRecovery: this.#isRecovery, signal };
    const own = await takeOwn(this.#parts, wish);
    if (!(own instanceof Lease)) return own;
    this.#keep(own, span);
    const over = this.#isRecovery ? await this.#goOn() : await this.#lookAgain();
    if (over !== null) return over;
    const { resource } = this.#parts.pipelineFor(wish.session.kind);
    if (resource === null) return null;
    const slot = await takeSlot(this.#parts, resource, wish);
    if ('kind' in slot) return slot;
    this.#keep(slot.lease, span);
    this.#slot = { name: slot.name, key: slot.lease.key };
    return null;
  }

  /** Whoever had the lease just before may have recovered and ended this session: nobody can any more, so what is read now holds. */
  async #lookAgain(): Promise<null> {
    const { signal } = this.#stop;
    const read = () => this.#parts.store.intents.read([this.id], CALL);
    const [stored = null] = await retryStore(this.#parts, signal, read);
    this.see(stored);
    signal.throwIfAborted();
    return null;
  }

  #keep(lease: Lease, span: Span): void {
    this.#tenures.add(lease);
    span.watch(lease);
    const onLost = () => {
      const { reason } = lease.signal;
      this.#lost = `'${lease.key}' (${reason instanceof LeaseLostError ? reason.reason : reason})`;
      this.#end('lost');
    };
    if (lease.signal.aborted) onLost();
    else lease.signal.addEventListener('abort', onLost, { once: true });
  }

  /** Another worker had it, and is no more. Null: it is to run again, here. */
  async #goOn(): Promise<RunOutcome | null> {
    const { events, instanceId } = this.#parts;
    const { worker: from, tenant } = this.#file.session;
    while (this.#file.isOpen) {
      const { state, worker, losses: before = 0, reason } = this.#file.session;
      const losses = worker === null ? before : before + 1;
      const change = { worker: instanceId, ...(losses > 0 && { losses }) };
      if (!(await this.#write(state, change, this.#stop.signal))) continue;
      this.#isClaimed = true;
      events.emit('session.recovered', { session: this.id, tenant, from });
      if (state === 'STOPPING') return ended(reason ?? 'R_STOPPED', this.#file.session.detail);
      if (losses <= MOST_LOSSES) return null;
      return ended('R_WORKER_LOST', { why: `${losses} workers were lost with it` });
    }
    return { kind: 'gone', isGone: true };
  }

  async #run(onRunning: () => void, span: Span): Promise<RunOutcome> {
    const { events } = this.#parts;
    const { session } = this.#file;
    this.#stop.signal.throwIfAborted();
    this.#tenures.assertHeld();
    const progress = new Progress(this.#parts, (value) => this.#tell(value));
    const running = this.#parts.pipelineFor(session.kind).start(session, this.#hold(progress));
    this.#running = running;
    onRunning();
    const facts = { session: this.id, tenant: session.tenant, slot: this.#slot?.key ?? null };
    span.set({ 'holdfast.fence': this.#fence, 'holdfast.slot': this.#slot?.key ?? '' });
    events.emit('pipeline.started', { ...facts, fence: this.#fence });
    const announcing = this.#announce(running).catch(() => {});
    const end = await this.#endOf(running);
    this.#hasEnded = true;
    progress.close();
    const { how, detail, isGone } = end;
    // Whoever supervises it knows before this process does, if that has stood still.
    if (how === 'stopped') this.#end('lost');
    const { tookMs, error: why = null } = detail;
    span.set({ 'holdfast.outcome': how });
    if (how === 'failed') span.fail(why ?? 'it failed');
    events.emit('pipeline.ended', { ...facts, how, why, isGone, tookMs });
    await announcing;
    return this.#verdictOf(this.#cause, end);
  }

  #hold(progress: Progress): PipelineHold {
    const { signal } = this.#stop;
    return {
      signal,
      fence: this.#fence,
      slot: this.#slot?.name ?? null,
      assertHeld: () => {
        signal.throwIfAborted();
        this.#tenures.assertHeld();
      },
      progress: (value) => progress.report(value),
      deadline: () => this.#tenures.deadline,
      confirm: () => this.#tenures.confirm(),
    };
  }

  get #fence(): number {
    return this.#tenures.last?.fence ?? 0;
  }

  /** Says that it runs, in which slot, and which processes that are. These begin when the store knows them. */
  async #announce(running: Running): Promise<void> {
    const group = await running.started;
    // What could not even be started says so at the same moment, and has never run.
    await new Promise<void>((resolve) => this.#parts.clock.soon(resolve));
    const change = { slot: this.#slot?.key ?? null, ...(group !== null && { group }) };
    while (!this.#hasEnded && this.#file.isMine) {
      const { state } = this.#file.session;
      if (await this.#write(state === 'STARTING' ? 'RUNNING' : state, change)) {
        running.begin();
        return;
      }
      this.#heed();
    }
  }

  /** Says how far it is, and whether that could be said now. */
  async #tell(progress: unknown): Promise<boolean> {
    const isRunning = () => this.#file.isMine && this.#file.session.state === 'RUNNING';
    const isTold = await this.#file.write('RUNNING', { progress }, isRunning);
    this.#heed();
    return isTold;
  }

  /** When nothing of it is left. */
  async #endOf(running: Running): Promise<PipelineEnd> {
    const { clock, events, graceMs } = this.#parts;
    const { signal } = this.#stop;
    const { tenant } = this.#file.session;
    const over = new AbortController();
    const onStop = () => {
      running.stop();
      const toldMs = clock.monotonicMs();
      const stuck = clock.after(graceMs, () => {
        const runsForMs = clock.monotonicMs() - toldMs;
        events.emit('pipeline.stuck', { session: this.id, tenant, runsForMs });
      });
      over.signal.addEventListener('abort', () => stuck.cancel(), { once: true });
    };
    if (signal.aborted) onStop();
    else signal.addEventListener('abort', onStop, { once: true, signal: over.signal });
    const end = await running.ended;
    over.abort();
    return end;
  }

  #verdictOf(cause: Cause | null, end: PipelineEnd | null): RunOutcome {
    const { detail = {}, isGone = true, how = 'failed' } = end ?? {};
    if (cause === 'gone' || cause === 'left') return { kind: cause, isGone };
    if (cause === 'stopped') return ended('R_STOPPED', detail, isGone);
    if (cause === 'lost')
      return ended('R_LEASE_EXPIRED', { ...detail, why: `lost ${this.#lost}` }, isGone);
    return ended(how === 'completed' ? 'R_PIPELINE_ENDED' : 'R_PIPELINE_FAILED', detail, isGone);
  }

  async #letGo(verdict: RunOutcome): Promise<void> {
    if (verdict.kind === 'ended') return this.#endSession(verdict);
    await this.#release(verdict);
    if (verdict.kind === 'left') await this.#handOn();
  }

  #release({ isGone }: RunOutcome): Promise<void> {
    return isGone ? this.#tenures.release() : this.#tenures.abandon();
  }

  async #endSession(verdict: Ended): Promise<void> {
    const { reason, outcome, detail } = verdict;
    const change = { reason, outcome, detail: { ...detail } };
    // Whoever goes on with it, should we die here, must not run it once more.
    if (this.#running !== null) await this.#settle('STOPPING', change);
    await this.#release(verdict);
    await this.#settle('ENDED', change);
  }

  /** Tells the store what came of the session, unless that is somebody else's affair by now. */
  async #settle(state: SessionState, change: Partial<SessionStatus>): Promise<void> {
    const { instanceId: worker } = this.#parts;
    while (this.#mayTell()) {
      // One that was never this worker's, and that somebody has changed, is in better hands.
      if ((await this.#write(state, { ...change, worker })) || !this.#isClaimed) return;
    }
  }

  /** Whether the session is this worker's to tell of. */
  #mayTell(): boolean {
    return this.#isClaimed ? this.#file.isMine : this.#file.isOpen;
  }

  /** Takes this worker's name off it, so that others need not find out by themselves that it is nobody's. */
  async #handOn(): Promise<void> {
    while (this.#file.isMine) {
      const { state } = this.#file.session;
      if (!(await this.#write(state, { worker: null, slot: null }))) continue;
      // Its state is the same, so the store says nothing.
      await this.#parts.store.signals.publish(SESSION_CHANGES_TOPIC, this.id).catch(() => {});
      return;
    }
  }

  #write(
    state: SessionState,
    change: Partial<SessionStatus>,
    signal = this.#parts.over,
  ): Promise<boolean> {
    const mayStill = () => this.#mayTell();
    return retryStore(this.#parts, signal, () => this.#file.write(state, change, mayStill));
  }

  /** Does what the session's state asks for. */
  #heed(): void {
    if (!this.#isClaimed) return;
    if (!this.#file.isMine) this.#end('gone');
    else if (this.#file.session.state === 'STOPPING') this.#end('stopped');
  }

  /** The first cause counts. */
  #end(cause: Cause): void {
    if (this.#cause !== null) return;
    this.#cause = cause;
    this.#stop.abort(new Error(TOLD[cause]));
  }
}
