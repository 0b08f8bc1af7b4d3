/**
 * Waiting for keys that others hold, without polling: one line per key, and only the first in it asks the store. When
 * the answer is busy, the store notes our inbox and wakes it on release; a timer at the expiry observed is the backstop
 * for a holder that died and for a signal that was lost. Waiters of one process are served in the order of their coming.
 */
import { type Clock, isDoneWithin, type Timer } from '../core/clock.ts';
import { type BusyReason, isTransient, OutcomeUnknownError } from '../core/errors.ts';
import type { Random } from '../core/random.ts';
import type { Store } from '../store/port/store.ts';
import { readWakeHint } from '../store/port/wake-hint.ts';
import type { Tenure } from './tenure.ts';
import type { WakeWatch } from './wake-watch.ts';

/** The store expires keys on its own clock in whole milliseconds: a moment later they are gone for sure. */
const AFTER_EXPIRY_MS = 2;
/** Waiters that saw the same expiry spread over this. */
const SPREAD_MS = 5;
/** However far away the expiry is, a lost signal costs no more than this. */
const LONGEST_BLIND_MS = 30_000;
/** Between attempts that failed because the store did: pauses double from the first to the second. */
const RETRY_FIRST_MS = 100;
const RETRY_MOST_MS = 1_000;
/** Of a hint that nobody here wants, one other waiter is told. */
const PASS_ON = { most: 1, apartMs: 0, timeoutMs: RETRY_MOST_MS };
/** How much longer than its time the first in line waits for the answer to what it has asked. */
const LAST_ANSWER_MS = 1_000;
/** How long the first who waits gives the subscription to stand. */
const LISTEN_MS = 100;
export interface Busy {
  readonly kind: 'busy';
  readonly reason: BusyReason;
  readonly holder: string;
  readonly fence: number;
  readonly expiresInMs: number;
}

export type Outcome = { readonly kind: 'granted'; readonly tenure: Tenure } | Busy;

/** One caller's wish for one key. */
export interface Wish {
  readonly storeKey: string;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Asks the store once. `waitedMs` is present where it is to note our inbox. */
  attempt(waitedMs?: number): Promise<Outcome>;
  /** Lets go of a grant that came when nobody wanted it any more. */
  decline(tenure: Tenure): void;
}

interface Waiter {
  readonly wish: Wish;
  readonly sinceMs: number;
  /** Its time is up: the next answer is the last. */
  isTimeUp: boolean;
  timer: Timer;
  gone: boolean;
  finish(outcome: Outcome | Error): void;
}

interface Line {
  readonly waiters: Waiter[];
  /** What stood in the way last, and when; null before the first answer. */
  last: { readonly outcome: Busy | Error; readonly atMs: number } | null;
  /** A hint has come since the last attempt was begun. */
  poked: boolean;
  /** The store has our inbox in its line for the key: it noted it, and has not called it since. */
  isNoted: boolean;
  /** Several were woken at once: when it is our turn to ask. */
  turn: Timer | null;
  wake: (() => void) | null;
}

export class WaitQueue {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #inbox: string;
  readonly #wakes: WakeWatch;
  readonly #lines = new Map<string, Line>();
  /** Hears of keys that nobody here stands in line for; says whether it wants them. */
  #onOffer: (storeKey: string) => boolean = () => false;
  #onOfferGap: () => void = () => {};
  #listening: Promise<(() => void) | null> | null = null;
  #isListening = false;
  #isClosed = false;

  readonly #onListening: () => void;

  /** `onListening` is called once this process has a subscription. */
  constructor(parts: {
    store: Store;
    clock: Clock;
    random: Random;
    inbox: string;
    wakes: WakeWatch;
    onListening?: () => void;
  }) {
    this.#wakes = parts.wakes;
    this.#onListening = parts.onListening ?? (() => {});
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#inbox = parts.inbox;
  }

