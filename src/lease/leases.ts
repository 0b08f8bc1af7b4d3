/**
 * The door to leases: acquire, hold, let go. Behind it stand `Dispatch` (sends many requests as few), the `WaitingRoom`
 * (for keys that are held), the `Keeper` (renews), the `Desk` (lets go), `GiveBack` (after answers that never came) and the
 * `WakeWatch` (sees that a freed key is taken).
 */
import { type Clock, isDoneWithin, timeLeft } from '../core/clock.ts';
import {
  ClosedError,
  ConfigError,
  type HeldReason,
  type LossReason,
  OutcomeUnknownError,
} from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { checkKey } from '../core/ids.ts';
import type { Random } from '../core/random.ts';
import type { MaxTtls } from '../store/port/keyspaces.ts';
import type { AcquireRequest } from '../store/port/lease-store.ts';
import type { Store } from '../store/port/store.ts';
import { acquireAll } from './acquire-all.ts';
import { LEASE_CLASSES, type LeaseClassName } from './classes.ts';
import { Lease, type LeaseSet } from './lease.ts';
import { LeaseRequests } from './lease-requests.ts';
import { LossNotices } from './loss-notices.ts';
import { type AcquireOptions, checkAcquireOptions, waitMs } from './options.ts';
import { OrphanedGrants } from './orphaned-grants.ts';
import { Releaser } from './release.ts';
import { Renewer } from './renewer.ts';
import { type RevokeOptions, type RevokeResult, revokeLease } from './revocation.ts';
import { Tenure, type Terms } from './tenure.ts';
import { TermsCache } from './terms.ts';
import type { Timings } from './timings.ts';
import { type Busy, type Outcome, WaitQueue } from './wait-queue.ts';
import { WakeWatch } from './wake-watch.ts';
import { withLease } from './with-lease.ts';

const NO_OPTIONS: AcquireOptions = {};
const OBSERVER = {
  field: 'observe',
  value: true,
  rule: 'a Holdfast that was opened with observe takes no leases. Open one without it',
};
/** How long `close` waits for answers that are still to come, and to give back what they granted. */
const LAST_LOOK_MS = 1_000;
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
      /** The store may have forgotten leases that are held. So it names no holder, and grants nothing for `expiresInMs`. */
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
}

export interface LeasesParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly instanceId: string;
  /** How long leases may last, per keyspace; null for an observer, which takes none. */
  readonly maxTtls: MaxTtls | null;
}

/** One caller's wish for one key. */
interface Wish {
  readonly terms: Terms;
  readonly key: string;
  readonly storeKey: string;
  readonly holder: string;
  /** The caller has chosen the holder, so that another call may choose the same. */
  readonly named: boolean;
  readonly fence: number | undefined;
  readonly fenceFloor: number | undefined;
  readonly untilReleased: boolean;
  /** Its caller is still waiting for the outcome. */
  isWanted: boolean;
  granted: Tenure | null;
}

export class Leases {
  readonly #parts: LeasesParts;
  readonly #terms: TermsCache;
  readonly #keeper: Renewer;
  readonly #dispatch: LeaseRequests;
  readonly #waiting: WaitQueue;
  readonly #giveBack: OrphanedGrants;
  readonly #wakes: WakeWatch;
  readonly #desk: Releaser;
  readonly #notices: LossNotices;
  /** Unsettled tenures of holders that callers have named, by key and holder. */
  readonly #named = new Map<string, Tenure>();
  /** How many callers want a key for such a holder just now. */
  readonly #wanted = new Map<string, number>();
  /** Keys revoked from us, and until when we leave them alone. */
  readonly #sittingOut = new Map<string, number>();
  #calls = 0;
  #closed: Promise<void> | null = null;

