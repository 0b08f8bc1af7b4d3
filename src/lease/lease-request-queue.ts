/**
 * Sends the requests that many callers make in one turn of the event loop as few store calls: 64
 * callers cost one round trip. Requests are batched per verb, policy and shard (parts of the store
 * that can fail apart) and are sent when the turn is over. Two requests for the same key keep their
 * order, whatever their verbs: a request joins a batch only if no later batch already has its key.
 *
 * A request that is likely to stay alone is sent at once: no other is queued or under way, and the
 * turn before had one request.
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
import type { Call } from '../store/port/store.ts';
import type { Runtime } from '../store/runtime.ts';
import type { LeasePolicy } from './timings.ts';
import type { WakeWatch } from './wake-watch.ts';

/** Requests in one store call: about a millisecond of Redis' time. */
const BATCH = 256;
/**
 * From this size on a batch is sent in two halves: the store works on one while this process works
 * on the other.
 */
const MIN_SPLIT = 128;
/** Requests queued in one turn. Any further one is refused. */
const MAX_QUEUED = 100_000;

/** `sent`: the moment from which a grant counts. */
export interface Acquired {
  readonly reply: AcquireReply;
  readonly sent: Confirmation;
}

interface Pending<Request, Result> {
  readonly request: Request;
  /** The end of the caller's operation timeout, which counts from its own call. */
  readonly untilMs: number;
  /**
   * The request must not be sent later. Unlike `untilMs`, it does not shorten the timeout of the
   * batch.
   */
  readonly deadlineMs?: number | undefined;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

type Verb = 'acquire' | 'release' | 'transfer';

interface Batch {
  readonly verb: Verb;
  readonly policy: LeasePolicy;
  readonly shard: string;
  /** Position in the order of sending. */
  readonly position: number;
  readonly acquires: Pending<AcquireRequest, Acquired>[];
  readonly releases: Pending<Tenancy, ReleaseReply>[];
  readonly transfers: Pending<Handover, TransferReply>[];
  /** How long the successors of the transfers have to claim. */
  readonly windowMs: number;
}

export class LeaseRequestQueue {
  readonly #rt: Runtime;
  readonly #clock: Clock;
  readonly #wakeWatch: WakeWatch;
  #batches: Batch[] = [];
  /** Per key the position of the last batch that has it, in this turn. */
  #lastPosition = new Map<string, number>();
  #queued = 0;
  #isSendScheduled = false;
  /** The store calls that are not answered yet. */
  #underWay = 0;
  /** The last batches that were sent had one request together. */
  #isSparse = true;
  #onIdle: (() => void)[] = [];

  constructor(rt: Runtime, wakeWatch: WakeWatch) {
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#wakeWatch = wakeWatch;
  }

