/**
 * Sends what many callers ask for in one turn of the event loop as few store calls: 64 callers cost one round trip.
 * Requests are gathered per verb, terms and lane (parts of the store that can fail apart) and go out when the turn is
 * over. Two requests for the same key keep their order, whatever their verbs: a request joins a batch only if no later batch already has its key.
 */
import type { Clock } from '../core/clock.ts';
import { OverloadedError, StoreUnreachableError } from '../core/errors.ts';
import { type Confirmation, confirmationNow } from '../core/validity.ts';
import type {
  AcquireCall,
  AcquireReply,
  AcquireRequest,
  Handover,
  ReleaseReply,
  Tenancy,
  TransferReply,
} from '../store/port/lease-store.ts';
import type { Call, Store } from '../store/port/store.ts';
import type { Terms } from './tenure.ts';

/** Requests in one store call: about a millisecond of Redis' time. */
const BATCH = 256;
/** So many requests are worth splitting in two, so that the store works on one half while we work on the other. */
const WORTH_SPLITTING = 128;
/** Requests gathered in one turn; one more is refused, since a caller that asks for so many does not mean it. */
const MOST_GATHERED = 100_000;

/** A grant counts from the moment its batch was sent. */
export interface Acquired {
  readonly reply: AcquireReply;
  readonly sent: Confirmation;
}

interface Waiting<Request, Result> {
  readonly request: Request;
  /** No later than this: each caller's time counts from its own call. */
  readonly untilMs: number;
  /** It must not be sent later than this. Unlike `untilMs`, that does not shorten the time of those it is sent with. */
  readonly deadlineMs?: number;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

type Verb = 'acquire' | 'release' | 'transfer';

interface Batch {
  readonly verb: Verb;
  readonly terms: Terms;
  readonly lane: string;
  /** Position in the order of sending. */
  readonly place: number;
  readonly acquires: Waiting<AcquireRequest, Acquired>[];
  readonly releases: Waiting<Tenancy, ReleaseReply>[];
  readonly transfers: Waiting<Handover, TransferReply>[];
  /** How long the successors of its transfers have to claim. */
  readonly windowMs: number;
}

export class LeaseRequests {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #inbox: string;
  #batches: Batch[] = [];
  /** Per key the place of the last batch that has it, in this turn. */
  #lastPlace = new Map<string, number>();
  #gathered = 0;
  #isSendingSoon = false;
  readonly #underWay = new Set<Promise<void>>();

  constructor(parts: { store: Store; clock: Clock; inbox: string }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#inbox = parts.inbox;
  }

  acquire(terms: Terms, request: AcquireRequest): Promise<Acquired> {
    return new Promise((resolve, reject) => {
      const untilMs = this.#clock.monotonicMs() + terms.timings.operationTimeoutMs;
      const waiting = { request, untilMs, resolve, reject };
      this.#gather('acquire', terms, request.key, reject)?.acquires.push(waiting);
    });
  }

  /** `deadlineMs`: of the tenure. A handover that would be sent later is refused: others may have been granted the key by then. */
  transfer(
    terms: Terms,
    handover: Handover,
    { windowMs, deadlineMs }: { windowMs: number; deadlineMs: number },
  ): Promise<TransferReply> {
    return new Promise((resolve, reject) => {
      const untilMs = this.#clock.monotonicMs() + terms.timings.operationTimeoutMs;
      const waiting = { request: handover, untilMs, deadlineMs, resolve, reject };
      this.#gather('transfer', terms, handover.key, reject, windowMs)?.transfers.push(waiting);
    });
  }

  release(terms: Terms, tenancy: Tenancy): Promise<ReleaseReply> {
    return new Promise((resolve, reject) => {
      const untilMs = this.#clock.monotonicMs() + terms.timings.operationTimeoutMs;
      const waiting = { request: tenancy, untilMs, resolve, reject };
      this.#gather('release', terms, tenancy.key, reject)?.releases.push(waiting);
    });
  }

