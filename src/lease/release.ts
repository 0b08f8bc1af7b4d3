/**
 * The end of a tenure by its holder's will: its work settles, the store is told, then it is dropped here. In that order:
 * what may still be worked on is never handed over.
 */
import type { Clock } from '../core/clock.ts';
import { durationMs } from '../core/duration.ts';
import type { LossReason } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { checkHolder } from '../core/ids.ts';
import type {
  LettingGo,
  ReleaseOptions,
  ReleaseResult,
  TransferOptions,
  TransferResult,
} from './lease.ts';
import type { LeaseRequests } from './lease-requests.ts';
import type { OrphanedGrants } from './orphaned-grants.ts';
import type { Renewer } from './renewer.ts';
import type { Tenure } from './tenure.ts';
import type { WakeWatch } from './wake-watch.ts';

/** Longest wait for work to settle where the caller sets none. */
const LONGEST_SETTLE_MS = 24 * 3_600_000;

export interface LettingGoParts {
  readonly clock: Clock;
  readonly events: Emitter;
  readonly dispatch: LeaseRequests;
  readonly keeper: Renewer;
  readonly giveBack: OrphanedGrants;
  readonly wakes: WakeWatch;
  /** Whether the same holder has the key anew, or is asking for it. */
  isWanted(of: { storeKey: string; holder: string }): boolean;
}

type Kept = LossReason | 'unsettled' | 'released';

export class Releaser implements LettingGo {
  readonly #parts: LettingGoParts;
  /** Tenures whose work has not settled yet, with what ends the wait for it. */
  readonly #waits = new Map<Tenure, () => void>();

  constructor(parts: LettingGoParts) {
    this.#parts = parts;
  }

  async release(tenure: Tenure, options: ReleaseOptions): Promise<ReleaseResult> {
    const { dispatch, events } = this.#parts;
    const settling = this.#settle(tenure, options);
    const kept = settling instanceof Promise ? await settling : settling;
    if (kept !== null) return { released: false, reason: kept };
    const reply = await dispatch.release(tenure.terms, tenure.tenancy).catch(asFailure);
    tenure.settle();
    if (reply.kind !== 'released') {
      return { released: false, reason: this.#refused(tenure, reply) };
    }
    if (reply.woke) this.#parts.wakes.watch(tenure.storeKey);
    tenure.endRelease();
    if (events.hasListener('lease.released')) {
      events.emit('lease.released', { ...tenure.facts, heldForMs: tenure.heldForMs });
    }
    return { released: true };
  }

  async transfer(
    tenure: Tenure,
    successor: string,
    options: TransferOptions,
  ): Promise<TransferResult> {
    checkHolder(successor, 'successor');
    const { dispatch, events } = this.#parts;
    const { terms } = tenure;
    const windowMs = durationMs(options.window ?? terms.leaseClass.claimWindowMs, 'window');
    const kept = await this.#settle(tenure, options);
    if (kept !== null) return { transferred: false, reason: kept };
    const times = { windowMs: Math.max(1, Math.floor(windowMs)), deadlineMs: tenure.deadlineMs };
    const reply = await dispatch
      .transfer(terms, { ...tenure.tenancy, successor }, times)
      .catch(asFailure);
    tenure.settle();
    if (reply.kind !== 'transferred') {
      return { transferred: false, reason: this.#refused(tenure, reply) };
    }
    tenure.endRelease();
    const { heldForMs } = tenure;
    events.emit('lease.transferred', { ...tenure.facts, successor, heldForMs });
    return { transferred: true, fence: reply.fence };
  }

  concede(tenure: Tenure, successor: string): void {
    if (!tenure.beginRelease()) return;
    this.#parts.keeper.drop(tenure);
    tenure.handIn();
    tenure.settle();
    tenure.endRelease();
    const { heldForMs } = tenure;
    this.#parts.events.emit('lease.transferred', { ...tenure.facts, successor, heldForMs });
  }

  renew(tenure: Tenure): Promise<boolean> {
    return this.#parts.keeper.renew(tenure);
  }

  giveUp(tenure: Tenure): void {
    this.#waits.get(tenure)?.();
  }

  /** Waits for no work any more. */
  close(): void {
    for (const giveUp of [...this.#waits.values()]) giveUp();
  }

  /** Lets the work settle, then hands the tenure in: at once where there is nothing to wait for, as is usual. */
  #settle(tenure: Tenure, options: ReleaseOptions): Kept | null | Promise<Kept | null> {
    const { settled, within } = options;
    const mostMs = within === undefined ? LONGEST_SETTLE_MS : durationMs(within, 'within');
    const letsGo = tenure.beginRelease();
    if (settled === undefined) return this.#handIn(tenure);
    // Its work is known from here on: that it is lost meanwhile does not settle it.
    tenure.untilReleased = true;
    return this.#isSettled(tenure, settled, mostMs).then((isDone) => {
      if (isDone) return this.#handIn(tenure);
      const settle = () => tenure.settle();
      settled.then(settle, settle);
      if (letsGo) this.#abandon(tenure, 'its work did not settle');
      return 'unsettled';
    });
  }

  /** Whether the work is done, well or badly, before the time is over or somebody gives up on it. */
  #isSettled(tenure: Tenure, settled: Promise<unknown>, mostMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isDone: boolean) => {
        timer.cancel();
        this.#waits.delete(tenure);
        resolve(isDone);
      };
      const timer = this.#parts.clock.after(mostMs, () => end(false));
      this.#waits.set(tenure, () => end(false));
      settled.then(
        () => end(true),
        () => end(true),
      );
    });
  }

  /** The work has settled. Null: tell the store. Else why there is nothing to tell it. */
  #handIn(tenure: Tenure): Kept | null {
    if (tenure.state !== 'releasing') {
      tenure.settle();
      // The deadline passed here, but the store may have heard a renewal since, which nobody needs any more.
      if (tenure.lossReason === 'expired') this.#doubt(tenure);
      return tenure.lossReason ?? 'released';
    }
    // From here on no renewal may be sent: one that came after the release would find the key gone and put it back.
    this.#parts.keeper.drop(tenure);
    tenure.handIn();
    return null;
  }

  #refused(
    tenure: Tenure,
    reply: { kind: 'not-held'; holder: string | null } | { kind: 'failed'; error: Error },
  ): LossReason | 'unknown' {
    if (reply.kind === 'failed') {
      this.#doubt(tenure);
      this.#abandon(tenure, reply.error.message);
      return 'unknown';
    }
    // Our own name with another fence: an acquire of ours ran late. What it took is given back by the fence it shows.
    if (reply.holder === tenure.holder) this.#doubt(tenure);
    tenure.lose(reply.holder === null ? 'expired' : 'taken_over');
    return tenure.lossReason ?? 'taken_over';
  }

  /** The store may still hold the key in this tenure's name. */
  #doubt(tenure: Tenure): void {
    const { giveBack, isWanted } = this.#parts;
    giveBack.watch(tenure.terms, tenure, () => isWanted(tenure));
  }

  /** Ends the tenure here, and leaves the key to run out. */
  #abandon(tenure: Tenure, why: string): void {
    this.#parts.keeper.drop(tenure);
    tenure.endRelease();
    const { heldForMs } = tenure;
    this.#parts.events.emit('lease.abandoned', { ...tenure.facts, heldForMs, why });
  }
}

function asFailure(error: Error): { kind: 'failed'; error: Error } {
  return { kind: 'failed', error };
}
