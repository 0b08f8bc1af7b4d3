import type { Clock, Timer } from '../core/clock.ts';
import { confirmationNow, type Deadline, toleratedJumpMs } from '../core/validity.ts';
import type { WorkflowStore } from '../store/port/workflow-store.ts';
import type { Attempt } from './attempt.ts';

/** The share of a claim that is left when it is extended, and the part of it that clocks may differ by. */
const EXTEND_SHARE = 1 / 3;
const GUARD_SHARE = 1 / 20;
/** How long one request may take. */
const TIMEOUT_MS = 5_000;
/** Stuck handlers that have given up their place. Beyond that a stuck handler keeps it: a process in which so many hang needs a restart. */
const STUCK_MOST = 1_000;

export interface HandsParts {
  readonly workflows: WorkflowStore;
  readonly clock: Clock;
  readonly target: string;
  readonly claimMs: number;
  /** A handler is stuck, and has given up its place; or there are too many such already. */
  onStuck(attempt: Attempt, hasPlace: boolean): void;
  /** One that was stuck has ended. */
  onUnstuck(): void;
}

/**
 * What a processor has in hands: its claims are extended, all by one timer, for as long as it works on them. What is stuck is in nobody's
 * hands: its claim is over, and its place is another's.
 */
export class Claims {
  readonly #parts: HandsParts;
  readonly #held = new Map<Attempt, Promise<unknown>>();
  readonly #stuck = new Set<Attempt>();
  #timer: Timer | null = null;
  #isEmptied = false;

  constructor(parts: HandsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#held.size;
  }

  /** What a request that is sent now brings: it ends here a while before it does in the store. */
  claimNow(): Deadline {
    const { clock, claimMs } = this.#parts;
    const guardMs = this.#guardMs;
    const valid = { validMs: claimMs - guardMs, jumpMs: toleratedJumpMs(guardMs) };
    return { ...confirmationNow(clock), ...valid };
  }

  get #guardMs(): number {
    return this.#parts.claimMs * GUARD_SHARE;
  }

  /** It is held until `done`, or until it is stuck. */
  hold(attempt: Attempt, done: Promise<unknown>): void {
    this.#held.set(attempt, done);
    const drop = () => {
      this.#held.delete(attempt);
      if (this.#stuck.delete(attempt)) this.#parts.onUnstuck();
    };
    done.then(drop, drop);
    attempt.watchForStuck(this.#guardMs, () => this.#leave(attempt));
    this.#extendLater();
  }

  /** One handler that hangs must not keep the others waiting. */
  #leave(attempt: Attempt): void {
    const hasPlace = this.#stuck.size >= STUCK_MOST;
    if (!hasPlace) {
      this.#held.delete(attempt);
      this.#stuck.add(attempt);
    }
    this.#parts.onStuck(attempt, hasPlace);
  }

  /** When all that is held now is done. */
  async done(): Promise<void> {
    await Promise.all(this.#held.values());
  }

  stopAll(why: string): void {
    for (const attempt of this.#held.keys()) attempt.stop(why);
  }

  /** Whatever is still held runs out: others may have it then. */
  empty(): void {
    this.#isEmptied = true;
    this.#timer?.cancel();
    for (const attempt of this.#held.keys()) attempt.unwatch();
  }

  #extendLater(): void {
    if (this.#timer !== null || this.#isEmptied) return;
    const { clock, claimMs } = this.#parts;
    this.#timer = clock.after(claimMs * EXTEND_SHARE, () => void this.#extend());
  }

  async #extend(): Promise<void> {
    this.#timer = null;
    // One that was told to stop and goes on is left to run out, too.
    const attempts = [...this.#held.keys()].filter(({ isStopped }) => !isStopped);
    if (attempts.length === 0 || this.#isEmptied) return;
    const { workflows, target, claimMs } = this.#parts;
    const claim = this.claimNow();
    const call = { claimMs, timeoutMs: Math.min(TIMEOUT_MS, claimMs * EXTEND_SHARE) };
    const replies = await workflows.extend(target, attempts, call).catch(() => []);
    for (const [i, attempt] of attempts.entries()) {
      if (replies[i] === 'done') attempt.extend(claim);
      else if (replies[i] === 'gone') attempt.stop('it is in other hands now, or has been dropped');
    }
    this.#extendLater();
  }
}

export function tooManyStuck(): Error {
  return new Error(
    `more than ${STUCK_MOST} handlers did not stop when their signal fired. Restart this process, and let handlers stop when context.signal fires.`,
  );
}