  acquire(policy: LeasePolicy, request: AcquireRequest): Promise<Acquired> {
    if (this.#isAlone) return this.#acquireAtOnce(policy, request);
    return new Promise((resolve, reject) => {
      const untilMs = this.#clock.monotonicMs() + policy.timings.operationTimeoutMs;
      const pending = { request, untilMs, resolve, reject };
      this.#batchFor('acquire', policy, request.key, reject)?.acquires.push(pending);
    });
  }

  /**
   * `deadlineMs`: the tenure's. A later handover is refused: the key may have been granted to
   * another by then.
   */
  transfer(
    policy: LeasePolicy,
    handover: Handover,
    { windowMs, deadlineMs }: { windowMs: number; deadlineMs: number },
  ): Promise<TransferReply> {
    return new Promise((resolve, reject) => {
      const untilMs = this.#clock.monotonicMs() + policy.timings.operationTimeoutMs;
      const pending = { request: handover, untilMs, deadlineMs, resolve, reject };
      this.#batchFor('transfer', policy, handover.key, reject, windowMs)?.transfers.push(pending);
    });
  }

  release(policy: LeasePolicy, tenancy: Tenancy): Promise<ReleaseReply> {
    if (this.#isAlone) return this.#releaseAtOnce(policy, tenancy);
    return new Promise((resolve, reject) => {
      const untilMs = this.#clock.monotonicMs() + policy.timings.operationTimeoutMs;
      const pending = { request: tenancy, untilMs, resolve, reject };
      this.#batchFor('release', policy, tenancy.key, reject)?.releases.push(pending);
    });
  }

  get #isAlone(): boolean {
    return this.#isSparse && this.#underWay === 0 && !this.#isSendScheduled;
  }

  async #acquireAtOnce(policy: LeasePolicy, request: AcquireRequest): Promise<Acquired> {
    const sent = confirmationNow(this.#clock);
    this.#underWay++;
    try {
      const call = this.#acquireCall(policy, policy.timings.operationTimeoutMs);
      const [reply] = await this.#rt.store.leases.acquire([request], call);
      return { reply: reply as AcquireReply, sent };
    } finally {
      this.#answered();
    }
  }

  async #releaseAtOnce(policy: LeasePolicy, tenancy: Tenancy): Promise<ReleaseReply> {
    this.#underWay++;
    try {
      const call = { timeoutMs: policy.timings.operationTimeoutMs };
      const replies = await this.#rt.store.leases.release([tenancy], call);
      this.#watchWoken([tenancy], replies);
      return replies[0] as ReleaseReply;
    } finally {
      this.#answered();
    }
  }

  #answered(): void {
    this.#underWay--;
    if (this.#underWay === 0) for (const run of this.#onIdle.splice(0)) run();
  }

