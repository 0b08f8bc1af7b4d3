import { BackoffState } from '../core/backoff.ts';
import type { Timer } from '../core/clock.ts';
import { confirmationNow, type Deadline, toleratedJumpMs } from '../core/validity.ts';
import type { Runtime } from '../store/runtime.ts';
import type { Attempt } from './attempt.ts';

/** Claims are extended after this share of their time. */
const EXTEND_SHARE = 1 / 3;
/** A claim ends here earlier than in the store, by this share of its time. */
const GUARD_SHARE = 1 / 20;
/** How long one request may take. */
const TIMEOUT_MS = 5_000;
/**
 * Stuck attempts that gave up their place. Beyond that they keep it: such a process needs a
 * restart.
 */
const MAX_STUCK = 1_000;

/**
 * The claims of one processor. One timer extends all of them while their attempts run. A stuck
 * attempt has no claim any more, and gives its place to the next action.
 */
export class ClaimSet {
  readonly #rt: Runtime;
  readonly #processor: string;
  readonly #claimMs: number;
  readonly #guardMs: number;
  readonly #held = new Map<Attempt, Promise<unknown>>();
  readonly #stuck = new Set<Attempt>();
  readonly #crowding: BackoffState;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(rt: Runtime, processor: string, claimMs: number) {
    this.#rt = rt;
    this.#processor = processor;
    this.#claimMs = claimMs;
    this.#guardMs = claimMs * GUARD_SHARE;
    this.#crowding = new BackoffState(rt.clock, {
      onStalled: (error) => rt.events.emit('processor.stalled', { processor, error }),
      onResumed: (afterMs) => rt.events.emit('processor.resumed', { processor, afterMs }),
    });
  }

  /** How many attempts have a place. */
  get size(): number {
    return this.#held.size;
  }

  /** Whether the attempt has a place: a stuck one has none. */
  has(attempt: Attempt): boolean {
    return this.#held.has(attempt);
  }

  /** The claim that a request sent now brings. */
  claimNow(): Deadline {
    const { sentAtMs, sentAtWallMs } = confirmationNow(this.#rt.clock);
    const validMs = this.#claimMs - this.#guardMs;
    return { sentAtMs, sentAtWallMs, validMs, jumpMs: toleratedJumpMs(this.#guardMs) };
  }

  /**
   * Keeps the claim until `done`, or until the attempt is stuck. Resolves when its place is free.
   */
  hold(attempt: Attempt, done: Promise<unknown>): Promise<void> {
    this.#held.set(attempt, done);
    this.#extendLater();
    return new Promise((resolve) => {
      const onDone = () => {
        this.#held.delete(attempt);
        if (this.#stuck.delete(attempt)) this.#crowding.succeeded();
        resolve();
      };
      done.then(onDone, onDone);
      attempt.watchForStuck(this.#guardMs, () => {
        if (this.#giveUpPlace(attempt)) resolve();
      });
    });
  }

  /** Resolves when all attempts that have a place now are done. */
  async done(): Promise<void> {
    await Promise.all(this.#held.values());
  }

  stopAll(why: string): void {
    for (const attempt of this.#held.keys()) attempt.stop(why);
  }

  /**
   * Extends nothing any more: the claims that are left expire, and other processes get their
   * actions.
   */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const attempt of this.#held.keys()) attempt.unwatch();
  }

  /**
   * A handler that hangs must not block others. Returns false if too many gave up their place
   * already.
   */
  #giveUpPlace(attempt: Attempt): boolean {
    const isCrowded = this.#stuck.size >= MAX_STUCK;
    if (!isCrowded) {
      this.#held.delete(attempt);
      this.#stuck.add(attempt);
    }
    const { clock, events } = this.#rt;
    const { facts, fence, tries, startedMs } = attempt;
    const runsForMs = clock.monotonicMs() - startedMs;
    events.emit('action.stuck', { ...facts, fence, tries, runsForMs });
    if (isCrowded) this.#crowding.failed(tooManyStuck());
    return !isCrowded;
  }

  #extendLater(): void {
    if (this.#timer !== null || this.#isClosed) return;
    const pauseMs = this.#claimMs * EXTEND_SHARE;
    this.#timer = this.#rt.clock.after(pauseMs, () => void this.#extendAll());
  }

  async #extendAll(): Promise<void> {
    this.#timer = null;
    // The claim of an attempt that was asked to stop is left to expire.
    const attempts = [...this.#held.keys()].filter(({ isStopped }) => !isStopped);
    if (attempts.length === 0 || this.#isClosed) return;
    const { workflows } = this.#rt.store;
    const claimMs = this.#claimMs;
    const claim = this.claimNow();
    const call = { claimMs, timeoutMs: Math.min(TIMEOUT_MS, claimMs * EXTEND_SHARE) };
    const replies = await workflows.extend(this.#processor, attempts, call).catch(() => []);
    for (const [i, attempt] of attempts.entries()) {
      if (replies[i] === 'done') attempt.extend(claim);
      else if (replies[i] === 'gone')
        attempt.stop('its claim is gone: another process has the action, or it was dropped');
    }
    this.#extendLater();
  }
}

function tooManyStuck(): Error {
  return new Error(
    `more than ${MAX_STUCK} handlers did not stop when their signal fired. ` +
      'Restart this process, and let handlers stop when context.signal fires.',
  );
}
