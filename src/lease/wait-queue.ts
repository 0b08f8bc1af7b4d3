/**
 * Waits for keys that others hold, without polling: one line per key, and only the first waiter of
 * a line asks the store. If the key is held, the store queues our inbox (a topic of this process)
 * and sends it a hint when the key is released. A timer at the expiry seen is the backstop for a
 * holder that died and for a hint that was lost. The waiters of one process are served in the order
 * in which they came.
 *
 * A line is in one of these phases:
 *
 * **Asking.** In: it has a first waiter. One attempt is in flight. Out: refused → sleeping; a hint
 * → hinted; the first waiter has its answer → the next one asks, and without one the line ends.
 *
 * **Hinted.** In: the key may be free, or the first waiter has changed. Out: the next attempt
 * begins → asking.
 *
 * **Sleeping.** In: as above. Out: a hint → hinted; the timer → asking.
 */
import { assert } from '../core/assert.ts';
import { type Clock, isDoneWithin, type Timer } from '../core/clock.ts';
import { isTransient, OutcomeUnknownError } from '../core/errors.ts';
import { readWakeHint } from '../store/port/wake-hint.ts';
import type { Runtime } from '../store/runtime.ts';
import { Subscription } from '../store/subscription.ts';
import type { Acquisition, AttemptResult, Busy } from './acquisition.ts';
import type { Leases } from './leases.ts';
import type { LossWatch } from './loss-watch.ts';
import type { WakeWatch } from './wake-watch.ts';

/**
 * The store expires keys on its own clock, in whole milliseconds: a moment later they are gone for
 * sure.
 */
const AFTER_EXPIRY_MS = 2;
/** Waiters that saw the same expiry ask at random moments within this time. */
const SPREAD_MS = 5;
/** A lost hint costs no more than this, however far away the expiry is. */
const MAX_BACKSTOP_MS = 30_000;
/** After attempts that failed because the store did: pauses double from the first to the second. */
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 1_000;
/** A hint that no line of this process wants is passed on to one other waiter. */
const PASS_ON = { most: 1, apartMs: 0, timeoutMs: MAX_RETRY_MS };
/**
 * When the time of a first waiter is over, how much longer it waits for the answer to its last
 * attempt.
 */
const LAST_ANSWER_MS = 1_000;
/** How long a first waiter waits for the subscription. */
const LISTEN_MS = 100;

interface Waiter {
  readonly acquisition: Acquisition;
  readonly sinceMs: number;
  /** `last-answer`: its time is over, and the next answer ends its wait. */
  phase: 'waiting' | 'last-answer' | 'gone';
  timer: Timer;
  finish(outcome: AttemptResult | Error): void;
}

interface Line {
  readonly storeKey: string;
  readonly waiters: Waiter[];
  phase: 'asking' | 'hinted' | 'sleeping';
  /** The last refusal or error, and when it came; null before the first answer. */
  last: { readonly outcome: Busy | Error; readonly atMs: number } | null;
  /** The store has queued our inbox for the key, and has not sent it a hint since. */
  isQueued: boolean;
  /** When to ask, if the store woke several waiters at once: they ask one after the other. */
  turn: Timer | null;
  /** Ends the sleep. */
  wake: (() => void) | null;
}

export class WaitQueue {
  readonly #rt: Runtime;
  readonly #clock: Clock;
  readonly #leases: Leases;
  readonly #wakeWatch: WakeWatch;
  /** Says when the store has lost data. */
  readonly #notices: LossWatch;
  readonly #lines = new Map<string, Line>();
  /**
   * Called for a hint about a key without a line: its holder may have transferred it to this
   * process. Returns whether this process wants the key.
   */
  #onOffer: (storeKey: string) => boolean = () => false;
  #onOfferGap: () => void = () => {};
  /** The inbox of this process. */
  readonly #hints: Subscription;
  #isListening = false;
  #isClosed = false;

  constructor(rt: Runtime, leases: Leases, wakeWatch: WakeWatch, notices: LossWatch) {
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#leases = leases;
    this.#wakeWatch = wakeWatch;
    this.#notices = notices;
    this.#hints = new Subscription(rt, rt.instanceId, (message) => this.#onMessage(message));
  }

