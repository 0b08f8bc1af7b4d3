/**
 * The slots of a pool as the store has them: read, then asked for one by one. Calls of this process
 * never ask for the same slot at a time, so one read serves as many calls as there are free slots.
 * It asks for the slots that this process released last without a read.
 *
 * - A pool of one page is read in one request, and its slots are given out in their order.
 * - A larger one is read in pages, from a random slot on and in a ring, until enough free slots are
 *   found: a few slots at first, since most pools have free ones.
 * - If other processes may hold slots beyond ours (`pool-size-record.ts`), all slots are counted,
 *   before the first request and again after each grant. A grant that makes more holders than this
 *   process has slots is given back. Of two processes that are granted a slot at a time, the later
 *   one counts both.
 */
import { type BusyReason, OutcomeUnknownError } from '../../core/errors.ts';
import type { ReadReply } from '../../store/port/lease-store.ts';
import type { Runtime } from '../../store/runtime.ts';
import type { Lease } from '../lease.ts';
import type { Leases } from '../leases.ts';
import type { AcquireOptions } from '../options.ts';
import { LEASE_CLASSES } from '../timings.ts';
import { PoolSizeRecord, SETTLE_MS } from './pool-size-record.ts';

/** Slots in one request at most. */
export const PAGE = 256;
/** Slots in the first request about a pool of several pages. */
const FIRST_PAGE = 16;

/** A slot that was granted. */
export interface Taken {
  readonly ok: true;
  readonly slot: string;
  readonly lease: Lease;
}

/** Why a slot is not free, or the error that kept the caller from knowing. */
export type Obstacle = { readonly reason: BusyReason; readonly expiresInMs: number } | Error;

/** The answer of one slot. */
type SlotAnswer =
  | Taken
  | {
      readonly ok: false;
      readonly reason: BusyReason;
      readonly expiresInMs: number;
      /** The slot was free, but there are as many holders as this process has slots. */
      readonly isOver?: true;
    };

/** The caller that a slot is asked for. */
export interface Asker {
  readonly holder?: string;
  readonly signal?: AbortSignal;
  readonly untilReleased?: boolean;
}

export interface SlotSetOptions extends AcquireOptions {
  /** Whether the slots are numbers: then processes with other numbers count. */
  readonly isNumbered: boolean;
  /** What the keys of the slots begin with. */
  readonly prefix: string;
}

export class SlotSet {
  /** In the order in which they are given out. */
  readonly names: readonly string[];
  readonly #rt: Runtime;
  readonly #leases: Pick<Leases, 'acquire'>;
  readonly #prefix: string;
  readonly #options: AcquireOptions;
  readonly #keyspace: string;
  readonly #timeoutMs: number;
  /** Null: the slots have names, and each name stands for itself. */
  readonly #limit: PoolSizeRecord | null;
  /** The slots that this process is asking for now. */
  readonly #asked = new Map<string, Promise<unknown>>();
  /** The slots that this process has released since, with no waiter to wake: likely to be free. */
  readonly #released = new Set<string>();
  /** Where `readNext` continues. */
  #next = 0;
  #told: (slot: string) => void = () => {};

  constructor(
    rt: Runtime,
    leases: Pick<Leases, 'acquire' | 'check'>,
    names: readonly string[],
    { isNumbered, prefix, ...options }: SlotSetOptions,
  ) {
    this.names = names;
    this.#rt = rt;
    this.#leases = leases;
    this.#prefix = prefix;
    this.#options = options;
    this.#timeoutMs = leases.check(options).operationTimeoutMs;
    this.#keyspace = LEASE_CLASSES[options.class ?? 'lease'].keyspace;
    const id = this.#keyspace + prefix;
    this.#limit = isNumbered ? new PoolSizeRecord(rt, id, names.length, this.#timeoutMs) : null;
  }

  get classOption(): Pick<AcquireOptions, 'class'> {
    return this.#options.class === undefined ? {} : { class: this.#options.class };
  }

  keyOf(slot: string): string {
    return `${this.#prefix}:${slot}`;
  }

  storeKeyOf(slot: string): string {
    return this.#keyspace + this.keyOf(slot);
  }

  /** Whether a waiter stands in the line of every slot. Else it searches (`search-queue.ts`). */
  get hasLines(): boolean {
    return !this.isLarge && !this.#limit?.isExceeded;
  }

  get isLarge(): boolean {
    return this.names.length > PAGE;
  }

  /** Null: the numbers of the other processes are known. Else it resolves when they are. */
  ready(): Promise<void> | null {
    return this.#limit?.ready() ?? null;
  }

  /** Why no slot can be granted yet; null: one can. */
  get notYet(): Obstacle | null {
    return this.#limit?.isSettling ? { reason: 'held', expiresInMs: SETTLE_MS } : null;
  }

