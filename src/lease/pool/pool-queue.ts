/**
 * Waits for any slot of a pool. A waiter is in one of these phases, and leaves each of them only
 * forward:
 *
 * **Arriving.** In: at the call. The waiters that have arrived when the earlier ones have a slot,
 * or stand in line, look together, once. So no later waiter looks earlier. Out: → looking.
 *
 * **Looking.** In: as above. If no waiter of this process stands in line, the free slots go to
 * those who look, in the order of their arrival; else the slots are left to the line. Out: has one
 * → done; none → standing. An error of the store does not end the wait: the waiter asks again from
 * the line.
 *
 * **Standing.** In: as above, in the line of every slot at once (`wait-queue.ts`), in the order of
 * arrival. Each line asks for its first waiter, so the earliest waiter asks for every slot that is
 * freed. In a pool that is too large for that, or while slots beyond ours count, it stands in one
 * line instead (`search-queue.ts`). Out: a grant, or every line has answered without a grant →
 * done.
 *
 * **Done.** In: from any phase, once: with a slot; when the signal fires; when all lines have given
 * their last answer; or some time after its end if there was no answer at all. It leaves the other
 * lines. A slot that is granted to it after that, because two slots were freed at a time or an
 * answer was in flight, is released at once.
 */
import { setMaxListeners } from 'node:events';
import { assert } from '../../core/assert.ts';
import type { Clock, Timer } from '../../core/clock.ts';
import { OutcomeUnknownError } from '../../core/errors.ts';
import type { Runtime } from '../../store/runtime.ts';
import type { SearchQueue } from './search-queue.ts';
import {
  type Asker,
  asError,
  type Obstacle,
  type SlotSet,
  type SlotsView,
  type Taken,
} from './slot-set.ts';

/** How much longer than its time a waiter waits for the first answer. */
const LAST_ANSWER_MS = 1_000;

/** A slot, or why each was refused when the time was over. */
export type WaitOutcome = Taken | readonly Obstacle[];

interface Waiter {
  readonly asker: Asker;
  readonly untilMs: number;
  readonly timer: Timer;
  /** Ends the wait in every line; null until the waiter stands in them. */
  leaving: AbortController | null;
  phase: 'arriving' | 'looking' | 'standing' | 'done';
  finish(outcome: WaitOutcome | Error): void;
}

export class PoolQueue {
  readonly #rt: Runtime;
  readonly #clock: Clock;
  readonly #slots: SlotSet;
  readonly #search: SearchQueue;
  readonly #arriving: Waiter[] = [];
  #isAdmitting = false;
  #standing = 0;

  constructor(rt: Runtime, slots: SlotSet, search: SearchQueue) {
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#slots = slots;
    this.#search = search;
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
      timer: this.#clock.after(waitMs + LAST_ANSWER_MS, () => waiter.finish(this.#noAnswer())),
      leaving: null,
      phase: 'arriving',
      finish: (outcome) => {
        if (waiter.phase === 'done') return;
        if (waiter.phase === 'standing') this.#standing--;
        waiter.phase = 'done';
        waiter.timer.cancel();
        signal?.removeEventListener('abort', onAbort);
        deliver(outcome);
        waiter.leaving?.abort();
      },
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    return waiter;
  }

