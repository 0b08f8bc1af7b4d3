/**
 * Ends tenures because their holder wants it. First the work stops, then the store is told, then
 * the tenure ends here. In that order: a key whose work may still run is never handed over.
 */
import type { Clock, Timer } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError, type LossReason } from '../core/errors.ts';
import { checkHolder } from '../core/ids.ts';
import type { ReleaseReply } from '../store/port/lease-store.ts';
import type { Runtime } from '../store/runtime.ts';
import type { LeaseRequestQueue } from './lease-request-queue.ts';
import type { OrphanedGrantQueue } from './orphaned-grant-queue.ts';
import type { Renewer } from './renewer.ts';
import type { Tenure } from './tenure.ts';
import type { LeasePolicy } from './timings.ts';

/** How long a release waits for the work to stop if the caller sets no limit. */
const MAX_WORK_MS = 24 * 3_600_000;

/** When the work of a lease that ends has stopped. */
export interface StopOptions {
  /**
   * Resolves when the work has stopped; until then the lease is kept and renewed. Default: it has
   * stopped.
   */
  settled?: Promise<unknown>;
  /** How long to wait for that. The key of work that has not stopped by then is left to expire. */
  within?: Duration;
}

export interface ReleaseOptions extends StopOptions {
  /**
   * Keeps the key taken for this long after the work has stopped. No holder is granted it until
   * then, not even the same one; it is not renewed, and expires automatically. At most `maxTtl`.
   */
  keepFor?: Duration;
}

export interface TransferOptions extends StopOptions {
  /** How long the successor has to claim; default that of the lease's class. */
  window?: Duration;
}

export type ReleaseResult =
  | { readonly released: true }
  /**
   * `unsettled`: the work did not stop. `unknown`: the store did not answer; the key expires, or is
   * released later.
   */
  | {
      readonly released: false;
      readonly reason: LossReason | 'unsettled' | 'unknown' | 'released';
    };

export type TransferResult =
  | { readonly transferred: true; readonly fence: number }
  | {
      readonly transferred: false;
      readonly reason: LossReason | 'unsettled' | 'unknown' | 'released';
    };

/**
 * Behind the name of the last holder while `keepFor` lasts. No process acquires under that name.
 */
const KEPT = ' (kept)';

/** Why the store was not told. */
type NotSent = LossReason | 'unsettled' | 'released';

export class Releaser {
  readonly #rt: Runtime;
  readonly #clock: Clock;
  readonly #requests: LeaseRequestQueue;
  readonly #renewer: Renewer;
  readonly #orphans: OrphanedGrantQueue;
  /** Per tenure whose work has not stopped yet: the function that ends the wait for it. */
  readonly #waits = new Map<Tenure, () => void>();

  constructor(
    rt: Runtime,
    requests: LeaseRequestQueue,
    renewer: Renewer,
    orphans: OrphanedGrantQueue,
  ) {
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#requests = requests;
    this.#renewer = renewer;
    this.#orphans = orphans;
  }

  async release(tenure: Tenure, options: ReleaseOptions): Promise<ReleaseResult> {
    const keptForMs = keepForMs(options, tenure.policy);
    const handingIn = this.#stopAndHandIn(tenure, options);
    const notSent = handingIn instanceof Promise ? await handingIn : handingIn;
    if (notSent !== null) return { released: false, reason: notSent };
    if (keptForMs > 0) return this.#keep(tenure, keptForMs);
    let reply: ReleaseReply;
    try {
      reply = await this.#requests.release(tenure.policy, tenure.tenancy);
    } catch (error) {
      reply = asFailure(error as Error);
    }
    tenure.endWork();
    if (reply.kind !== 'released') {
      return { released: false, reason: this.#endRefused(tenure, reply) };
    }
    if (!reply.woke) tenure.onFreed?.();
    return this.#endReleased(tenure, 0);
  }

  /**
   * Hands the key to a holder that no process is, for a window of `keptForMs`. A renewal that
   * arrives late finds another holder, so it cannot lengthen the window.
   */
  async #keep(tenure: Tenure, keptForMs: number): Promise<ReleaseResult> {
    const successor = tenure.holder + KEPT;
    const times = { windowMs: keptForMs, deadlineMs: tenure.deadlineMs };
    const reply = await this.#requests
      .transfer(tenure.policy, { ...tenure.tenancy, successor }, times)
      .catch(asFailure);
    tenure.endWork();
    if (reply.kind === 'transferred') {
      this.#requests.watchKept(tenure.storeKey, keptForMs);
      return this.#endReleased(tenure, keptForMs);
    }
    if (reply.kind === 'not-held')
      return { released: false, reason: this.#endRefused(tenure, reply) };
    // The key is not released later, as after a plain release: until it expires, it is kept.
    this.#abandon(tenure, reply.error.message);
    return { released: false, reason: 'unknown' };
  }

  #endReleased(tenure: Tenure, keptForMs: number): ReleaseResult {
    const { events } = this.#rt;
    tenure.hasLeftStore = true;
    tenure.endRelease();
    if (events.hasListener('lease.released')) {
      const { facts, heldForMs } = tenure;
      events.emit('lease.released', { ...facts, heldForMs, keptForMs });
    }
    return { released: true };
  }

