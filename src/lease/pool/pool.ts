/**
 * A pool: things of which each can be used by one at a time, and any of them will do. The counting semaphore people expect, but for what a
 * number can not do: each slot is a lease of its own. So a holder that dies frees its slot and no other, every tenure of a slot has a fence
 * for what that slot protects, and who has which can be seen.
 *
 * **What a pool does not promise.** More than its leases do: see `lease.ts`. Nor that all who share it agree on how many slots there are:
 * whoever is told of more takes more. And who does not wait may be faster than who waits: only those who wait keep an order among them, of
 * one process strictly, of several about as they came.
 */
import type { Clock } from '../../core/clock.ts';
import { type Duration, durationMs } from '../../core/duration.ts';
import { type BusyReason, ConfigError, StoreQuarantinedError } from '../../core/errors.ts';
import { checkKey } from '../../core/ids.ts';
import { checkKnown } from '../../core/options.ts';
import { type Attributes, type Tracing, untraced } from '../../core/tracing.ts';
import type { ReadReply } from '../../store/port/lease-store.ts';
import type { Store } from '../../store/port/store.ts';
import { LEASE_CLASSES, type LeaseClassName } from '../classes.ts';
import type { HeldContext, Leases } from '../leases.ts';
import { checkAcquireOptions } from '../options.ts';
import type { TimingOptions } from '../timings.ts';
import { tracedAcquire, tracedWork } from '../traced-leases.ts';
import { checkWork, workUnder } from '../with-lease.ts';
import { PoolFullError } from './errors.ts';
import { PoolQueue, type WaitOutcome } from './pool-queue.ts';
import { type Asker, judge, Slots, type Taken } from './slots.ts';

/** All of them are looked at in one request, and asked for by each who waits. */
const MOST_SLOTS = 256;
/** How often who does not wait looks again because others were faster; each time somebody has got a slot. */
const MOST_LOOKS = 8;

export interface PoolOptions extends TimingOptions {
  /** How many there are, called 1, 2, 3 …, or what each is called; 1 to 256. All who share the pool have to say the same. */
  slots: number | readonly string[];
  /** Which timings and quarantine apply; default `lease`. */
  class?: LeaseClassName;
  /** What stands before a slot's name in the key of its lease, and a colon between them; default the name of the pool. */
  key?: string;
}

export interface SlotOptions {
  /** How long to wait for a slot while all are held; default 0: do not. */
  wait?: Duration;
  /** Ends the wait; `acquire` then rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Who holds it, as for `acquire` of a lease; default a name of its own for every call. */
  holder?: string;
  /**
   * After a loss, the same named holder is granted the key again only once this lease is released: for work that continues
   * for a while after `signal` has fired. `withSlot` does so by itself. Default: a lost lease stands in nobody's way.
   */
  untilReleased?: boolean;
}

export type SlotResult =
  | Taken
  | {
      readonly ok: false;
      readonly pool: string;
      readonly slots: number;
      /** `held` if every slot is; else what stands in the way of those that are not. */
      readonly reason: BusyReason;
      /** When the first of them runs out, unless it is renewed. */
      readonly expiresInMs: number;
      readonly waitedMs: number;
    };

/** What the work under a slot is given. */
export interface SlotContext extends HeldContext {
  readonly slot: string;
}

export interface SlotView {
  readonly slot: string;
  /** Null: nobody. */
  readonly holder: string | null;
  /** Of the last tenure that is known; 0 for none. */
  readonly fence: number;
  /** How long nobody else is granted it, should nothing happen; 0 where it is free. */
  readonly expiresInMs: number;
}

export interface PoolParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly leases: Pick<Leases, 'acquire' | 'check'>;
  readonly tracing?: Tracing;
}

const TIMINGS = ['ttl', 'renewEvery', 'stop', 'guard', 'operationTimeout'];
const KNOWN = new Set(['slots', 'class', 'key', ...TIMINGS]);
const KNOWN_OF_SLOT = new Set(['wait', 'signal', 'holder', 'untilReleased']);

export class Pool {
  readonly name: string;
  /** In the order in which they are given out. */
  readonly slots: readonly string[];
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #slots: Slots;
  readonly #line: PoolQueue;
  readonly #tracing: Tracing;
  readonly #attributes: Attributes;