  #noAnswer(): Error | Obstacle[] {
    const { notYet } = this.#slots;
    if (notYet !== null) return [notYet];
    return new OutcomeUnknownError({
      store: this.#rt.store.name,
      operation: 'acquire',
      afterMs: LAST_ANSWER_MS,
      why: 'the wait was over before an answer came',
    });
  }

  /**
   * Lets the waiters that have arrived look, and then stand in line, in the order of their arrival.
   */
  async #admit(): Promise<void> {
    this.#isAdmitting = true;
    await new Promise<void>((resolve) => this.#clock.soon(resolve));
    while (this.#arriving.length > 0) {
      const together = this.#arriving.splice(0);
      if (this.#standing === 0) await this.#look(together);
      for (const waiter of together) if (waiter.phase !== 'done') this.#stand(waiter);
    }
    this.#isAdmitting = false;
  }

  /** Without a read first, if this process has released enough slots. */
  async #look(together: readonly Waiter[]): Promise<void> {
    for (const waiter of together) if (waiter.phase === 'arriving') waiter.phase = 'looking';
    const loading = this.#slots.ready();
    // The waiters ask from the line: there each grant is checked, too.
    if (loading !== null && !(await isFulfilled(loading))) return;
    const recalled = this.#slots.recall(together.length);
    if (recalled !== null) await this.#takeIn(recalled, together);
    const rest = together.filter(({ phase }) => phase === 'looking');
    const view =
      rest.length === 0 ? null : await this.#slots.readView(rest.length).catch(() => null);
    if (view !== null) await this.#takeIn(view, rest);
  }

  async #takeIn(view: SlotsView, together: readonly Waiter[]): Promise<void> {
    const taking = together.map((waiter) => {
      const hasLeft = () => waiter.phase === 'done';
      return hasLeft() ? null : this.#slots.takeFree(view, waiter.asker, { hasLeft });
    });
    const taken = await Promise.all(taking);
    let isOneWithout = false;
    for (const [i, waiter] of together.entries()) {
      const slot = taken[i] ?? null;
      isOneWithout ||= slot === null && waiter.phase !== 'done';
      // Another process took the slot of an earlier waiter: the later ones must not overtake that
      // waiter.
      if (slot !== null && isOneWithout) void slot.lease.release();
      else if (slot !== null) give(waiter, slot);
    }
  }

  /** Joins all lines in one go, so that the order of waiters is the same in each. */
  #stand(waiter: Waiter): void {
    const { asker, untilMs, phase } = waiter;
    assert(phase === 'arriving' || phase === 'looking', 'a waiter joins the lines once');
    waiter.phase = 'standing';
    this.#standing++;
    // From here on every line answers in time.
    waiter.timer.cancel();
    const leaving = new AbortController();
    waiter.leaving = leaving;
    // Each line adds a listener, and there are as many lines as slots: Node would warn of a leak at
    // eleven.
    setMaxListeners(0, leaving.signal);
    const inLine = { ...asker, signal: leaving.signal };
    if (!this.#slots.hasLines) {
      this.#find(waiter, inLine);
      return;
    }
    const waitMs = Math.max(1, untilMs - this.#clock.monotonicMs());
    const obstacles: Obstacle[] = [];
    const add = (obstacle: Obstacle) => {
      obstacles.push(obstacle);
      if (obstacles.length === this.#slots.names.length) waiter.finish(obstacles);
    };
    for (const slot of this.#slots.names) {
      void this.#slots.acquire(slot, inLine, waitMs).then(
        (result) => {
          if (result.ok) give(waiter, result);
          else if (result.isOver) this.#standOver(waiter);
          else add(result);
        },
        (error) => add(asError(error)),
      );
    }
  }

  /** Slots beyond ours count since the waiter stood in line: it stands in the one line instead. */
  #standOver(waiter: Waiter): void {
    if (waiter.phase !== 'standing') return;
    waiter.leaving?.abort();
    const leaving = new AbortController();
    waiter.leaving = leaving;
    this.#find(waiter, { ...waiter.asker, signal: leaving.signal });
  }

  #find(waiter: Waiter, asker: Asker): void {
    const waitMs = Math.max(1, waiter.untilMs - this.#clock.monotonicMs());
    void this.#search.find(asker, waitMs).then(
      (outcome) => {
        if ('ok' in outcome) give(waiter, outcome);
        else waiter.finish(outcome);
      },
      (error) => waiter.finish(asError(error)),
    );
  }
}

async function isFulfilled(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}

/** Hands a slot to its waiter; if the waiter is done, the slot is released for the next one. */
function give(waiter: Waiter, taken: Taken): void {
  if (waiter.phase === 'done') void taken.lease.release();
  else waiter.finish(taken);
}
