/**
 * Acquires leases. Behind `Leases` are `LeaseRequestQueue` (sends many requests as few),
 * `WaitQueue` (for keys that are held), `Renewer`, `Releaser`, `OrphanedGrantQueue` (releases
 * grants whose answers never came), `WakeWatch` (makes sure that a freed key is taken) and
 * `LossWatch` (after the store lost data).
 */
import { isDoneWithin, timeLeft } from '../core/clock.ts';
import { ClosedError, ConfigError, type HeldReason, OutcomeUnknownError } from '../core/errors.ts';
import { checkKey } from '../core/ids.ts';
import type { Confirmation } from '../core/validity.ts';
import type { MaxTtls } from '../store/port/keyspaces.ts';
import type { AcquireRequest } from '../store/port/lease-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { acquireAll } from './acquire-all.ts';
import type { Acquisition, AttemptResult, Busy } from './acquisition.ts';
import { type Census, censusOf } from './census.ts';
import type { GuardableTransaction } from './guard.ts';
import { Lease, type LeaseSet } from './lease.ts';
import { LeaseRequestQueue } from './lease-request-queue.ts';
import { LossWatch } from './loss-watch.ts';
import { NamedHolderSet } from './named-holder-set.ts';
import { type AcquireOptions, checkAcquireOptions, waitMs } from './options.ts';
import { OrphanedGrantQueue } from './orphaned-grant-queue.ts';
import { Releaser } from './release.ts';
import { Renewer } from './renewer.ts';
import { type RevokeOptions, type RevokeResult, revokeByFence } from './revocation.ts';
import { Tenure } from './tenure.ts';
import { LEASE_CLASSES, type LeaseClassName, PolicyCache, type Timings } from './timings.ts';
import { WaitQueue } from './wait-queue.ts';
import { WakeWatch } from './wake-watch.ts';
import { withLease } from './with-lease.ts';

const NO_OPTIONS: AcquireOptions = {};
const OBSERVER = {
  field: 'observe',
  value: true,
  rule: 'a Holdfast that was opened with observe takes no leases. Open one without it',
};
/** How long `close` waits for the last answers of the store, and for the release of late grants. */
const LAST_ANSWERS_MS = 1_000;
/** The share of that for the answers. */
const ANSWERS_SHARE = 1 / 2;

export type AcquireResult =
  | { readonly ok: true; readonly lease: Lease }
  | {
      readonly ok: false;
      readonly key: string;
      readonly holder: string;
      readonly fence: number;
      readonly expiresInMs: number;
      readonly reason: HeldReason;
      readonly waitedMs: number;
    }
  | {
      readonly ok: false;
      readonly key: string;
      /**
       * The store may have lost leases that are held. It names no holder, and grants nothing for
       * `expiresInMs`.
       */
      readonly reason: 'quarantine';
      readonly expiresInMs: number;
      readonly waitedMs: number;
    };

/** What the work under a lease is given. */
export interface HeldContext {
  readonly signal: AbortSignal;
  readonly fence: number;
  readonly lease: Lease;
  isHeld(): boolean;
  assertHeld(): void;
  /** PostgreSQL: ties a transaction of yours to the lease. See `Lease.guard`. */
  guard(transaction: GuardableTransaction): Promise<void>;
}

export class Leases {
  readonly #rt: Runtime;
  readonly #isObserver: boolean;
  readonly #policies: PolicyCache;
  readonly #holders = new NamedHolderSet();
  readonly #wakeWatch: WakeWatch;
  readonly #requests: LeaseRequestQueue;
  readonly #orphans: OrphanedGrantQueue;
  readonly #renewer: Renewer;
  readonly #releaser: Releaser;
  readonly #notices: LossWatch;
  readonly #waitQueue: WaitQueue;
  #calls = 0;
  #closed: Promise<void> | null = null;

