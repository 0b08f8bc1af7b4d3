import type { Clock, Timer } from '../base/clock.ts';
import { confirmationNow } from '../lease/tenure.ts';
import type { WorkflowStore } from '../store/workflow-store.ts';
import type { Attempt, Claim } from './attempt.ts';

/** The share of a claim that is left when it is extended, and the part of it that clocks may differ by. */
const EXTEND_SHARE = 1 / 3;
const GUARD_SHARE = 1 / 20;
/** The wall clock may move by half of that part, and no more than this, before it means that the host has slept. */
const JUMP_MOST_MS = 1_000;
/** How long one request may take. */
const TIMEOUT_MS = 5_000;

export interface HandsParts {
  readonly workflows: WorkflowStore;
  readonly clock: Clock;
  readonly target: string;
  readonly claimMs: number;
}

/** What a processor has in hands: its claims are extended, all by one timer, for as long as it works on them. */
export class Hands {
  readonly #parts: HandsParts;
  readonly #held = new Map<Attempt, Promise<unknown>>();
  #timer: Timer | null = null;
  #isEmptied = false;

  constructor(parts: HandsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#held.size;
  }

  /** What a request that is sent now brings: it ends here a while before it does in the store. */
  claimNow(): Claim {
    const { clock, claimMs } = this.#parts;
    const guardMs = claimMs * GUARD_SHARE;
    const valid = { validMs: claimMs - guardMs, jumpMs: Math.min(JUMP_MOST_MS, guardMs / 2) };
    return { ...confirmationNow(clock), ...valid };
  }

  /** It is held until `done`. */
  hold(attempt: Attempt, done: Promise<unknown>): void {
    this.#held.set(attempt, done);
    const drop = () => this.#held.delete(attempt);
    done.then(drop, drop);
    this.#extendLater();
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