  #gather(
    verb: Verb,
    terms: Terms,
    key: string,
    reject: (error: unknown) => void,
    windowMs = 0,
  ): Batch | null {
    if (this.#gathered >= MOST_GATHERED) {
      reject(new OverloadedError({ limit: MOST_GATHERED }));
      return null;
    }
    this.#gathered++;
    if (!this.#isSendingSoon) {
      this.#isSendingSoon = true;
      this.#clock.soon(() => this.#send());
    }
    const notBefore = this.#lastPlace.get(key) ?? 0;
    const lane = this.#store.leases.lane?.(key) ?? '';
    let batch = this.#batches.findLast(
      (open) =>
        open.verb === verb &&
        open.terms === terms &&
        open.lane === lane &&
        open.windowMs === windowMs,
    );
    if (batch === undefined || batch.place < notBefore || size(batch) >= BATCH) {
      const place = this.#batches.length;
      batch = { verb, terms, lane, windowMs, place, acquires: [], releases: [], transfers: [] };
      this.#batches.push(batch);
    }
    this.#lastPlace.set(key, batch.place);
    return batch;
  }

  /** Resolves when nothing is gathered and nothing is under way. */
  async drained(): Promise<void> {
    while (this.#gathered > 0 || this.#underWay.size > 0) {
      await Promise.all(this.#underWay);
      await new Promise<void>((resolve) => this.#clock.afterInput(resolve));
    }
  }

  /**
   * Callers that were answered together ask together: all of them would wait for the store, and the store for all of them.
   * So where nothing is under way only half is sent at once, and the rest a moment later; from then on two groups
   * take turns, and both sides are always at work.
   */
  #send(): void {
    const first = this.#batches[0];
    const isIdle = this.#underWay.size === 0;
    if (isIdle && first !== undefined && size(first) >= WORTH_SPLITTING) {
      this.#dispatch(takeHalf(first));
      this.#clock.afterInput(() => this.#sendAll());
    } else {
      this.#sendAll();
    }
  }

  #sendAll(): void {
    const batches = this.#batches;
    this.#batches = [];
    this.#lastPlace = new Map();
    this.#gathered = 0;
    this.#isSendingSoon = false;
    for (const batch of batches) this.#dispatch(batch);
  }

  #dispatch(batch: Batch): void {
    const sending = this.#sendBatch(batch);
    this.#underWay.add(sending);
    void sending.finally(() => this.#underWay.delete(sending));
  }

  #sendBatch(batch: Batch): Promise<void> {
    if (batch.verb === 'acquire') return this.#sendAcquires(batch);
    const { leases } = this.#store;
    if (batch.verb === 'release')
      return this.#sendPlain(batch.releases, (tenures, call) => leases.release(tenures, call));
    const { windowMs } = batch;
    return this.#sendPlain(batch.transfers, (handovers, call) =>
      leases.transfer(handovers, { ...call, windowMs }),
    );
  }

  async #sendAcquires({ terms, acquires }: Batch): Promise<void> {
    const sent = confirmationNow(this.#clock);
    const inTime = this.#inTime(acquires, sent.sentAtMs);
    const call: AcquireCall = {
      ttlMs: terms.timings.ttlMs,
      inbox: this.#inbox,
      timeoutMs: soonest(inTime) - sent.sentAtMs,
    };
    const requests = inTime.map(({ request }) => request);
    await answer(
      inTime,
      () => this.#store.leases.acquire(requests, call),
      (reply) => ({ reply, sent }),
    );
  }

  async #sendPlain<Request, Reply>(
    waiting: Waiting<Request, Reply>[],
    send: (requests: Request[], call: Call) => Promise<Reply[]>,
  ): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const inTime = this.#inTime(waiting, nowMs);
    const requests = inTime.map(({ request }) => request);
    await answer(
      inTime,
      () => send(requests, { timeoutMs: soonest(inTime) - nowMs }),
      (reply) => reply,
    );
  }

  /** Refuses what a blocked event loop has made too late to send. */
  #inTime<Request, Result>(
    waiting: Waiting<Request, Result>[],
    nowMs: number,
  ): Waiting<Request, Result>[] {
    return waiting.filter(({ untilMs, deadlineMs = untilMs, reject }) => {
      if (untilMs > nowMs && deadlineMs > nowMs) return true;
      const why = 'the event loop was blocked for longer than the operation may take';
      reject(new StoreUnreachableError({ store: this.#store.name, operation: 'send', why }));
      return false;
    });
  }
}

/** Calls the store and hands each caller its own reply, or all of them the error. */
async function answer<Request, Reply, Result>(
  waiting: readonly Waiting<Request, Result>[],
  call: () => Promise<Reply[]>,
  result: (reply: Reply) => Result,
): Promise<void> {
  if (waiting.length === 0) return;
  try {
    const replies = await call();
    for (let i = 0; i < waiting.length; i++) waiting[i]?.resolve(result(replies[i] as Reply));
  } catch (error) {
    for (const { reject } of waiting) reject(error);
  }
}

function soonest(waiting: readonly { untilMs: number }[]): number {
  return waiting.reduce((atMs, { untilMs }) => Math.min(atMs, untilMs), Number.POSITIVE_INFINITY);
}

/** The first half of a batch, taken out of it. */
function takeHalf(batch: Batch): Batch {
  const half = <T>(waiting: T[]) => waiting.splice(0, Math.ceil(waiting.length / 2));
  const { acquires, releases, transfers } = batch;
  return {
    ...batch,
    acquires: half(acquires),
    releases: half(releases),
    transfers: half(transfers),
  };
}

function size({ acquires, releases, transfers }: Batch): number {
  return acquires.length + releases.length + transfers.length;
}
