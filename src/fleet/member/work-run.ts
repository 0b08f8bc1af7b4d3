import type { Deadline } from '../../core/validity.ts';
import type { GuardableTransaction } from '../../lease/guard.ts';
import type { Lease } from '../../lease/lease.ts';

/** What work on a target is given. */
export interface WorkContext {
  /** Fires when the work has to stop: its lease is lost, or its target moves. Pass it on. */
  readonly signal: AbortSignal;
  /** Proof of ownership for everything that the work writes. */
  readonly fence: number;
  isHeld(): boolean;
  assertHeld(): void;
  /** PostgreSQL: ties a transaction of yours to the lease of the target. See `Lease.guard`. */
  guard(transaction: GuardableTransaction): Promise<void>;
}

/** One poll, or one task, as its handler sees it. */
export class WorkRun implements WorkContext {
  readonly startMs: number;
  readonly #lease: Lease;
  /** Made on first use: many handlers never read the signal, and there are many runs. */
  #controller: AbortController | null = null;
  #stopped: { readonly reason: unknown } | null = null;
  isStuck = false;
  #isSettled = false;
  #settled: Promise<void> | null = null;
  #onSettled: (() => void) | null = null;

  constructor(lease: Lease, startMs: number) {
    this.#lease = lease;
    this.startMs = startMs;
  }

  /** Resolves when the work has stopped. Made on first use, like the signal. */
  get settled(): Promise<void> {
    this.#settled ??= this.#isSettled
      ? Promise.resolve()
      : new Promise((resolve) => {
          this.#onSettled = resolve;
        });
    return this.#settled;
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#stopped !== null) this.#controller.abort(this.#stopped.reason);
    }
    return this.#controller.signal;
  }

  get fence(): number {
    return this.#lease.fence;
  }

  /** Until when the lease is valid: the facts that a supervisor on this host needs. */
  get deadline(): Deadline {
    return this.#lease.deadline;
  }

  // Not methods: handlers destructure the context. Not fields: most handlers use one or two.
  get isHeld(): () => boolean {
    return () => this.#stopped === null && this.#lease.isHeld();
  }

  get assertHeld(): () => void {
    return () => this.#lease.assertHeld();
  }

  get guard(): (transaction: GuardableTransaction) => Promise<void> {
    return (transaction) => this.#lease.guard(transaction);
  }

  /** Why the work was told to stop; undefined while it may continue. */
  get stopReason(): unknown {
    return this.#stopped?.reason;
  }

  /** Tells the work to stop. False if it was told before. */
  stop(reason: unknown): boolean {
    if (this.#stopped !== null) return false;
    this.#stopped = { reason };
    this.#controller?.abort(reason);
    return true;
  }

  settle(): void {
    this.#isSettled = true;
    this.#onSettled?.();
  }
}