  async transfer(
    tenure: Tenure,
    successor: string,
    options: TransferOptions,
  ): Promise<TransferResult> {
    checkHolder(successor, 'successor');
    const { policy } = tenure;
    const windowMs = durationMs(options.window ?? policy.leaseClass.claimWindowMs, 'window');
    const notSent = await this.#stopAndHandIn(tenure, options);
    if (notSent !== null) return { transferred: false, reason: notSent };
    const times = { windowMs: Math.max(1, Math.floor(windowMs)), deadlineMs: tenure.deadlineMs };
    const reply = await this.#requests
      .transfer(policy, { ...tenure.tenancy, successor }, times)
      .catch(asFailure);
    tenure.endWork();
    if (reply.kind !== 'transferred') {
      return { transferred: false, reason: this.#endRefused(tenure, reply) };
    }
    tenure.hasLeftStore = true;
    tenure.endRelease();
    this.#emitTransferred(tenure, successor);
    return { transferred: true, fence: reply.fence };
  }

  /** The store names the successor already, because another request has handed the key over. */
  concede(tenure: Tenure, successor: string): void {
    if (!tenure.beginRelease()) return;
    this.#renewer.remove(tenure);
    tenure.handIn();
    tenure.endWork();
    tenure.hasLeftStore = true;
    tenure.endRelease();
    this.#emitTransferred(tenure, successor);
  }

  /** Stops waiting for the work of a tenure that is being released: its key is left to expire. */
  giveUp(tenure: Tenure): void {
    this.#waits.get(tenure)?.();
  }

  /** Stops waiting for any work. */
  close(): void {
    for (const giveUp of [...this.#waits.values()]) giveUp();
  }

  /**
   * Waits until the work has stopped, then hands the tenure in. Null: the store has to be told.
   * Synchronous where there is no work to wait for, as is usual.
   */
  #stopAndHandIn(tenure: Tenure, options: StopOptions): NotSent | null | Promise<NotSent | null> {
    const { settled, within } = options;
    const limitMs = within === undefined ? MAX_WORK_MS : durationMs(within, 'within');
    const isFirst = tenure.beginRelease();
    if (settled === undefined) return this.#handIn(tenure);
    // The work is known from here on: a loss of the tenure does not end it.
    tenure.untilReleased = true;
    return this.#hasStopped(tenure, settled, limitMs).then((hasStopped) => {
      if (hasStopped) return this.#handIn(tenure);
      const endWork = () => tenure.endWork();
      settled.then(endWork, endWork);
      if (isFirst) this.#abandon(tenure, 'its work did not stop in time');
      return 'unsettled';
    });
  }

  /** Whether the work ends, well or badly, before the time is over or the caller gives up. */
  #hasStopped(tenure: Tenure, settled: Promise<unknown>, limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      let timer: Timer | null = null;
      const end = (hasStopped: boolean) => {
        timer?.cancel();
        this.#waits.delete(tenure);
        resolve(hasStopped);
      };
      this.#waits.set(tenure, () => end(false));
      // A caller that does not wait may be about to close: no timer may be left behind (G24).
      if (limitMs === 0) this.#clock.soon(() => end(false));
      else timer = this.#clock.after(limitMs, () => end(false));
      settled.then(
        () => end(true),
        () => end(true),
      );
    });
  }

  /**
   * The work has stopped. Null: the store has to be told; else the reason why there is nothing to
   * tell.
   */
  #handIn(tenure: Tenure): NotSent | null {
    if (tenure.state !== 'releasing') {
      tenure.endWork();
      // The deadline passed here, but in the store the key may be ours for a while.
      const { lossReason } = tenure;
      if (lossReason === 'expired' || lossReason === 'max_hold') this.#orphans.watch(tenure);
      return tenure.lossReason ?? 'released';
    }
    // No renewal may be sent from here on: after the release it would find the key gone, and
    // restore it.
    this.#renewer.remove(tenure);
    tenure.handIn();
    return null;
  }

  #endRefused(
    tenure: Tenure,
    reply: { kind: 'not-held'; holder: string | null } | { kind: 'failed'; error: Error },
  ): LossReason | 'unknown' {
    if (reply.kind === 'failed') {
      this.#orphans.watch(tenure);
      this.#abandon(tenure, reply.error.message);
      return 'unknown';
    }
    // The same holder with another fence: an acquire of this process ran late, and its grant is
    // orphaned.
    if (reply.holder === tenure.holder) this.#orphans.watch(tenure);
    tenure.hasLeftStore = true;
    tenure.lose(reply.holder === null ? 'expired' : 'taken_over');
    return tenure.lossReason ?? 'taken_over';
  }

  /** Ends the tenure here, and leaves the key to expire. */
  #abandon(tenure: Tenure, why: string): void {
    this.#renewer.remove(tenure);
    tenure.endRelease();
    const { heldForMs } = tenure;
    this.#rt.events.emit('lease.abandoned', { ...tenure.facts, heldForMs, why });
  }

  #emitTransferred(tenure: Tenure, successor: string): void {
    const { heldForMs } = tenure;
    this.#rt.events.emit('lease.transferred', { ...tenure.facts, successor, heldForMs });
  }
}

function keepForMs({ keepFor = 0 }: ReleaseOptions, { maxTtlMs }: LeasePolicy): number {
  const ms = Math.ceil(durationMs(keepFor, 'keepFor'));
  if (ms <= maxTtlMs) return ms;
  const rule =
    `a key is kept for at most ${maxTtlMs} ms, the maxTtl that this Holdfast was opened with: after data loss, ` +
    'the store waits no longer than that. Hold the lease longer before you release it, or open every process of the store with a longer maxTtl';
  throw new ConfigError({ field: 'keepFor', value: keepFor, rule });
}

function asFailure(error: Error): { kind: 'failed'; error: Error } {
  return { kind: 'failed', error };
}