  #batchFor(
    verb: Verb,
    policy: LeasePolicy,
    key: string,
    reject: (error: unknown) => void,
    windowMs = 0,
  ): Batch | null {
    if (this.#queued >= MAX_QUEUED) {
      reject(new OverloadedError({ limit: MAX_QUEUED }));
      return null;
    }
    this.#queued++;
    if (!this.#isSendScheduled) {
      this.#isSendScheduled = true;
      this.#clock.soon(() => this.#send());
    }
    const minPosition = this.#lastPosition.get(key) ?? 0;
    const shard = this.#rt.store.leases.lane?.(key) ?? '';
    let batch = this.#batches.findLast(
      (open) =>
        open.verb === verb &&
        open.policy === policy &&
        open.shard === shard &&
        open.windowMs === windowMs,
    );
    if (batch === undefined || batch.position < minPosition || size(batch) >= BATCH) {
      const position = this.#batches.length;
      batch = {
        verb,
        policy,
        shard,
        windowMs,
        position,
        acquires: [],
        releases: [],
        transfers: [],
      };
      this.#batches.push(batch);
    }
    // A key that is not noted is in the first batch, or in none.
    if (batch.position > 0) this.#lastPosition.set(key, batch.position);
    return batch;
  }

  /** Resolves when no request is queued or in flight. */
  async drained(): Promise<void> {
    while (this.#queued > 0 || this.#underWay > 0) {
      if (this.#underWay > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
      await new Promise<void>((resolve) => this.#clock.afterInput(resolve));
    }
  }

  /**
   * Callers that were answered together ask together: all of them would wait for the store, and
   * then the store for all of them. So if no request is in flight, half of a large batch is sent at
   * once and the rest a moment later. From then on two groups take turns, and both sides are always
   * busy.
   */
  #send(): void {
    const first = this.#batches[0];
    const isIdle = this.#underWay === 0;
    if (isIdle && first !== undefined && size(first) >= MIN_SPLIT) {
      void this.#sendBatch(takeHalf(first));
      this.#clock.afterInput(() => this.#sendAll());
    } else {
      this.#sendAll();
    }
  }

  #sendAll(): void {
    const batches = this.#batches;
    this.#batches = [];
    if (this.#lastPosition.size > 0) this.#lastPosition = new Map();
    this.#isSparse = this.#queued === 1;
    this.#queued = 0;
    this.#isSendScheduled = false;
    for (const batch of batches) void this.#sendBatch(batch);
  }

  #sendBatch(batch: Batch): Promise<void> {
    if (batch.verb === 'acquire') return this.#sendAcquires(batch);
    const { leases } = this.#rt.store;
    if (batch.verb === 'release')
      return this.#sendPlain(batch.releases, (tenancies, call) => this.#release(tenancies, call));
    const { windowMs } = batch;
    return this.#sendPlain(batch.transfers, (handovers, call) =>
      leases.transfer(handovers, { ...call, windowMs }),
    );
  }

  async #sendAcquires({ policy, acquires }: Batch): Promise<void> {
    const sent = confirmationNow(this.#clock);
    const inTime = this.#inTime(acquires, sent.sentAtMs);
    const call = this.#acquireCall(policy, soonest(inTime) - sent.sentAtMs);
    const requests = inTime.map(({ request }) => request);
    await this.#answer(
      inTime,
      () => this.#rt.store.leases.acquire(requests, call),
      (reply) => ({ reply, sent }),
    );
  }

  #acquireCall({ timings }: LeasePolicy, timeoutMs: number): AcquireCall {
    return { ttlMs: timings.ttlMs, inbox: this.#rt.instanceId, timeoutMs };
  }

  /** A key that is kept is freed by its expiry, which wakes no waiter. */
  watchKept(storeKey: string, keptForMs: number): void {
    this.#wakeWatch.watch(storeKey, keptForMs);
  }

  async #release(tenancies: Tenancy[], call: Call): Promise<ReleaseReply[]> {
    const replies = await this.#rt.store.leases.release(tenancies, call);
    this.#watchWoken(tenancies, replies);
    return replies;
  }

  /** A release may wake a waiter: `WakeWatch` makes sure that the key is taken. */
  #watchWoken(tenancies: readonly Tenancy[], replies: readonly ReleaseReply[]): void {
    for (let i = 0; i < replies.length; i++) {
      const reply = replies[i];
      const key = tenancies[i]?.key;
      if (reply?.kind === 'released' && reply.woke && key !== undefined) this.#wakeWatch.watch(key);
    }
  }

  async #sendPlain<Request, Reply>(
    pending: Pending<Request, Reply>[],
    send: (requests: Request[], call: Call) => Promise<Reply[]>,
  ): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const inTime = this.#inTime(pending, nowMs);
    const requests = inTime.map(({ request }) => request);
    await this.#answer(
      inTime,
      () => send(requests, { timeoutMs: soonest(inTime) - nowMs }),
      (reply) => reply,
    );
  }

  /** Calls the store, and resolves each request with its own reply, or rejects all of them. */
  async #answer<Request, Reply, Result>(
    pending: readonly Pending<Request, Result>[],
    call: () => Promise<Reply[]>,
    result: (reply: Reply) => Result,
  ): Promise<void> {
    if (pending.length === 0) return;
    this.#underWay++;
    let replies: Reply[];
    try {
      replies = await call();
    } catch (error) {
      this.#answered();
      for (const { reject } of pending) reject(error);
      return;
    }
    this.#answered();
    for (let i = 0; i < pending.length; i++) pending[i]?.resolve(result(replies[i] as Reply));
  }

  /** Rejects requests that a blocked event loop has made too late to send. */
  #inTime<Request, Result>(
    pending: Pending<Request, Result>[],
    nowMs: number,
  ): Pending<Request, Result>[] {
    return pending.filter(({ untilMs, deadlineMs = untilMs, reject }) => {
      if (untilMs > nowMs && deadlineMs > nowMs) return true;
      const why = 'the event loop was blocked for longer than the operation may take';
      reject(new StoreUnreachableError({ store: this.#rt.store.name, operation: 'send', why }));
      return false;
    });
  }
}

function soonest(pending: readonly { untilMs: number }[]): number {
  return pending.reduce((atMs, { untilMs }) => Math.min(atMs, untilMs), Number.POSITIVE_INFINITY);
}

/** Removes the first half of a batch and returns it. */
function takeHalf(batch: Batch): Batch {
  const half = <T>(pending: T[]) => pending.splice(0, Math.ceil(pending.length / 2));
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