  /**
   * Resolves with the grant, or with what stood in the way when the time was up. Every wish is asked for at least once, so
   * the wait may be a little longer.
   */
  wait(wish: Wish): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const waiter = this.#waiter(wish, (outcome) =>
        outcome instanceof Error ? reject(outcome) : resolve(outcome),
      );
      const line = this.#lines.get(wish.storeKey);
      if (line !== undefined) {
        line.waiters.push(waiter);
        return;
      }
      const opened: Line = {
        waiters: [waiter],
        last: null,
        poked: false,
        isNoted: false,
        turn: null,
        wake: null,
      };
      this.#lines.set(wish.storeKey, opened);
      void this.#serve(wish.storeKey, opened);
    });
  }

  /** The key may be free, or may be had by us: whoever waits for it tries again. */
  poke(storeKey: string): void {
    const line = this.#lines.get(storeKey);
    if (line !== undefined) poke(line);
  }

  /**
   * From now on also hears of keys that were handed to this process unasked. `onOffer` says whether it takes care of one;
   * `onGap`, that some may have been missed. False if it can not listen now.
   */
  async hearOffers(onOffer: (storeKey: string) => boolean, onGap: () => void): Promise<boolean> {
    this.#onOffer = onOffer;
    this.#onOfferGap = onGap;
    await this.#listen();
    return this.#isListening;
  }

  close(error: Error): void {
    this.#isClosed = true;
    for (const line of this.#lines.values())
      for (const waiter of [...line.waiters]) waiter.finish(error);
    void this.#listening?.then((unsubscribe) => unsubscribe?.());
  }

  /** A waiter that leaves the line by itself when its time is up or its signal fires. */
  #waiter(wish: Wish, deliver: (outcome: Outcome | Error) => void): Waiter {
    const onAbort = () => waiter.finish(asError(wish.signal?.reason));
    const waiter: Waiter = {
      wish,
      sinceMs: this.#clock.monotonicMs(),
      isTimeUp: false,
      timer: this.#clock.after(wish.waitMs, () => this.#timeUp(waiter)),
      gone: false,
      finish: (outcome) => {
        if (waiter.gone) return;
        waiter.gone = true;
        waiter.timer.cancel();
        wish.signal?.removeEventListener('abort', onAbort);
        deliver(outcome);
        const line = this.#lines.get(wish.storeKey);
        if (line !== undefined) this.#leave(line, waiter);
      },
    };
    wish.signal?.addEventListener('abort', onAbort, { once: true });
    return waiter;
  }

  /** Who is first in line asks once more, so that the answer is true; the others are told what was seen last. */
  #timeUp(waiter: Waiter): void {
    const line = this.#lines.get(waiter.wish.storeKey);
    waiter.isTimeUp = true;
    const noAnswer = () => waiter.finish(this.#lastSeen(waiter.wish.storeKey));
    const isFirst = line?.waiters[0] === waiter;
    if (!isFirst && line?.last) {
      noAnswer();
      return;
    }
    if (isFirst && line !== undefined) poke(line);
    waiter.timer = this.#clock.after(LAST_ANSWER_MS, noAnswer);
  }

  /** What to tell a waiter whose time is up. */
  #lastSeen(storeKey: string): Busy | Error {
    const last = this.#lines.get(storeKey)?.last;
    if (last === undefined || last === null) {
      const facts = { store: this.#store.name, operation: 'acquire', afterMs: LAST_ANSWER_MS };
      return new OutcomeUnknownError({ ...facts, why: 'the wait was over before an answer came' });
    }
    if (last.outcome instanceof Error) return last.outcome;
    const agoMs = this.#clock.monotonicMs() - last.atMs;
    return { ...last.outcome, expiresInMs: Math.max(0, last.outcome.expiresInMs - agoMs) };
  }

  #leave(line: Line, waiter: Waiter): void {
    const place = line.waiters.indexOf(waiter);
    if (place >= 0) line.waiters.splice(place, 1);
    if (place === 0) poke(line);
  }

  /** Serves one line until nobody is left in it. */
  async #serve(storeKey: string, line: Line): Promise<void> {
    let pauseMs = RETRY_FIRST_MS;
    // Most keys are free: the store is first asked without a note of ours, and so without a subscription.
    let takesNote = false;
    for (let first = line.waiters[0]; first !== undefined; first = line.waiters[0]) {
      line.poked = false;
      line.turn?.cancel();
      const outcome = await this.#attempt(line, first, takesNote);
      if (!takesNote && !(outcome instanceof Error)) {
        takesNote = true;
        if (line.waiters.some(({ isTimeUp }) => !isTimeUp)) await this.#listen();
        continue;
      }
      if (outcome instanceof Error) {
        await this.#nextChance(line, this.#jittered(pauseMs));
        pauseMs = Math.min(pauseMs * 2, RETRY_MOST_MS);
        continue;
      }
      pauseMs = RETRY_FIRST_MS;
      if (outcome.kind === 'busy') await this.#nextChance(line, this.#backstopMs(outcome));
    }
    this.#lines.delete(storeKey);
    line.turn?.cancel();
    // Also after a grant: a lease that ran out called nobody, and our own release would call us, who may be gone by then.
    if (line.isNoted) await this.#passOn(storeKey);
  }

  /** Asks once for the first in line. A grant, an error that waiting does not cure, and the end of its time end its wait. */
  async #attempt(line: Line, first: Waiter, takesNote: boolean): Promise<Outcome | Error> {
    try {
      const waitedMs = this.#clock.monotonicMs() - first.sinceMs;
      const outcome = await first.wish.attempt(takesNote ? waitedMs : undefined);
      if (outcome.kind === 'busy' && takesNote) line.isNoted = true;
      if (outcome.kind === 'busy') this.#note(line, first, outcome);
      if (outcome.kind === 'granted' && first.gone) first.wish.decline(outcome.tenure);
      else if (outcome.kind === 'granted' || first.isTimeUp) first.finish(outcome);
      return outcome;
    } catch (thrown) {
      const error = asError(thrown);
      this.#note(line, first, error);
      const passes = isTransient(error);
      if (!passes || first.isTimeUp) first.finish(error);
      return error;
    }
  }

  /** What stood in the way, for those behind the first whose time was up before there was an answer at all. */
  #note(line: Line, first: Waiter, outcome: Busy | Error): void {
    line.last = { outcome, atMs: this.#clock.monotonicMs() };
    for (const waiter of line.waiters.filter(({ isTimeUp }) => isTimeUp)) {
      if (waiter !== first) waiter.finish(outcome);
    }
  }

  /** Sleeps until `ms` have passed or the line is poked. */
  #nextChance(line: Line, ms: number): Promise<void> {
    if (line.poked || line.waiters.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#clock.after(ms, () => line.wake?.());
      line.wake = () => {
        line.wake = null;
        timer.cancel();
        resolve();
      };
    });
  }

  #backstopMs({ expiresInMs }: Busy): number {
    const spreadMs = AFTER_EXPIRY_MS + this.#random.next() * SPREAD_MS;
    return Math.min(expiresInMs, LONGEST_BLIND_MS) + spreadMs;
  }

  #jittered(ms: number): number {
    return ms * (0.5 + this.#random.next() / 2);
  }

  /**
   * Begins to listen for hints. Without them waiting still works, only slower: so a subscription that takes long is not
   * waited for, and one that fails is tried again by the next who waits.
   */
  async #listen(): Promise<void> {
    if (this.#isListening || this.#isClosed) return;
    this.#listening ??= this.#store.signals.subscribe(this.#inbox, this.#subscriber).then(
      (unsubscribe) => {
        // It took longer than this process: `close` undoes it.
        if (this.#isClosed) return unsubscribe;
        this.#isListening = true;
        this.#onListening();
        // Who began to wait meanwhile may have missed a hint.
        this.#subscriber.onGap();
        return unsubscribe;
      },
      () => {
        this.#listening = null;
        return null;
      },
    );
    await isDoneWithin(this.#clock, LISTEN_MS, this.#listening);
  }

  readonly #subscriber = {
    onMessage: (message: string): void => {
      const { key, inMs } = readWakeHint(message);
      const line = this.#lines.get(key);
      if (line !== undefined) this.#onHint(line, inMs);
      // The hint came too late for us: the next in line may want it.
      else if (inMs > 0 || !this.#onOffer(key)) void this.#passOn(key);
    },
    onGap: (): void => {
      for (const line of this.#lines.values()) poke(line);
      this.#onOfferGap();
    },
  };

  #onHint(line: Line, inMs: number): void {
    line.isNoted = false;
    line.turn?.cancel();
    if (inMs > 0) line.turn = this.#clock.after(inMs, () => poke(line));
    else poke(line);
  }

  /** Leaves the line; if the key is free, the next in it is woken. */
  async #passOn(storeKey: string): Promise<void> {
    const call = { ...PASS_ON, leaving: this.#inbox };
    const [woken = 0] = await this.#store.leases.wakeNext([storeKey], call).catch(() => []);
    if (woken > 0) this.#wakes.watch(storeKey);
  }
}

function poke(line: Line): void {
  line.poked = true;
  line.wake?.();
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
