/**
 * A pool: several things of which any will do, each used by one holder at a time. It is a counting
 * semaphore in which each slot is a lease of its own. So a holder that dies frees its slot and no
 * other, every tenure of a slot has a fence for the resource behind that slot, and the holder of
 * each slot can be seen.
 *
 * **What a pool does not promise.** It promises no more than its leases do (`lease.ts`). A process
 * that is configured with more slots takes more: each process keeps its own number
 * (`pool-size-record.ts`), and after a loss of data only once the others have stored theirs again.
 * A call that does not wait may overtake one that waits. Only waiters keep an order among them:
 * strictly within one process, roughly across processes.
 */
import { type Duration, durationMs } from '../../core/duration.ts';
import { type BusyReason, ConfigError, StoreQuarantinedError } from '../../core/errors.ts';
import { checkKey } from '../../core/ids.ts';
import { checkKnown } from '../../core/options.ts';
import type { Attributes } from '../../core/tracing.ts';
import type { ReadReply } from '../../store/port/lease-store.ts';
import type { Runtime } from '../../store/runtime.ts';
import type { HeldContext, Leases } from '../leases.ts';
import { checkAcquireOptions } from '../options.ts';
import { tracedAcquire, tracedWork } from '../spans.ts';
import type { LeaseClassName, TimingOptions } from '../timings.ts';
import { checkWork, workUnder } from '../with-lease.ts';
import { PoolFullError } from './errors.ts';
import { PoolQueue, type WaitOutcome } from './pool-queue.ts';
import { SearchQueue } from './search-queue.ts';
import { type Asker, numbered, obstaclesOf, refusalOf, SlotSet, type Taken } from './slot-set.ts';

/** A call that finds no free slot has read all of them, a page at a time. */
const MAX_SLOTS = 10_000;
/** How often a call that does not wait reads the slots because other calls were faster. */
const MAX_READS = 8;

export interface PoolOptions extends TimingOptions {
  /**
   * How many slots there are, named 1, 2, 3 …, or the name of each; 1 to 10,000. While processes
   * with other numbers run, a process is granted no slot that makes more holders than its own
   * number.
   */
  slots: number | readonly string[];
  /** Which timings and quarantine apply; default `lease`. */
  class?: LeaseClassName;
  /**
   * The key of a slot's lease is this, a colon and the slot's name; default the name of the pool.
   */
  key?: string;
}

export interface SlotOptions {
  /** How long to wait for a slot while all are held; default 0: do not wait. */
  wait?: Duration;
  /** Ends the wait; `acquire` then rejects with the signal's reason. */
  signal?: AbortSignal;
  /** The name of the holder, as for `acquire` of a lease; default a unique one for every call. */
  holder?: string;
  /**
   * After a loss, the same named holder is granted the slot again only when this lease is released:
   * for work that continues for a while after `signal` has fired. `withSlot` sets it automatically.
   * Default: a lost lease does not block its holder.
   */
  untilReleased?: boolean;
}

export type SlotResult =
  | Taken
  | {
      readonly ok: false;
      readonly pool: string;
      readonly slots: number;
      /** `held` if every slot is held; else why the others are not granted. */
      readonly reason: BusyReason;
      /** When the first slot expires, unless it is renewed. */
      readonly expiresInMs: number;
      readonly waitedMs: number;
    };

/** What the work under a slot is given. */
export interface SlotContext extends HeldContext {
  readonly slot: string;
}

export interface SlotView {
  readonly slot: string;
  /** Null: the slot has no holder. */
  readonly holder: string | null;
  /** Of the last known lease of the slot; 0 for none. */
  readonly fence: number;
  /** How long the slot is not granted to another holder without a renewal; 0 if it is free. */
  readonly expiresInMs: number;
}

const TIMINGS = ['ttl', 'renewEvery', 'stop', 'guard', 'operationTimeout'];
const KNOWN = new Set(['slots', 'class', 'key', ...TIMINGS]);
const KNOWN_OF_SLOT = new Set(['wait', 'signal', 'holder', 'untilReleased']);

export class Pool {
  readonly name: string;
  /**
   * In the order in which they are given out, behind those that this process released last; more
   * than 256 in no order.
   */
  readonly slots: readonly string[];
  readonly #rt: Runtime;
  readonly #slots: SlotSet;
  readonly #queue: PoolQueue;
  readonly #attributes: Attributes;

  constructor(
    rt: Runtime,
    leases: Pick<Leases, 'acquire' | 'check'>,
    name: string,
    options: PoolOptions,
  ) {
    checkKey(name, 'name');
    checkKnown(options, KNOWN);
    const { slots, key = name, ...leaseOptions } = options;
    checkKey(key);
    this.name = name;
    this.slots = namesOf(slots);
    for (const slot of this.slots) checkKey(`${key}:${slot}`, 'the key of a slot');
    this.#rt = rt;
    this.#attributes = { 'holdfast.pool': name, 'holdfast.class': options.class ?? 'lease' };
    const isNumbered = typeof slots === 'number';
    this.#slots = new SlotSet(rt, leases, this.slots, { ...leaseOptions, isNumbered, prefix: key });
    this.#queue = new PoolQueue(rt, this.#slots, new SearchQueue(rt, leases, this.#slots));
  }

