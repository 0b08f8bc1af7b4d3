/**
 * Waits for a slot of a pool in which a waiter does not stand in the line of every slot. The
 * waiters of all processes stand in one line instead, the line of a lease: the pool's gate. The
 * holder of the gate is the first in line, and only it searches. So the work of waiting does not
 * grow with the number of slots or of waiters.
 *
 * A waiter is in one of these phases:
 *
 * **Standing.** In: at the call. It waits for the gate (`wait-queue.ts`). Out: granted → looking;
 * its time is over → done.
 *
 * **Looking.** In: as above. First at the slots that this process has heard of while it stood, then
 * at all slots. Out: a slot → done; none → listening.
 *
 * **Listening.** In: as above. It asks at once for each slot that it hears of, and looks at the
 * next page of slots every `LOOK_MS`: for a holder that died, and for a hint that was lost. Out: a
 * slot, or its time is over → done, and the gate is released.
 *
 * **Hints.** A process that has released a slot reads the gate. If that is held, it publishes the
 * slot. If it is free, whoever is granted it later looks at all slots after that, and finds this
 * one free. The gate only makes an order: two waiters that both search do no harm. So its TTL is
 * short, and a first waiter that died delays the others for no longer.
 */
import type { Clock } from '../../core/clock.ts';
import { type HeldReason, isTransient } from '../../core/errors.ts';
import type { Runtime } from '../../store/runtime.ts';
import { Subscription } from '../../store/subscription.ts';
import type { Leases } from '../leases.ts';
import {
  type Asker,
  assumedFree,
  type Obstacle,
  obstaclesOf,
  PAGE,
  type SlotSet,
  type SlotsView,
  type Taken,
} from './slot-set.ts';

/** The gate is worth no long wait: all its timings are short. */
const GATE_TIMINGS = { ttl: 2_000, renewEvery: 600, guard: 100, operationTimeout: 300 };
/** How often the first in line looks at a page of slots. */
const LOOK_MS = 100;
/** After an error of the store. */
const RETRY_MS = 1_000;
/** One more name than any slot has: no slot's name is empty. */
const GATE = '';

interface Refused {
  readonly reason: HeldReason | 'quarantine';
  readonly expiresInMs: number;
}

export class SearchQueue {
  readonly #rt: Runtime;
  readonly #clock: Clock;
  readonly #leases: Pick<Leases, 'acquire'>;
  readonly #slots: SlotSet;
  /** The topic of released slots. */
  readonly #topic: string;
  /** Released by this process, and not yet told to the first in line. */
  readonly #untold = new Set<string>();
  /** Heard of while no waiter of this process was the first. The latest page of them. */
  readonly #heard = new Set<string>();
  /** Open while a waiter of this process stands. */
  #hints: Subscription | null = null;
  #standing = 0;
  /** All slots were read since `#hints` was opened, and no hint was missed since. */
  #hasLooked = false;
  /** Wakes the first in line, if that is a waiter of this process. */
  #wake: (() => void) | null = null;

  constructor(rt: Runtime, leases: Pick<Leases, 'acquire'>, slots: SlotSet) {
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#leases = leases;
    this.#slots = slots;
    this.#topic = `pool:${slots.storeKeyOf(GATE)}`;
    slots.whenReleased((slot) => this.#onReleased(slot));
  }

  /** A slot, or why each was refused when the time was over. */
  async find(asker: Asker, waitMs: number): Promise<Taken | readonly Obstacle[]> {
    const untilMs = this.#clock.monotonicMs() + waitMs;
    const hints = this.#enter();
    try {
      const options = { ...GATE_TIMINGS, ...this.#slots.classOption, wait: waitMs };
      const { signal } = asker;
      const gate = await this.#leases.acquire(this.#slots.keyOf(GATE), {
        ...options,
        ...(signal && { signal }),
      });
      if (!gate.ok) return await this.#refusal(gate);
      try {
        await hints.open();
        return await this.#search(asker, untilMs);
      } finally {
        void gate.lease.release();
      }
    } finally {
      this.#leave();
    }
  }

