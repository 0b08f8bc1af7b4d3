/**
 * Renews everything this process holds: one timer, few requests, whatever the number of leases. The timer stands at
 * the earliest moment any tenure needs attention; what is due soon goes along, so that tenures acquired at different
 * times end up in the same batches.
 *
 * A renewal that fails is tried again, at a growing pace, until it is confirmed or the tenure's own deadline ends it. The
 * answer to a renewal decides: confirmed; another holder → lost; vanished → put back, if the store allows it, else lost;
 * a store that may grant the key to another at any moment → lost.
 */

import type { Clock } from '../core/clock.ts';
import { StoreUnsuitableError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { jittered, type Random } from '../core/random.ts';
import { TimerHeap } from '../core/timer-heap.ts';
import { type Confirmation, confirmationNow } from '../core/validity.ts';
import { FENCE_RECORD_MS, type RenewReply } from '../store/port/lease-store.ts';
import type { Store } from '../store/port/store.ts';
import type { Tenure, Terms } from './tenure.ts';

/** Renewals per request: about a millisecond of Redis' time, and 10,000 leases in ten requests. */
const CHUNK = 1_000;
/** Requests under way at once; the others wait their turn, so that encoding them never blocks the loop for long. */
const CHUNKS_IN_FLIGHT = 4;
/** The share of a renewal interval by which a tenure may go along early. */
const EARLY_SHARE = 1 / 4;
/** After failed renewals: pauses double from the first to the second. */
const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 1_000;
/** How old a fence record may get before a renewal keeps it: what is left is longer than any lease lasts. */
const FENCE_AGE_MS = FENCE_RECORD_MS / 4;
/** A timer this late says that the event loop was blocked. */
const LATE_MS = 1_000;

export class Renewer {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #events: Emitter;
  readonly #agenda: TimerHeap<Tenure>;
  /** How long to wait after the next renewal that fails. */
  #pauseMs = RETRY_FIRST_MS;

  readonly #onStray: (tenure: Tenure) => void;

  /** `onStray` hears of a lease that was put back just when its holder let go of it: nobody renews it, or releases it. */
  constructor(parts: {
    store: Store;
    clock: Clock;
    random: Random;
    events: Emitter;
    onStray(tenure: Tenure): void;
  }) {
    this.#store = parts.store;
    this.#onStray = parts.onStray;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#events = parts.events;
    this.#agenda = new TimerHeap(parts.clock, (lateMs) => this.#onDue(lateMs));
  }

  get size(): number {
    return this.#agenda.size;
  }

  tenures(): Iterable<Tenure> {
    return this.#agenda;
  }

  keep(tenure: Tenure): void {
    const { renewEveryMs } = tenure.terms.timings;
    this.#agenda.schedule(tenure, tenure.acquiredAtMs + jittered(renewEveryMs, this.#random));
  }

  drop(tenure: Tenure): void {
    this.#agenda.remove(tenure);
  }

  renewNow(tenure: Tenure): void {
    if (!tenure.renewing && tenure.slot >= 0)
      this.#agenda.schedule(tenure, this.#clock.monotonicMs());
  }

  /** The store may have lost what this process holds: what is gone is put back now, not at the next renewal. */
  renewAll(): void {
    for (const tenure of [...this.#agenda]) this.renewNow(tenure);
  }

  /** Renews one at once, and says whether the store has confirmed it. What else its answer means, the next renewal finds out. */
  async renew(tenure: Tenure): Promise<boolean> {
    if (tenure.isOver || tenure.slot < 0) return false;
    const sent = confirmationNow(this.#clock);
    const { ttlMs, operationTimeoutMs: timeoutMs } = tenure.terms.timings;
    const replies = await this.#store.leases
      .renew([asHolding(tenure)], { ttlMs, timeoutMs })
      .catch(() => null);
    if (replies?.[0]?.kind !== 'renewed') {
      this.renewNow(tenure);
      return false;
    }
    tenure.confirm(sent);
    return tenure.isHeld();
  }

  close(): void {
    this.#agenda.clear();
  }

  #onDue(lateMs: number): void {
    if (lateMs > LATE_MS) this.#events.emit('loop.delayed', { lateMs });
    const nowMs = this.#clock.monotonicMs();
    const batches = new Map<Terms, Map<string, Tenure[]>>();
    const waiting: Tenure[] = [];
    for (const tenure of this.#agenda.takeDue(nowMs, early)) {
      // A tenure past its deadline is lost, whatever the store would say: a renewal never resurrects.
      if (tenure.deadlineMs <= nowMs) tenure.lose('expired');
      if (tenure.isOver) continue;
      waiting.push(tenure);
      if (tenure.renewing) continue;
      tenure.renewing = true;
      this.#join(batches, tenure);
    }
    // While its renewal is under way a tenure is next looked at when its deadline has come.
    this.#agenda.scheduleAll(waiting, ({ deadlineMs }) => deadlineMs);
    for (const [terms, lanes] of batches) {
      for (const batch of lanes.values()) void this.#renewAll(terms, batch);
    }
  }

  /** Per lane: a part of the store that hangs must not keep the others' renewals waiting. */
  #join(batches: Map<Terms, Map<string, Tenure[]>>, tenure: Tenure): void {
    const lanes = batches.get(tenure.terms) ?? new Map<string, Tenure[]>();
    batches.set(tenure.terms, lanes);
    const lane = this.#store.leases.lane?.(tenure.storeKey) ?? '';
    const batch = lanes.get(lane);
    if (batch === undefined) lanes.set(lane, [tenure]);
    else batch.push(tenure);
  }

  /** In chunks, a few at a time. Never rejects. */
  async #renewAll(terms: Terms, tenures: Tenure[]): Promise<void> {
    const startMs = this.#clock.monotonicMs();
    let next = 0;
    let confirmed = 0;
    const lane = async () => {
      while (next < tenures.length) {
        const chunk = tenures.slice(next, next + CHUNK);
        next += CHUNK;
        const renewed = await this.#renewChunk(terms, chunk);
        // Not added up around the await: lanes would overwrite each other.
        confirmed += renewed;
      }
    };
    const length = Math.min(CHUNKS_IN_FLIGHT, Math.ceil(tenures.length / CHUNK));
    await Promise.all(Array.from({ length }, lane));
    this.#pauseMs = confirmed > 0 ? RETRY_FIRST_MS : Math.min(this.#pauseMs * 2, RETRY_MOST_MS);
    if (confirmed > 0) {
      this.#events.emit('lease.renewed', {
        leaseClass: terms.leaseClass.name,
        count: confirmed,
        tookMs: this.#clock.monotonicMs() - startMs,
      });
    }
  }

  async #renewChunk({ timings }: Terms, chunk: readonly Tenure[]): Promise<number> {
    const sent = confirmationNow(this.#clock);
    const { ttlMs, operationTimeoutMs: timeoutMs } = timings;
    const keepFences = chunk.some(({ fenceKeptMs }) => sent.sentAtMs - fenceKeptMs > FENCE_AGE_MS);
    const replies: readonly RenewReply[] = await this.#store.leases
      .renew(chunk.map(asHolding), { ttlMs, timeoutMs, keepFences })
      .catch((error: Error) => chunk.map(() => ({ kind: 'failed', error })));
    // Jitter for the chunk, not for the tenure: those renewed together stay together.
    const againAtMs = sent.sentAtMs + jittered(timings.renewEveryMs, this.#random);
    const vanished: Tenure[] = [];
    const forgotten: Tenure[] = [];
    let confirmed = 0;
    for (let i = 0; i < chunk.length; i++) {
      const tenure = chunk[i] as Tenure;
      const reply = replies[i];
      if (tenure.slot < 0) {
        // Let go of while the renewal was under way: its release is on the way, or it has been lost.
        tenure.renewing = false;
      } else if (reply?.kind === 'renewed') {
        if (keepFences) tenure.fenceKeptMs = sent.sentAtMs;
        this.#confirm(tenure, sent, againAtMs);
        confirmed++;
      } else if (
        reply?.kind === 'vanished' &&
        !reply.revoked &&
        (reply.fence === tenure.fence || reply.fence === 0)
      ) {
        (reply.fence === 0 ? forgotten : vanished).push(tenure);
      } else {
        this.#refused(tenure, reply);
      }
    }
    if (vanished.length > 0) await this.#reassert(vanished, false);
    if (forgotten.length > 0) await this.#reassert(forgotten, true);
    return confirmed;
  }

  #confirm(tenure: Tenure, sent: Confirmation, againAtMs: number): void {
    tenure.renewing = false;
    tenure.confirm(sent);
    if (this.#events.hasListener('lease.extended'))
      this.#events.emit('lease.extended', { ...tenure.facts, remainingMs: tenure.remainingMs() });
    if (tenure.isOver) this.drop(tenure);
    else if (tenure.slot >= 0) this.#agenda.schedule(tenure, againAtMs);
  }

  #refused(tenure: Tenure, reply: RenewReply | undefined): void {
    tenure.renewing = false;
    if (tenure.slot < 0) return;
    if (reply?.kind === 'other' || reply?.kind === 'vanished') {
      tenure.lose(reply.revoked ? 'revoked' : 'taken_over');
    } else if (reply?.kind === 'failed' && isVoid(reply.error)) {
      tenure.lose('unsuitable', reply.error);
    } else {
      tenure.doubt('renewal_failed');
    }
    if (tenure.isOver) return;
    const pauseMs = Math.min(this.#pauseMs, tenure.terms.timings.operationTimeoutMs);
    const againAtMs = this.#clock.monotonicMs() + jittered(pauseMs, this.#random);
    this.#agenda.schedule(tenure, Math.min(againAtMs, tenure.deadlineMs));
  }

  /** The keys are gone although their time is not up: put them back, if the store can prove that nobody had them since. */
  async #reassert(tenures: readonly Tenure[], forgotten: boolean): Promise<void> {
    const sent = confirmationNow(this.#clock);
    // What was let go of meanwhile ends by the store's answer to its release, and is not ours to put back.
    for (const tenure of tenures) if (tenure.slot < 0) tenure.renewing = false;
    const kept = tenures.filter(({ slot }) => slot >= 0);
    // What has run out meanwhile is lost, not put back. On a host that may have slept past the deadline somebody else may have
    // been granted it, and a store that has lost data may have lost that: then only our own clocks say that the key is ours.
    for (const tenure of kept) if (tenure.remainingMs() === 0) tenure.lose('expired');
    const alive = kept.filter(({ state }) => state !== 'lost' && state !== 'released');
    const first = alive[0];
    if (first === undefined) return;
    const { timings } = first.terms;
    const call = { ttlMs: timings.ttlMs, forgotten, timeoutMs: timings.operationTimeoutMs };
    const replies = await this.#store.leases
      .reassert(
        alive.map(({ tenancy }) => tenancy),
        call,
      )
      .catch(() => null);
    for (const [i, tenure] of alive.entries()) {
      if (replies === null) {
        this.#refused(tenure, undefined);
      } else if (replies[i] === 'reasserted') {
        this.#confirm(tenure, sent, sent.sentAtMs + jittered(timings.renewEveryMs, this.#random));
        if (tenure.slot < 0) this.#onStray(tenure);
        else this.#events.emit('lease.reasserted', tenure.facts);
      } else {
        this.#refused(tenure, TAKEN_OVER);
      }
    }
  }
}

/** Whether this failure says that no lease of this store counts any more. Any other failure may pass. */
function isVoid(error: Error): boolean {
  return error instanceof StoreUnsuitableError && error.voidsLeases;
}

const TAKEN_OVER: RenewReply = { kind: 'other', holder: '', revoked: false };

/** A tenure that waits for its renewal may go along with others; one that waits for its deadline may not. */
function early(tenure: Tenure): number {
  return tenure.renewing ? 0 : tenure.terms.timings.renewEveryMs * EARLY_SHARE;
}

function asHolding({ storeKey, holder }: Tenure): { key: string; holder: string } {
  return { key: storeKey, holder };
}
