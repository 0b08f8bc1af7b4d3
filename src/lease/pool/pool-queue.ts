/**
 * Waiting for any slot of a pool. One who waits is in one of these states, and leaves each of them only forward:
 *
 * **Arriving.** In: at the call. Those who have come by the time the others before them have a slot, or stand in line, look together,
 * once. So nobody who comes later looks earlier. Out: → looking.
 *
 * **Looking.** In: as above. If nobody of this process stands in line, free slots go to those who look, the first to who came first; else
 * they are left to those in line. Out: has one → done; none → standing. An error of the store is no end: those in line ask again.
 *
 * **Standing.** In: as above, in the line of every slot at once (`waiting.ts`), in the order of their coming. Each line asks for its
 * first, so whichever slot is freed is asked for by who came first. Out: a grant, or every line has an answer and none is a grant → done.
 *
 * **Done.** In: from any state, once: with a slot; when the signal fires; when all lines have answered for the last time, which tells
 * what stood in the way; or when the time is up for a while and there was no answer at all. It leaves the other lines. What is granted to it
 * all the same, because two slots were freed at a time or the answer was under way, is released at once and goes to the next in line.
 */
import { setMaxListeners } from 'node:events';
import type { Clock, Timer } from '../../core/clock.ts';
import { OutcomeUnknownError } from '../../core/errors.ts';
import { type Asker, asError, type Obstacle, type Slots, type Taken } from './slots.ts';

/** How much longer than its time one waits who has not heard of any slot yet. */
const LAST_ANSWER_MS = 1_000;

/** A slot, or what stood in the way of each when the time was up. */
export type WaitOutcome = Taken | readonly Obstacle[];

interface Waiter {
  readonly asker: Asker;
  readonly untilMs: number;
  readonly leaving: AbortController;
  timer: Timer;
  isDone: boolean;
  isStanding: boolean;
  finish(outcome: WaitOutcome | Error): void;
}

export class PoolQueue {
  readonly #slots: Slots;
  readonly #clock: Clock;
  readonly #storeName: string;
  readonly #arriving: Waiter[] = [];
  #isAdmitting = false;
  #standing = 0;

  constructor(parts: { slots: Slots; clock: Clock; storeName: string }) {
    this.#slots = parts.slots;
    this.#clock = parts.clock;
    this.#storeName = parts.storeName;
  }

  wait(asker: Asker, waitMs: number): Promise<WaitOutcome> {
    return new Promise((resolve, reject) => {
      const waiter = this.#waiter(asker, waitMs, (outcome) =>
        outcome instanceof Error ? reject(outcome) : resolve(outcome),
      );
      this.#arriving.push(waiter);
      if (!this.#isAdmitting) void this.#admit();
    });
  }

  #waiter(
    { signal, ...asker }: Asker,
    waitMs: number,
    deliver: (outcome: WaitOutcome | Error) => void,
  ): Waiter {
    const onAbort = () => waiter.finish(asError(signal?.reason));
    const waiter: Waiter = {
      asker,
      untilMs: this.#clock.monotonicMs() + waitMs,
      leaving: new AbortController(),
      timer: this.#clock.after(waitMs + LAST_ANSWER_MS, () => waiter.finish(this.#noAnswer())),
      isDone: false,
      isStanding: false,
      finish: (outcome) => {
        if (waiter.isDone) return;
        waiter.isDone = true;
        waiter.timer.cancel();
        signal?.removeEventListener('abort', onAbort);
        if (waiter.isStanding) this.#standing--;
        deliver(outcome);
        waiter.leaving.abort();
      },
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    // Every line listens to it, and there are as many as slots: no reason to warn of a leak.
    setMaxListeners(0, waiter.leaving.signal);
    return waiter;
  }

  #noAnswer(): Error {
    const facts = { store: this.#storeName, operation: 'acquire', afterMs: LAST_ANSWER_MS };
    return new OutcomeUnknownError({ ...facts, why: 'the wait was over before an answer came' });
  }

  /** Lets those who have arrived look, and then stand in line, in the order of their coming. */
  async #admit(): Promise<void> {
    this.#isAdmitting = true;
    await new Promise<void>((resolve) => this.#clock.soon(resolve));
    while (this.#arriving.length > 0) {
      const together = this.#arriving.splice(0);
      if (this.#standing === 0) await this.#look(together);
      for (const waiter of together) if (!waiter.isDone) this.#stand(waiter);
    }
    this.#isAdmitting = false;
  }

  async #look(together: readonly Waiter[]): Promise<void> {
    const view = await this.#slots.look().catch(() => null);
    if (view === null) return;
    const taking = together.map(({ isDone, asker }) =>
      isDone ? null : this.#slots.takeFree(view, asker),
    );
    const taken = await Promise.all(taking);
    let isOneWithout = false;
    for (const [i, waiter] of together.entries()) {
      const slot = taken[i] ?? null;
      isOneWithout ||= slot === null && !waiter.isDone;
      // Another process has taken what was meant for one of them: those behind it do not get ahead by that.
      if (slot !== null && isOneWithout) void slot.lease.release();
      else if (slot !== null) give(waiter, slot);
    }
  }

  /** All lines in one go: whoever stands before another in one of them does so in all. */
  #stand(waiter: Waiter): void {
    const { asker, leaving, untilMs } = waiter;
    waiter.isStanding = true;
    this.#standing++;
    // From here on every line answers in time.
    waiter.timer.cancel();
    const waitMs = Math.max(1, untilMs - this.#clock.monotonicMs());
    // As many listen to it as there are slots, and all of them stop when it fires: Node would take more than ten for a leak.
    setMaxListeners(0, leaving.signal);
    const inLine = { ...asker, signal: leaving.signal };
    const obstacles: Obstacle[] = [];
    const note = (obstacle: Obstacle) => {
      obstacles.push(obstacle);
      if (obstacles.length === this.#slots.names.length) waiter.finish(obstacles);
    };
    for (const slot of this.#slots.names) {
      void this.#slots.acquire(slot, inLine, waitMs).then(
        (result) => {
          if (result.ok) give(waiter, { ok: true, slot, lease: result.lease });
          else note(result);
        },
        (error) => note(asError(error)),
      );
    }
  }
}

/** Hands a slot to who waited for it; if that one has gone, to whoever is next. */
function give(waiter: Waiter, taken: Taken): void {
  if (waiter.isDone) void taken.lease.release();
  else waiter.finish(taken);
}