  constructor(parts: LeasesParts) {
    const inbox = parts.instanceId;
    this.#parts = parts;
    this.#dispatch = new LeaseRequests({ ...parts, inbox });
    const wakes = new WakeWatch(parts);
    this.#wakes = wakes;
    const onListening = () => this.#notices.hear();
    this.#waiting = new WaitQueue({ ...parts, inbox, wakes, onListening });
    this.#notices = new LossNotices(parts, () => this.#keeper.renewAll());
    this.#giveBack = new OrphanedGrants({ ...parts, wakes });
    const giveBack = this.#giveBack;
    this.#keeper = new Renewer({
      ...parts,
      onStray: (tenure) => giveBack.watch(tenure.terms, tenure, () => this.#isWanted(tenure)),
    });
    this.#desk = new Releaser({
      ...parts,
      dispatch: this.#dispatch,
      keeper: this.#keeper,
      giveBack,
      wakes,
      isWanted: (of) => this.#isWanted(of),
    });
    this.#terms = new TermsCache({
      ...parts,
      renewNow: (tenure) => this.#keeper.renewNow(tenure),
      onLost: (tenure, reason) => this.#onLost(tenure, reason),
    });
  }

  /** What this process holds, for those who count. */
  get kept(): Pick<Renewer, 'size' | 'tenures'> {
    return this.#keeper;
  }

  /** The timings an acquire with these options has; refuses those that none could be made with. */
  check(options: AcquireOptions): Timings {
    checkAcquireOptions(options);
    return this.#terms.for(options).timings;
  }

  /**
   * Hears of keys of a class that others hand to a holder of this process, which is then to acquire them. `onGap`: some
   * may have been missed. False if it can not listen now: ask again.
   */
  hearOffers(
    name: LeaseClassName,
    heard: { onOffer(key: string): void; onGap(): void },
  ): Promise<boolean> {
    const { keyspace } = LEASE_CLASSES[name];
    const onOffer = (storeKey: string) => {
      if (!storeKey.startsWith(keyspace)) return false;
      heard.onOffer(storeKey.slice(keyspace.length));
      return true;
    };
    return this.#waiting.hearOffers(onOffer, () => heard.onGap());
  }

  async acquire(key: string, options: AcquireOptions = NO_OPTIONS): Promise<AcquireResult> {
    checkKey(key);
    if (options !== NO_OPTIONS) checkAcquireOptions(options);
    if (this.#parts.maxTtls === null) throw new ConfigError(OBSERVER);
    const budgetMs = waitMs(options);
    const wish = this.#wish(key, options);
    if (this.#closed !== null) throw new ClosedError({ operation: 'acquire' });
    options.signal?.throwIfAborted();
    const { clock, events } = this.#parts;
    const startMs = clock.monotonicMs();
    this.#want(wish, true);
    const asking = budgetMs > 0 ? this.#wait(wish, budgetMs, options.signal) : this.#attempt(wish);
    let outcome: Outcome;
    try {
      outcome = await asking;
    } finally {
      this.#want(wish, false);
    }
    const waitedMs = budgetMs > 0 ? clock.monotonicMs() - startMs : 0;
    if (outcome.kind === 'busy') return this.#refuse(wish, outcome, waitedMs);
    const { tenure } = outcome;
    if (events.hasListener('lease.acquired')) {
      const { ttlMs } = tenure.terms.timings;
      const remainingMs = tenure.remainingMs();
      events.emit('lease.acquired', { ...tenure.facts, ttlMs, remainingMs, waitedMs });
    }
    return { ok: true, lease: new Lease(tenure, this.#desk) };
  }

  acquireAll(keys: readonly string[], options: AcquireOptions = {}): Promise<LeaseSet> {
    const acquire = (key: string, each: AcquireOptions) => this.acquire(key, each);
    return acquireAll({ ...this.#parts, acquire }, keys, options);
  }

  async withLease<T>(
    key: string,
    work: (held: HeldContext) => Promise<T> | T,
    options: AcquireOptions = {},
  ): Promise<T> {
    return withLease((wanted, asked) => this.acquire(wanted, asked), key, work, options);
  }

  /** Ends somebody's tenure. Without `force`, nobody is granted the key while the revoked holder may still act. */
  async revoke(key: string, options: RevokeOptions): Promise<RevokeResult> {
    checkKey(key);
    checkAcquireOptions({ class: options.class ?? 'lease' });
    const terms = this.#terms.for({ class: options.class ?? 'lease' });
    const parts = { ...this.#parts, wakes: this.#wakes };
    const result = await revokeLease(parts, terms, key, options);
    if (!result.revoked) return result;
    // If it was ours, there is no need to wait for the next renewal to find out.
    const storeKey = terms.leaseClass.keyspace + key;
    const ours = [...this.#keeper.tenures()].filter((tenure) => tenure.storeKey === storeKey);
    for (const tenure of ours) this.#keeper.renewNow(tenure);
    return result;
  }

  /** A larger step has freed a key of a class: sees to it that somebody who waits takes it. */
  expectTaken(name: LeaseClassName, key: string): void {
    this.#wakes.watch(LEASE_CLASSES[name].keyspace + key);
  }

  /** Lets go of everything: asks the work to stop, waits for it to say so, leaves the rest to run out. */
  close(withinMs: number, wholeMs = withinMs + LAST_LOOK_MS): Promise<void> {
    this.#closed ??= this.#close(withinMs, wholeMs);
    return this.#closed;
  }

  async #close(withinMs: number, wholeMs: number): Promise<void> {
    const { clock, events } = this.#parts;
    const leftMs = timeLeft(clock, wholeMs);
    this.#waiting.close(new ClosedError({ operation: 'acquire' }));
    this.#notices.close();
    const open = [...this.#keeper.tenures()];
    for (const tenure of open)
      tenure.recall(new ClosedError({ operation: `lease '${tenure.key}'` }));
    const settled = open.map((tenure) => new Promise<void>((resolve) => tenure.onSettled(resolve)));
    if (settled.length > 0) await isDoneWithin(clock, withinMs, Promise.all(settled));
    this.#desk.close();
    for (const tenure of this.#keeper.tenures()) {
      const why = 'closed before it was released';
      events.emit('lease.abandoned', { ...tenure.facts, heldForMs: tenure.heldForMs, why });
    }
    this.#keeper.close();
    // What is under way may yet be granted: hear the answers, then give it back.
    await isDoneWithin(clock, leftMs() * ANSWERS_SHARE, this.#dispatch.drained());
    const last = Promise.all([this.#giveBack.close(), this.#wakes.close()]);
    await isDoneWithin(clock, leftMs(), last);
  }

  #wish(key: string, options: AcquireOptions): Wish {
    const terms = this.#terms.for(options);
    return {
      terms,
      key,
      storeKey: terms.leaseClass.keyspace + key,
      holder: options.holder ?? `${this.#parts.instanceId}/${(this.#calls++).toString(36)}`,
      named: options.holder !== undefined,
      fence: options.fence,
      fenceFloor: options.fenceFloor,
      untilReleased: options.untilReleased ?? false,
      isWanted: false,
      granted: null,
    };
  }

  async #wait(wish: Wish, budgetMs: number, signal: AbortSignal | undefined): Promise<Outcome> {
    try {
      return await this.#waiting.wait({
        storeKey: wish.storeKey,
        waitMs: budgetMs,
        signal,
        attempt: (waitedMs) => this.#attempt(wish, waitedMs),
        decline: (tenure) => void this.#desk.release(tenure, {}),
      });
    } catch (error) {
      throw signal?.aborted ? signal.reason : error;
    }
  }

  /** Asks the store once. */
  async #attempt(wish: Wish, waitedMs?: number): Promise<Outcome> {
    const { terms, key, storeKey, holder, fence, fenceFloor } = wish;
    const here = this.#busyHere(wish);
    if (here !== null) return here;
    const request: Mutable<AcquireRequest> = { key: storeKey, holder };
    if (fence !== undefined) request.fence = fence;
    if (fenceFloor !== undefined) request.fenceFloor = fenceFloor;
    if (waitedMs !== undefined) request.waitedMs = waitedMs;
    try {
      const { reply, sent } = await this.#dispatch.acquire(terms, request);
      if (reply.kind === 'failed') throw reply.error;
      if (reply.kind === 'busy') return reply;
      const tenure = new Tenure(terms, { key, holder, fence: reply.fence }, sent);
      this.#take(wish, tenure);
      return { kind: 'granted', tenure };
    } catch (error) {
      if (error instanceof OutcomeUnknownError || error instanceof ClosedError) {
        this.#giveBack.watch(terms, wish, () => this.#isInUse(wish));
      }
      throw error;
    }
  }

  #want(wish: Wish, isWanted: boolean): void {
    wish.isWanted = isWanted;
    if (!wish.named) return;
    const name = nameOf(wish.storeKey, wish.holder);
    const count = (this.#wanted.get(name) ?? 0) + (isWanted ? 1 : -1);
    if (count > 0) this.#wanted.set(name, count);
    else this.#wanted.delete(name);
  }

  #take(wish: Wish, tenure: Tenure): void {
    if (this.#closed !== null) throw new ClosedError({ operation: 'acquire' });
    if (tenure.remainingMs() === 0) {
      // The event loop was blocked while the answer lay there: worth nothing any more, but the store does not know.
      const why = 'the answer was read after its own deadline';
      const { store } = this.#parts;
      const afterMs = tenure.heldForMs;
      throw new OutcomeUnknownError({ store: store.name, operation: 'acquire', afterMs, why });
    }
    wish.granted = tenure;
    tenure.untilReleased = wish.untilReleased;
    this.#keeper.keep(tenure);
    if (!wish.named) return;
    const name = nameOf(wish.storeKey, wish.holder);
    this.#named.set(name, tenure);
    tenure.onSettled(() => {
      if (this.#named.get(name) === tenure) this.#named.delete(name);
      this.#waiting.poke(wish.storeKey);
    });
  }

  /** What this process knows without asking: the key was revoked from it, or its earlier work has not settled. */
  #busyHere({ storeKey, holder, named }: Wish): Busy | null {
    const leftMs = (this.#sittingOut.get(storeKey) ?? 0) - this.#parts.clock.monotonicMs();
    if (leftMs > 0) {
      return { kind: 'busy', reason: 'revoked', holder: '', fence: 0, expiresInMs: leftMs };
    }
    const earlier = named ? this.#unsettled(nameOf(storeKey, holder)) : undefined;
    if (earlier === undefined) return null;
    const reason = earlier.state === 'held' ? 'held' : 'unsettled';
    const expiresInMs = earlier.unsettledForMs();
    return { kind: 'busy', reason, holder, fence: earlier.fence, expiresInMs };
  }

  /** The earlier tenure of a named holder, unless its work has settled by now. */
  #unsettled(name: string): Tenure | undefined {
    const earlier = this.#named.get(name);
    if (earlier === undefined || earlier.unsettledForMs() > 0) return earlier;
    earlier.settle();
    return undefined;
  }

  #isInUse(wish: Wish): boolean {
    if (wish.named) return this.#isWanted(wish);
    return wish.isWanted || (wish.granted !== null && !wish.granted.isOver);
  }

  #isWanted({ storeKey, holder }: { storeKey: string; holder: string }): boolean {
    const name = nameOf(storeKey, holder);
    return this.#unsettled(name) !== undefined || this.#wanted.has(name);
  }

  #refuse({ key, holder, terms }: Wish, busy: Busy, waitedMs: number): AcquireResult {
    const { reason, fence, expiresInMs, holder: by } = busy;
    const facts = { leaseClass: terms.leaseClass.name, key, holder, fence };
    this.#parts.events.emit('lease.refused', { ...facts, by, reason, expiresInMs });
    if (reason === 'quarantine') return { ok: false, key, reason, expiresInMs, waitedMs };
    return { ok: false, key, holder: by, fence, expiresInMs, reason, waitedMs };
  }

  #onLost(tenure: Tenure, reason: LossReason): void {
    this.#keeper.drop(tenure);
    if (reason !== 'revoked') return;
    const nowMs = this.#parts.clock.monotonicMs();
    for (const [key, untilMs] of this.#sittingOut) {
      if (untilMs <= nowMs) this.#sittingOut.delete(key);
    }
    this.#sittingOut.set(tenure.storeKey, nowMs + tenure.terms.timings.ttlMs);
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function nameOf(storeKey: string, holder: string): string {
  return `${storeKey}\n${holder}`;
}