  /**
   * Resolves with the grant, or with the last refusal when the time is over. Every acquisition is
   * tried at least once, so the wait may be a little longer.
   */
  wait(acquisition: Acquisition): Promise<AttemptResult> {
    return new Promise((resolve, reject) => {
      const waiter = this.#waiter(acquisition, (outcome) =>
        outcome instanceof Error ? reject(outcome) : resolve(outcome),
      );
      const { storeKey } = acquisition;
      const line = this.#lines.get(storeKey);
      if (line !== undefined) {
        line.waiters.push(waiter);
        return;
      }
      const opened: Line = {
        storeKey,
        waiters: [waiter],
        phase: 'asking',
        last: null,
        isQueued: false,
        turn: null,
        wake: null,
      };
      this.#lines.set(storeKey, opened);
      void this.#serve(opened);
    });
  }

  /** The key may be free now: the first waiter of its line asks again. */
  wake(storeKey: string): void {
    const line = this.#lines.get(storeKey);
    if (line !== undefined) hint(line);
  }

  /**
   * Listens for keys that are handed to this process without a waiter. `onOffer` returns whether it
   * wants the key; `onGap` says that offers may have been missed. False if there is no subscription
   * now.
   */
  async listenForOffers(
    onOffer: (storeKey: string) => boolean,
    onGap: () => void,
  ): Promise<boolean> {
    this.#onOffer = onOffer;
    this.#onOfferGap = onGap;
    await this.#listen();
    return this.#isListening;
  }

  close(error: Error): void {
    this.#isClosed = true;
    for (const line of this.#lines.values())
      for (const waiter of [...line.waiters]) waiter.finish(error);
    this.#hints.close();
  }

  /** A waiter leaves its line when its time is over or its signal fires. */
  #waiter(acquisition: Acquisition, deliver: (outcome: AttemptResult | Error) => void): Waiter {
    const { storeKey, signal, waitMs } = acquisition;
    const onAbort = () => waiter.finish(asError(signal?.reason));
    const waiter: Waiter = {
      acquisition,
      sinceMs: this.#clock.monotonicMs(),
      phase: 'waiting',
      timer: this.#clock.after(waitMs, () => this.#onTimeOver(waiter)),
      finish: (outcome) => {
        if (waiter.phase === 'gone') return;
        waiter.phase = 'gone';
        waiter.timer.cancel();
        signal?.removeEventListener('abort', onAbort);
        deliver(outcome);
        const line = this.#lines.get(storeKey);
        if (line !== undefined) leave(line, waiter);
      },
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    return waiter;
  }

  /**
   * The first waiter asks once more, so that its answer is current. The others get the last answer.
   */
  #onTimeOver(waiter: Waiter): void {
    assert(waiter.phase === 'waiting', 'the time of a waiter ends only once');
    const line = this.#lines.get(waiter.acquisition.storeKey);
    waiter.phase = 'last-answer';
    const giveLast = () => waiter.finish(this.#lastOutcome(waiter));
    const isFirst = line?.waiters[0] === waiter;
    if (!isFirst && line?.last) {
      giveLast();
      return;
    }
    if (isFirst && line !== undefined) hint(line);
    waiter.timer = this.#clock.after(LAST_ANSWER_MS, giveLast);
  }

  #lastOutcome({ acquisition }: Waiter): Busy | Error {
    const last = this.#lines.get(acquisition.storeKey)?.last;
    if (last === undefined || last === null) {
      return new OutcomeUnknownError({
        store: this.#rt.store.name,
        operation: 'acquire',
        afterMs: LAST_ANSWER_MS,
        why: 'the wait was over before an answer came',
      });
    }
    if (last.outcome instanceof Error) return last.outcome;
    const agoMs = this.#clock.monotonicMs() - last.atMs;
    return { ...last.outcome, expiresInMs: Math.max(0, last.outcome.expiresInMs - agoMs) };
  }

  /** Serves one line until it is empty. */
  async #serve(line: Line): Promise<void> {
    let pauseMs = MIN_RETRY_MS;
    // Most keys are free: the first attempt does not queue our inbox, and so needs no subscription.
    let queuesInbox = false;
    for (let first = line.waiters[0]; first !== undefined; first = line.waiters[0]) {
      assert(line.phase !== 'sleeping', 'a line that sleeps does not ask');
      line.phase = 'asking';
      line.turn?.cancel();
      const outcome = await this.#attempt(line, first, queuesInbox);
      if (!queuesInbox && !(outcome instanceof Error)) {
        queuesInbox = true;
        if (line.waiters.some(({ phase }) => phase === 'waiting')) await this.#listen();
        continue;
      }
      if (outcome instanceof Error) {
        await this.#sleep(line, this.#jittered(pauseMs));
        pauseMs = Math.min(pauseMs * 2, MAX_RETRY_MS);
        continue;
      }
      pauseMs = MIN_RETRY_MS;
      if (outcome.kind === 'busy') await this.#sleep(line, this.#backstopMs(outcome));
    }
    this.#lines.delete(line.storeKey);
    line.turn?.cancel();
    // After a grant too: if the old lease expired, our inbox is still queued, and our own release
    // would wake this process, which may have no waiter by then, instead of the next one.
    if (line.isQueued) await this.#passOn(line.storeKey);
  }

  /**
   * Asks once for the first waiter. A grant, a permanent error, or the end of its time ends its
   * wait.
   */
  async #attempt(line: Line, first: Waiter, queuesInbox: boolean): Promise<AttemptResult | Error> {
    try {
      // With `waitedMs` the store queues our inbox.
      const waitedMs = queuesInbox ? this.#clock.monotonicMs() - first.sinceMs : undefined;
      const result = await this.#leases.attempt(first.acquisition, waitedMs);
      if (result.kind === 'busy') {
        if (queuesInbox) line.isQueued = true;
        this.#keepLast(line, first, result);
      }
      // A grant that comes after its caller has gone is released at once.
      if (result.kind === 'granted' && first.phase === 'gone') void result.lease.release();
      else if (result.kind === 'granted' || first.phase === 'last-answer') first.finish(result);
      return result;
    } catch (thrown) {
      const error = asError(thrown);
      this.#keepLast(line, first, error);
      if (!isTransient(error) || first.phase === 'last-answer') first.finish(error);
      return error;
    }
  }

  /**
   * Keeps the answer for the waiters behind the first, and ends the wait of those whose time is
   * over.
   */
  #keepLast(line: Line, first: Waiter, outcome: Busy | Error): void {
    line.last = { outcome, atMs: this.#clock.monotonicMs() };
    for (const waiter of line.waiters.filter(({ phase }) => phase === 'last-answer')) {
      if (waiter !== first) waiter.finish(outcome);
    }
  }

  /** Until `ms` have passed or a hint comes. */
  #sleep(line: Line, ms: number): Promise<void> {
    if (line.phase === 'hinted' || line.waiters.length === 0) return Promise.resolve();
    line.phase = 'sleeping';
    return new Promise((resolve) => {
      const timer = this.#clock.after(ms, () => line.wake?.());
      line.wake = () => {
        line.wake = null;
        if (line.phase === 'sleeping') line.phase = 'asking';
        timer.cancel();
        resolve();
      };
    });
  }

  #backstopMs({ expiresInMs }: Busy): number {
    const spreadMs = AFTER_EXPIRY_MS + this.#rt.random.next() * SPREAD_MS;
    return Math.min(expiresInMs, MAX_BACKSTOP_MS) + spreadMs;
  }

  #jittered(ms: number): number {
    return ms * (0.5 + this.#rt.random.next() / 2);
  }

  /**
   * Subscribes to hints. Without hints waiting still works, only slower: so a slow subscription is
   * not waited for, and the next waiter tries a failed one again.
   */
  async #listen(): Promise<void> {
    if (this.#isListening || this.#isClosed) return;
    await isDoneWithin(this.#clock, LISTEN_MS, this.#openHints());
  }

  async #openHints(): Promise<void> {
    await this.#hints.open();
    if (!this.#hints.isOpen || this.#isListening) return;
    this.#isListening = true;
    void this.#notices.listen();
    // Lines may have missed hints that were sent before the subscription.
    this.#onGap();
  }

  #onMessage(message: string | null): void {
    if (message === null) {
      this.#onGap();
      return;
    }
    const { key, inMs } = readWakeHint(message);
    const line = this.#lines.get(key);
    if (line !== undefined) this.#onHint(line, inMs);
    // No line wants it. A hint with a delay is for a waiter, never a transfer: it is passed on.
    else if (inMs > 0 || !this.#onOffer(key)) void this.#passOn(key);
  }

  #onGap(): void {
    for (const line of this.#lines.values()) hint(line);
    this.#onOfferGap();
  }

  #onHint(line: Line, inMs: number): void {
    line.isQueued = false;
    line.turn?.cancel();
    if (inMs > 0) line.turn = this.#clock.after(inMs, () => hint(line));
    else hint(line);
  }

  /** Leaves the store's queue for the key. If the key is free, the store wakes the next waiter. */
  async #passOn(storeKey: string): Promise<void> {
    const { store, instanceId } = this.#rt;
    const call = { ...PASS_ON, leaving: instanceId };
    const [woken = 0] = await store.leases.wakeNext([storeKey], call).catch(() => []);
    if (woken > 0) this.#wakeWatch.watch(storeKey);
  }
}

function hint(line: Line): void {
  line.phase = 'hinted';
  line.wake?.();
}

function leave(line: Line, waiter: Waiter): void {
  const place = line.waiters.indexOf(waiter);
  if (place >= 0) line.waiters.splice(place, 1);
  if (place === 0) hint(line);
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