  constructor(parts: PoolParts, name: string, options: PoolOptions) {
    const { store, clock, leases, tracing = untraced } = parts;
    checkKey(name, 'name');
    checkKnown(options, KNOWN);
    const { slots, key = name, ...terms } = options;
    checkKey(key);
    const { operationTimeoutMs } = leases.check(terms);
    this.name = name;
    this.#prefix = key;
    this.slots = namesOf(slots);
    for (const slot of this.slots) checkKey(this.keyOf(slot), 'the key of a slot');
    this.#clock = clock;
    this.#tracing = tracing;
    this.#attributes = { 'holdfast.pool': name, 'holdfast.class': terms.class ?? 'lease' };
    this.#slots = new Slots({
      ...{ store, leases, terms, operationTimeoutMs, names: this.slots },
      keyOf: (slot) => this.keyOf(slot),
      keyspace: LEASE_CLASSES[terms.class ?? 'lease'].keyspace,
    });
    this.#line = new PoolQueue({ slots: this.#slots, clock, storeName: store.name });
  }

  /** The key of a slot's lease, as `inspect` and `revoke` of Holdfast know it. */
  keyOf(slot: string): string {
    return `${this.#prefix}:${slot}`;
  }

  /**
   * The first slot that is free, in the order of the slots; waits for one if asked to. That there is none is a result; a store that does
   * not answer for all of them is an exception, unless one of the others is free.
   */
  acquire(options: SlotOptions = {}): Promise<SlotResult> {
    return tracedAcquire(this.#tracing, this.#attributes, () => this.#acquire(options));
  }

  async #acquire(options: SlotOptions): Promise<SlotResult> {
    const waitMs = checkSlotOptions(options);
    const { wait: _, ...asker } = options;
    const { signal } = asker;
    signal?.throwIfAborted();
    const sinceMs = this.#clock.monotonicMs();
    try {
      const outcome = await (waitMs > 0 ? this.#line.wait(asker, waitMs) : this.#now(asker));
      if ('ok' in outcome) return outcome;
      const waitedMs = waitMs > 0 ? this.#clock.monotonicMs() - sinceMs : 0;
      const facts = { pool: this.name, slots: this.slots.length, waitedMs };
      return { ok: false, ...facts, ...judge(outcome) };
    } catch (error) {
      throw signal?.aborted ? signal.reason : error;
    }
  }

  /** Runs `work` while holding a slot; throws `POOL_FULL` if there is none, `STORE_QUARANTINED` if the store grants nothing now. */
  async withSlot<T>(
    work: (held: SlotContext) => Promise<T> | T,
    options: SlotOptions = {},
  ): Promise<T> {
    return tracedWork(this.#tracing, this.#attributes, work, (watched) =>
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

  /** Who has which slot now, according to the store. */
  async inspect(): Promise<readonly SlotView[]> {
    const shown = await this.#slots.read();
    return this.slots.map((slot, i) => {
      const reply = shown[i] as ReadReply;
      if (reply.kind === 'failed') throw reply.error;
      const { kind, fence } = reply;
      const expiresInMs = kind === 'free' ? 0 : reply.expiresInMs;
      return { slot, holder: kind === 'held' ? reply.holder : null, fence, expiresInMs };
    });
  }

  /** Without waiting. Who was too slow for every free slot looks again: another may have become free meanwhile. */
  async #now(asker: Asker): Promise<WaitOutcome> {
    for (let looks = 1; ; looks++) {
      const view = await this.#slots.look();
      const isLast = looks === MOST_LOOKS;
      const taken = await this.#slots.takeFree(view, asker, isLast);
      if (taken !== null) return taken;
      const obstacles = view.obstacles();
      if (isLast || (obstacles.length === this.slots.length && !view.isOutdated)) return obstacles;
      // What other calls of this process ask for may not be granted to them.
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
  const names = typeof slots === 'number' ? numbered(slots) : slots;
  const isGood =
    Array.isArray(names) &&
    names.length >= 1 &&
    names.length <= MOST_SLOTS &&
    new Set(names).size === names.length;
  if (!isGood) {
    const rule = `a pool has 1 to ${MOST_SLOTS} slots: say how many, or what each is called, none of them twice`;
    throw new ConfigError({ field: 'slots', value: slots, rule });
  }
  for (const name of names) checkKey(name, 'slots');
  return Object.freeze([...names]);
}

function numbered(count: number): string[] | null {
  const isCount = Number.isInteger(count) && count >= 1 && count <= MOST_SLOTS;
  return isCount ? Array.from({ length: count }, (_, i) => String(i + 1)) : null;
}

/** Refuses what `acquire` would not understand, before any I/O; gives the wait in milliseconds. */
function checkSlotOptions(options: SlotOptions): number {
  checkKnown(options, KNOWN_OF_SLOT);
  checkAcquireOptions(options);
  return durationMs(options.wait ?? 0, 'wait');
}