  #onReleased(slot: string): void {
    if (this.#untold.size === 0) this.#clock.soon(() => void this.#tell());
    this.#untold.add(slot);
  }

  /** The first in line looked until now, and left no slot to the others. */
  async #refusal({ reason, expiresInMs }: Refused): Promise<readonly Obstacle[]> {
    const seen = reason === 'held' ? obstaclesOf(await this.#slots.readNext()) : [];
    return seen.length > 0 ? seen : [{ reason, expiresInMs }];
  }

  async #tell(): Promise<void> {
    const slots = [...this.#untold];
    this.#untold.clear();
    try {
      const [gate] = await this.#slots.read([GATE]);
      if (gate?.kind !== 'held') return;
      for (const slot of slots) this.#slots.forget(slot);
      for (let i = 0; i < slots.length; i += PAGE) {
        const message = slots.slice(i, i + PAGE).join('\n');
        await this.#rt.store.signals.publish(this.#topic, message);
      }
    } catch {
      // The first in line finds the slots when it looks at their page.
    }
  }

  #enter(): Subscription {
    this.#standing++;
    this.#hints ??= new Subscription(this.#rt, this.#topic, (message) => this.#onHint(message));
    void this.#hints.open();
    return this.#hints;
  }

  #leave(): void {
    this.#standing--;
    if (this.#standing > 0) return;
    this.#hints?.close();
    this.#hints = null;
    this.#heard.clear();
    this.#hasLooked = false;
  }

  #onHint(message: string | null): void {
    if (message === null) this.#hasLooked = false;
    for (const slot of message?.split('\n') ?? []) {
      this.#heard.delete(slot);
      this.#heard.add(slot);
      const [oldest] = this.#heard;
      if (this.#heard.size > PAGE && oldest !== undefined) this.#heard.delete(oldest);
    }
    this.#wake?.();
  }

  async #search(asker: Asker, untilMs: number): Promise<Taken | readonly Obstacle[]> {
    let pauseMs = 0;
    // Most of what was heard before went to those who were first then: a read sorts it out.
    let look = () => this.#slots.readOf(this.#takeHeard());
    for (;;) {
      const leftMs = untilMs - this.#clock.monotonicMs();
      if (leftMs <= 0) look = () => this.#slots.readView(1);
      try {
        const view = await look();
        const taken = await this.#slots.takeFree(view, asker);
        this.#keep(view);
        if (taken !== null) return taken;
        if (leftMs <= 0) return obstaclesOf(view);
      } catch (error) {
        if (leftMs <= 0 || asker.signal?.aborted || !isTransient(error)) throw error;
        pauseMs = RETRY_MS;
      }
      asker.signal?.throwIfAborted();
      if (this.#hasLooked || pauseMs > 0)
        await this.#listen(Math.min(Math.max(pauseMs, LOOK_MS), leftMs), asker.signal);
      look = this.#nextLook(pauseMs === 0);
      pauseMs = LOOK_MS;
    }
  }

  #nextLook(isFirst: boolean): () => Promise<SlotsView> {
    if (isFirst && !this.#hasLooked) {
      this.#hasLooked = this.#hints?.isOpen ?? false;
      return () => this.#slots.readView(1);
    }
    if (this.#heard.size === 0) return () => this.#slots.readNext();
    return async () => assumedFree(this.#takeHeard());
  }

  #takeHeard(): string[] {
    const slots = [...this.#heard];
    this.#heard.clear();
    return slots;
  }

  /** The free slots that are left are for the next waiter. */
  #keep({ slots }: SlotsView): void {
    for (const [slot, obstacle] of slots)
      if (obstacle === null && this.#heard.size < PAGE) this.#heard.add(slot);
  }

  /** Until a slot is heard of, the signal fires, or `ms` have passed. */
  async #listen(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#heard.size === 0) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(ms, resolve);
        this.#wake = () => {
          timer.cancel();
          resolve();
        };
        signal?.addEventListener('abort', this.#wake, { once: true });
      });
      if (this.#wake !== null) signal?.removeEventListener('abort', this.#wake);
      this.#wake = null;
    }
    signal?.throwIfAborted();
  }
}