  /** `maxTtls`: how long leases may last, per keyspace; null for an observer, which takes none. */
  constructor(rt: Runtime, maxTtls: MaxTtls | null) {
    this.#rt = rt;
    this.#isObserver = maxTtls === null;
    this.#policies = new PolicyCache(maxTtls);
    this.#wakeWatch = new WakeWatch(rt);
    this.#requests = new LeaseRequestQueue(rt, this.#wakeWatch);
    this.#orphans = new OrphanedGrantQueue(rt, this.#holders, this.#wakeWatch);
    this.#renewer = new Renewer(rt, this.#orphans);
    this.#releaser = new Releaser(rt, this.#requests, this.#renewer, this.#orphans);
    this.#notices = new LossWatch(rt, this.#renewer);
    this.#waitQueue = new WaitQueue(rt, this, this.#wakeWatch, this.#notices);
  }

  /** How many leases this process holds. */
  get held(): number {
    return this.#renewer.size;
  }

  /** The leases of this process by class. Reads every lease. */
  census(): Census {
    return censusOf(this.#renewer.tenures(), this.#rt.clock.monotonicMs());
  }

  /** The timings of an acquire with these options; throws if they are invalid. */
  check(options: AcquireOptions): Timings {
    checkAcquireOptions(options);
    return this.#policies.for(options).timings;
  }

  /**
   * Listens for keys of a class that others hand to a holder of this process, which should then
   * acquire them. `onGap`: offers may have been missed. False if there is no subscription now: call
   * it again later.
   */
  listenForOffers(
    name: LeaseClassName,
    listener: { onOffer(key: string): void; onGap(): void },
  ): Promise<boolean> {
    const { keyspace } = LEASE_CLASSES[name];
    const onOffer = (storeKey: string) => {
      if (!storeKey.startsWith(keyspace)) return false;
      listener.onOffer(storeKey.slice(keyspace.length));
      return true;
    };
    return this.#waitQueue.listenForOffers(onOffer, () => listener.onGap());
  }

  /** `onFreed` is called when the lease was released, and no waiter was woken for the key. */
  async acquire(
    key: string,
    options: AcquireOptions = NO_OPTIONS,
    onFreed?: () => void,
  ): Promise<AcquireResult> {
    checkKey(key);
    if (options !== NO_OPTIONS) checkAcquireOptions(options);
    if (this.#isObserver) throw new ConfigError(OBSERVER);
    const acquisition = this.#acquisition(key, options, onFreed);
    const { isNamed, signal } = acquisition;
    if (this.#closed !== null) throw new ClosedError({ operation: 'acquire' });
    signal?.throwIfAborted();
    const { clock } = this.#rt;
    const isWaiting = acquisition.waitMs > 0;
    const startMs = isWaiting ? clock.monotonicMs() : 0;
    if (isNamed) this.#holders.begin(acquisition);
    let result: AttemptResult;
    try {
      result = await (isWaiting ? this.#waitQueue.wait(acquisition) : this.attempt(acquisition));
    } catch (error) {
      throw isWaiting && signal?.aborted ? signal.reason : error;
    } finally {
      acquisition.isPending = false;
      if (isNamed) this.#holders.end(acquisition);
    }
    const waitedMs = isWaiting ? clock.monotonicMs() - startMs : 0;
    if (result.kind === 'busy') return this.#refuse(acquisition, result, waitedMs);
    this.#emitAcquired(acquisition, result.lease, waitedMs);
    return { ok: true, lease: result.lease };
  }

  acquireAll(keys: readonly string[], options: AcquireOptions = {}): Promise<LeaseSet> {
    return acquireAll(this.#rt, this, keys, options);
  }

  withLease<T>(
    key: string,
    work: (held: HeldContext) => Promise<T> | T,
    options: AcquireOptions = {},
  ): Promise<T> {
    return withLease(this, key, work, options);
  }

  /**
   * Asks the store once. `waitedMs`: the store queues the inbox of this process if the key is held.
   */
  async attempt(acquisition: Acquisition, waitedMs?: number): Promise<AttemptResult> {
    const busy = this.#busyHere(acquisition);
    if (busy !== null) return busy;
    const { policy, storeKey, holder, fence, fenceFloor } = acquisition;
    const request: Mutable<AcquireRequest> = { key: storeKey, holder };
    if (fence !== undefined) request.fence = fence;
    if (fenceFloor !== undefined) request.fenceFloor = fenceFloor;
    if (waitedMs !== undefined) request.waitedMs = waitedMs;
    try {
      const { reply, sent } = await this.#requests.acquire(policy, request);
      if (reply.kind === 'failed') throw reply.error;
      if (reply.kind === 'busy') return reply;
      return { kind: 'granted', lease: this.#keep(acquisition, { fence: reply.fence, sent }) };
    } catch (error) {
      if (error instanceof OutcomeUnknownError || error instanceof ClosedError) {
        this.#orphans.watch(acquisition, acquisition);
      }
      throw error;
    }
  }

  /**
   * Ends a lease of any holder. Without `force`, the key is not granted while that holder may still
   * act.
   */
  async revoke(key: string, options: RevokeOptions): Promise<RevokeResult> {
    checkKey(key);
    const named = { class: options.class ?? 'lease' };
    checkAcquireOptions(named);
    const { leaseClass, timings } = this.#policies.for(named);
    const storeKey = leaseClass.keyspace + key;
    const { store, events } = this.#rt;
    const reply = await revokeByFence(store, storeKey, timings.operationTimeoutMs, options);
    const { fence } = reply;
    if (reply.kind === 'not-held') return { revoked: false, holder: reply.holder, fence };
    if (reply.woke) this.#wakeWatch.watch(storeKey);
    const { holder, mayActForMs } = reply;
    events.emit('lease.revoked', {
      leaseClass: leaseClass.name,
      key,
      holder,
      fence,
      reason: options.reason,
      force: options.force ?? false,
      mayActForMs,
    });
    // A lease of this process need not wait for its next renewal to find out.
    const ours = [...this.#renewer.tenures()].filter((tenure) => tenure.storeKey === storeKey);
    for (const tenure of ours) this.#renewer.renewNow(tenure);
    return { revoked: true, holder, fence, mayActForMs };
  }

  /** Another request has freed a key of a class: makes sure that a waiter takes it. */
  watchFreed(name: LeaseClassName, key: string): void {
    this.#wakeWatch.watch(LEASE_CLASSES[name].keyspace + key);
  }

  /**
   * Asks the work under all leases to stop, and waits for their release. Leases that are not
   * released expire.
   */
  close(withinMs: number, wholeMs = withinMs + LAST_ANSWERS_MS): Promise<void> {
    this.#closed ??= this.#close(withinMs, wholeMs);
    return this.#closed;
  }

  async #close(withinMs: number, wholeMs: number): Promise<void> {
    const { clock, events } = this.#rt;
    const leftMs = timeLeft(clock, wholeMs);
    this.#waitQueue.close(new ClosedError({ operation: 'acquire' }));
    this.#notices.close();
    const open = [...this.#renewer.tenures()];
    for (const tenure of open)
      tenure.stopWork(new ClosedError({ operation: `lease '${tenure.key}'` }));
    const ended = open.map((tenure) => new Promise<void>((resolve) => tenure.onWorkEnded(resolve)));
    if (ended.length > 0) await isDoneWithin(clock, withinMs, Promise.all(ended));
    this.#releaser.close();
    for (const tenure of this.#renewer.tenures()) {
      const why = 'closed before it was released';
      events.emit('lease.abandoned', { ...tenure.facts, heldForMs: tenure.heldForMs, why });
    }
    this.#renewer.close();
    // Requests in flight may yet be granted: wait for their answers, then release the grants.
    await isDoneWithin(clock, leftMs() * ANSWERS_SHARE, this.#requests.drained());
    const last = Promise.all([this.#orphans.close(), this.#wakeWatch.close()]);
    await isDoneWithin(clock, leftMs(), last);
  }

  #acquisition(
    key: string,
    options: AcquireOptions,
    onFreed: (() => void) | undefined,
  ): Acquisition {
    const policy = this.#policies.for(options);
    return {
      policy,
      key,
      storeKey: policy.leaseClass.keyspace + key,
      holder: options.holder ?? `${this.#rt.instanceId}/${(this.#calls++).toString(36)}`,
      isNamed: options.holder !== undefined,
      fence: options.fence,
      fenceFloor: options.fenceFloor,
      untilReleased: options.untilReleased ?? false,
      waitMs: waitMs(options),
      signal: options.signal,
      onFreed,
      isPending: true,
      tenure: null,
    };
  }

  /**
   * What this process knows without the store: the key was revoked from it, or its earlier work has
   * not ended.
   */
  #busyHere(acquisition: Acquisition): Busy | null {
    const { storeKey, holder, isNamed } = acquisition;
    const revokedForMs = this.#renewer.revokedForMs(storeKey);
    if (revokedForMs > 0) {
      return { kind: 'busy', reason: 'revoked', holder: '', fence: 0, expiresInMs: revokedForMs };
    }
    const earlier = isNamed ? this.#holders.earlier(acquisition) : undefined;
    if (earlier === undefined) return null;
    const reason = earlier.state === 'held' ? 'held' : 'unsettled';
    return {
      kind: 'busy',
      reason,
      holder,
      fence: earlier.fence,
      expiresInMs: earlier.workLeftMs(),
    };
  }

  /** Keeps what the store has granted: the tenure is renewed from here on. */
  #keep(acquisition: Acquisition, grant: { fence: number; sent: Confirmation }): Lease {
    const tenure = new Tenure(this.#rt, this.#renewer, acquisition, grant);
    if (this.#closed !== null) throw new ClosedError({ operation: 'acquire' });
    if (tenure.remainingMs() === 0) {
      // The event loop was blocked before it read the answer. The grant is over here, but not in
      // the store.
      throw new OutcomeUnknownError({
        store: this.#rt.store.name,
        operation: 'acquire',
        afterMs: tenure.heldForMs,
        why: 'the answer was read after its own deadline',
      });
    }
    acquisition.tenure = tenure;
    tenure.untilReleased = acquisition.untilReleased;
    tenure.onFreed = acquisition.onFreed;
    this.#renewer.add(tenure);
    if (acquisition.isNamed) {
      this.#holders.add(tenure);
      tenure.onWorkEnded(() => {
        this.#holders.remove(tenure);
        this.#waitQueue.wake(tenure.storeKey);
      });
    }
    return new Lease(tenure, this.#releaser, this.#rt.store);
  }

  #emitAcquired(acquisition: Acquisition, lease: Lease, waitedMs: number): void {
    const { policy, key, holder, tenure } = acquisition;
    const { events } = this.#rt;
    if (!events.hasListener('lease.acquired')) return;
    events.emit('lease.acquired', {
      leaseClass: policy.leaseClass.name,
      key,
      holder,
      fence: lease.fence,
      ttlMs: policy.timings.ttlMs,
      remainingMs: lease.remainingMs(),
      waitedMs,
      tookMs: tenure?.heldForMs ?? 0,
    });
  }

  #refuse({ policy, key, holder }: Acquisition, busy: Busy, waitedMs: number): AcquireResult {
    const { reason, fence, expiresInMs, holder: by } = busy;
    const leaseClass = policy.leaseClass.name;
    this.#rt.events.emit('lease.refused', {
      leaseClass,
      key,
      holder,
      fence,
      by,
      reason,
      expiresInMs,
    });
    if (reason === 'quarantine') return { ok: false, key, reason, expiresInMs, waitedMs };
    return { ok: false, key, holder: by, fence, expiresInMs, reason, waitedMs };
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