  /** The key of a slot's lease, for `inspect` and `revoke` of Holdfast. */
  keyOf(slot: string): string {
    return this.#slots.keyOf(slot);
  }

  /**
   * Acquires a slot that this process released, if it is still free, else the first free slot in
   * the order of the slots; with `wait`, it waits for one. That no slot is free is a result. An
   * error of the store for some of the slots is an exception, unless another slot is free.
   */
  acquire(options: SlotOptions = {}): Promise<SlotResult> {
    return tracedAcquire(this.#rt.tracing, this.#attributes, () => this.#acquire(options));
  }

  async #acquire(options: SlotOptions): Promise<SlotResult> {
    const waitMs = checkSlotOptions(options);
    const { wait: _, ...asker } = options;
    const { signal } = asker;
    signal?.throwIfAborted();
    const { clock } = this.#rt;
    const startMs = clock.monotonicMs();
    try {
      const outcome = await (waitMs > 0 ? this.#queue.wait(asker, waitMs) : this.#takeNow(asker));
      if ('ok' in outcome) return outcome;
      const { reason, expiresInMs } = refusalOf(outcome);
      const waitedMs = waitMs > 0 ? clock.monotonicMs() - startMs : 0;
      return {
        ok: false,
        pool: this.name,
        slots: this.slots.length,
        reason,
        expiresInMs,
        waitedMs,
      };
    } catch (error) {
      throw signal?.aborted ? signal.reason : error;
    }
  }

  /**
   * Runs `work` in a slot; throws `POOL_FULL` if none is free, `STORE_QUARANTINED` if the store
   * makes no grants now.
   */
  async withSlot<T>(
    work: (held: SlotContext) => Promise<T> | T,
    options: SlotOptions = {},
  ): Promise<T> {
    return tracedWork(this.#rt.tracing, this.#attributes, work, (watched) =>
      this.#workIn(watched, options),
    );
  }

  async #workIn<T>(work: (held: SlotContext) => Promise<T> | T, options: SlotOptions): Promise<T> {
    checkWork(work);
    const result = await this.acquire({ ...options, untilReleased: true });
    if (!result.ok) throw poolError(result);
    const { lease, slot } = result;
    return workUnder(lease, (held) => work({ ...held, slot }));
  }

  /** The holders of the slots now, according to the store. */
  async inspect(): Promise<readonly SlotView[]> {
    const replies = await this.#slots.read();
    return this.slots.map((slot, i) => {
      const reply = replies[i] as ReadReply;
      if (reply.kind === 'failed') throw reply.error;
      const { kind, fence } = reply;
      const expiresInMs = kind === 'free' ? 0 : reply.expiresInMs;
      return { slot, holder: kind === 'held' ? reply.holder : null, fence, expiresInMs };
    });
  }

  /**
   * Without waiting. If other calls took every free slot, it reads again: another may be free by
   * now.
   */
  async #takeNow(asker: Asker): Promise<WaitOutcome> {
    const loading = this.#slots.ready();
    if (loading !== null) await loading;
    asker.signal?.throwIfAborted();
    const recalled = this.#slots.recall(1);
    const taken = recalled && (await this.#slots.takeFree(recalled, asker));
    if (taken !== null) return taken;
    for (let reads = 1; ; reads++) {
      const view = await this.#slots.readView(1);
      const isLastTry = reads === MAX_READS;
      const taken = await this.#slots.takeFree(view, asker, { isLastTry });
      if (taken !== null) return taken;
      const obstacles = obstaclesOf(view);
      if (isLastTry || (obstacles.length === this.slots.length && !view.isOutdated))
        return obstacles;
      // Slots that other calls of this process ask for may be refused to them.
      await this.#slots.answered();
    }
  }
}

function poolError(refusal: Extract<SlotResult, { ok: false }>) {
  const { reason, pool: key, ...rest } = refusal;
  return reason === 'quarantine'
    ? new StoreQuarantinedError({ ...rest, key })
    : new PoolFullError({ ...refusal, reason });
}

function namesOf(slots: unknown): readonly string[] {
  const names = isCount(slots) ? numbered(slots) : slots;
  const isGood =
    Array.isArray(names) &&
    names.length >= 1 &&
    names.length <= MAX_SLOTS &&
    new Set(names).size === names.length;
  if (!isGood) {
    const rule =
      `a pool has 1 to ${MAX_SLOTS} slots. ` +
      'Pass how many, or the name of each, none of them twice';
    throw new ConfigError({ field: 'slots', value: slots, rule });
  }
  for (const name of names) checkKey(name, 'slots');
  return Object.freeze([...names]);
}

function isCount(slots: unknown): slots is number {
  return Number.isInteger(slots) && Number(slots) >= 1 && Number(slots) <= MAX_SLOTS;
}

/** Refuses invalid options before any I/O; returns the wait in milliseconds. */
function checkSlotOptions(options: SlotOptions): number {
  checkKnown(options, KNOWN_OF_SLOT);
  checkAcquireOptions(options);
  return durationMs(options.wait ?? 0, 'wait');
}