  async read(slots = this.names): Promise<ReadReply[]> {
    const replies: ReadReply[] = [];
    for (let i = 0; i < slots.length; i += PAGE) {
      const keys = slots.slice(i, i + PAGE).map((slot) => this.storeKeyOf(slot));
      const call = { timeoutMs: this.#timeoutMs };
      replies.push(...(await this.#rt.store.leases.read(keys, call)));
    }
    return replies;
  }

  /** Until `wanted` free slots are found, or all slots were read. */
  async readView(wanted: number): Promise<SlotsView> {
    if (this.#limit?.isExceeded) return this.#countedView(this.#limit);
    if (!this.isLarge) return this.readOf(this.names);
    const view = viewOf([], []);
    let at = Math.floor(this.#rt.random.next() * this.names.length);
    let free = 0;
    for (let size = FIRST_PAGE; free < wanted; size = Math.min(size * 4, PAGE)) {
      const page = this.#ring(at, Math.min(size, this.names.length - view.slots.size));
      if (page.length === 0) break;
      const { slots } = await this.readOf(page);
      for (const [slot, obstacle] of slots) {
        view.slots.set(slot, obstacle);
        if (obstacle === null) free++;
      }
      at += page.length;
    }
    return view;
  }

  async readOf(slots: readonly string[]): Promise<SlotsView> {
    return viewOf(slots, await this.read(slots));
  }

  /** A view of the next page, in turn. */
  async readNext(): Promise<SlotsView> {
    if (!this.isLarge || this.#limit?.isExceeded) return this.readView(1);
    const page = this.#ring(this.#next, PAGE);
    this.#next += PAGE;
    return this.readOf(page);
  }

  /**
   * The slots that this process has released last, as if a read had shown them free; null if there
   * are fewer than `callers`. If one is not free after all, none of them is recalled again.
   */
  recall(callers: number): SlotsView | null {
    if (this.#released.size < callers || this.#limit?.isExceeded) return null;
    const slots = new Map<string, Obstacle | null>();
    for (const slot of this.#released) {
      slots.set(slot, null);
      if (slots.size === callers) break;
    }
    return { slots, isOutdated: false };
  }

  /** A waiter of another process gets this slot. */
  forget(slot: string): void {
    this.#released.delete(slot);
  }

  /**
   * Asks for the first free slot of the view, and for the next one if another process was faster.
   * Skips the slots that another call of this process is asking for, unless `isLastTry`. Asks for
   * no further slot when `hasLeft` returns true.
   */
  async takeFree(
    view: SlotsView,
    asker: Asker,
    { isLastTry = false, hasLeft }: { isLastTry?: boolean; hasLeft?: () => boolean } = {},
  ): Promise<Taken | null> {
    const next = () => firstFree(view, (slot) => isLastTry || !this.#asked.has(slot));
    for (let slot = next(); slot !== undefined; slot = next()) {
      this.#released.delete(slot);
      const asking = this.#ask(view, slot, asker);
      this.#asked.set(slot, asking);
      const taken = await asking;
      if (taken !== null) return taken;
      this.#released.clear();
      if (hasLeft?.()) return null;
    }
    return null;
  }

  /** Resolves when all requests for slots that are in flight now have been answered. */
  async answered(): Promise<void> {
    await Promise.all(this.#asked.values());
  }

  /** Asks for one slot, and waits for it up to `waitMs`. */
  async acquire(slot: string, asker: Asker, waitMs = 0): Promise<SlotAnswer> {
    const options = { ...this.#options, ...asker, wait: waitMs };
    const result = await this.#leases.acquire(this.keyOf(slot), options, () => this.#onFreed(slot));
    if (!result.ok) return result;
    const taken: Taken = { ok: true, slot, lease: result.lease };
    const limit = this.#limit;
    if (limit === null || (limit.isFresh() && !limit.isExceeded)) return taken;
    return this.#admit(limit, taken, asker);
  }

  /** `told` is called when this process has released a slot of a pool without lines. */
  whenReleased(told: (slot: string) => void): void {
    this.#told = told;
  }

  /** No waiter was woken for the slot. */
  #onFreed(slot: string): void {
    this.#released.add(slot);
    if (this.isLarge) this.#told(slot);
  }

  /** A grant counts only if it leaves no more holders than this process has slots. */
  async #admit(limit: PoolSizeRecord, taken: Taken, { signal }: Asker): Promise<SlotAnswer> {
    try {
      await limit.ready();
      if (limit.isExceeded) {
        const { held, firstExpiryMs } = await this.#count(limit);
        if (held > this.names.length) {
          void taken.lease.release();
          return { ok: false, reason: 'held', expiresInMs: firstExpiryMs, isOver: true };
        }
      }
      if (!limit.isFresh()) throw this.#outdated();
      signal?.throwIfAborted();
      return taken;
    } catch (error) {
      void taken.lease.release();
      throw error;
    }
  }

  #outdated(): Error {
    return new OutcomeUnknownError({
      store: this.#rt.store.name,
      operation: 'acquire',
      afterMs: this.#timeoutMs,
      why: 'the store took too long to show the other holders',
    });
  }

  /** Throws if a slot could not be read: it may be held. */
  async #count(limit: PoolSizeRecord) {
    const slots = numbered(limit.largest);
    const sentAtMs = this.#rt.clock.monotonicMs();
    const replies = await this.read(slots);
    let [held, firstExpiryMs] = [0, Number.POSITIVE_INFINITY];
    for (const reply of replies) {
      if (reply.kind === 'failed') throw reply.error;
      if (reply.kind === 'free') continue;
      held++;
      firstExpiryMs = Math.min(firstExpiryMs, reply.expiresInMs);
    }
    const beyond = replies.slice(this.names.length);
    // Only makes later calls cheaper: a failure has no consequence.
    const isUsedBeyond = beyond.some(({ kind }) => kind !== 'free');
    void limit.counted(isUsedBeyond, sentAtMs).catch(() => {});
    return { held, firstExpiryMs, replies };
  }

  /** With as many free slots as may be taken. */
  async #countedView(limit: PoolSizeRecord): Promise<SlotsView> {
    const { held, firstExpiryMs, replies } = await this.#count(limit);
    const view = viewOf(this.names, replies);
    let left = this.names.length - held;
    for (const [slot, obstacle] of view.slots) {
      if (obstacle === null && left-- <= 0)
        view.slots.set(slot, { reason: 'held', expiresInMs: firstExpiryMs });
    }
    return view;
  }

  #ring(at: number, count: number): string[] {
    const { names } = this;
    return Array.from({ length: count }, (_, i) => names[(at + i) % names.length] as string);
  }

  async #ask(view: SlotsView, slot: string, asker: Asker): Promise<Taken | null> {
    try {
      const result = await this.acquire(slot, asker);
      if (result.ok) {
        view.slots.set(slot, { reason: 'held', expiresInMs: result.lease.remainingMs() });
        return result;
      }
      view.slots.set(slot, result);
      view.isOutdated ||= result.reason === 'held';
    } catch (error) {
      // Slots on the same shard would fail too, each after its own timeout.
      const shard = this.#shardOf(slot);
      for (const other of view.slots.keys())
        if (isFree(view, other) && this.#shardOf(other) === shard)
          view.slots.set(other, asError(error));
    } finally {
      this.#asked.delete(slot);
    }
    return null;
  }

  #shardOf(slot: string): string {
    return this.#rt.store.leases.lane?.(this.storeKeyOf(slot)) ?? '';
  }
}

/** The names of numbered slots. */
export function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => String(i + 1));
}

/** The slots as one read has shown them, with the answers since. */
export interface SlotsView {
  /** By the name of the slot: null if it is free. */
  readonly slots: Map<string, Obstacle | null>;
  /** Another process was faster: another slot may have become free since the read. */
  isOutdated: boolean;
}

function viewOf(slots: readonly string[], replies: readonly ReadReply[]): SlotsView {
  const seen = slots.map((slot, i) => [slot, obstacleOf(replies[i] as ReadReply)] as const);
  return { slots: new Map(seen), isOutdated: false };
}

/** Slots that are likely to be free. */
export function assumedFree(slots: Iterable<string>): SlotsView {
  return { slots: new Map([...slots].map((slot) => [slot, null])), isOutdated: false };
}

function isFree({ slots }: SlotsView, slot: string): boolean {
  return slots.get(slot) === null;
}

function firstFree({ slots }: SlotsView, mayAsk: (slot: string) => boolean): string | undefined {
  for (const [slot, obstacle] of slots) if (obstacle === null && mayAsk(slot)) return slot;
  return undefined;
}

/**
 * Why no slot is free, and when the first may be. Throws if one of the obstacles is an error: then
 * a slot that could not be read may be free.
 */
export function refusalOf(obstacles: readonly Obstacle[]): {
  reason: BusyReason;
  expiresInMs: number;
} {
  let [reason, expiresInMs]: [BusyReason, number] = ['held', Number.POSITIVE_INFINITY];
  const known = obstacles.map((obstacle) => {
    if (obstacle instanceof Error) throw obstacle;
    return obstacle;
  });
  // A held slot may expire before the quarantine ends, but is not granted before that.
  const quarantined = known.filter((obstacle) => obstacle.reason === 'quarantine');
  for (const obstacle of quarantined.length > 0 ? quarantined : known) {
    if (reason === 'held') reason = obstacle.reason;
    expiresInMs = Math.min(expiresInMs, obstacle.expiresInMs);
  }
  return { reason, expiresInMs };
}

function obstacleOf(reply: ReadReply): Obstacle | null {
  if (reply.kind === 'failed') return reply.error;
  if (reply.kind === 'free') return null;
  return { reason: reply.kind, expiresInMs: reply.expiresInMs };
}

export function obstaclesOf({ slots }: SlotsView): Obstacle[] {
  return [...slots.values()].filter((obstacle) => obstacle !== null);
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
