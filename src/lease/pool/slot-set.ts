/**
 * The slots of a pool as the store has them: read all at once, then asked for one by one, in order.
 * Calls of this process never ask for the same slot at a time, so one read serves as many calls as
 * there are free slots. It asks for the slots that this process released last without a read.
 */
import type { BusyReason } from '../../core/errors.ts';
import type { ReadReply } from '../../store/port/lease-store.ts';
import type { Runtime } from '../../store/runtime.ts';
import type { Lease } from '../lease.ts';
import type { Leases } from '../leases.ts';
import type { AcquireOptions } from '../options.ts';
import { LEASE_CLASSES } from '../timings.ts';

/** A slot that was granted. */
export interface Taken {
  readonly ok: true;
  readonly slot: string;
  readonly lease: Lease;
}

/** Why a slot is not free, or the error that kept the caller from knowing. */
export type Obstacle = { readonly reason: BusyReason; readonly expiresInMs: number } | Error;

/** The caller that a slot is asked for. */
export interface Asker {
  readonly holder?: string;
  readonly signal?: AbortSignal;
  readonly untilReleased?: boolean;
}

export class SlotSet {
  /** In the order in which they are given out. */
  readonly names: readonly string[];
  readonly #rt: Runtime;
  readonly #leases: Pick<Leases, 'acquire'>;
  /** The key of each slot's lease, by the name of the slot. */
  readonly #keys: ReadonlyMap<string, string>;
  readonly #options: AcquireOptions;
  readonly #keyspace: string;
  readonly #timeoutMs: number;
  /** The slots that this process is asking for now. */
  readonly #asked = new Map<string, Promise<unknown>>();
  /** The slots that this process has released since, with no waiter to wake: likely to be free. */
  readonly #released = new Set<string>();

  constructor(
    rt: Runtime,
    leases: Pick<Leases, 'acquire' | 'check'>,
    keys: ReadonlyMap<string, string>,
    options: AcquireOptions,
  ) {
    this.names = [...keys.keys()];
    this.#rt = rt;
    this.#leases = leases;
    this.#keys = keys;
    this.#options = options;
    this.#timeoutMs = leases.check(options).operationTimeoutMs;
    this.#keyspace = LEASE_CLASSES[options.class ?? 'lease'].keyspace;
  }

  async read(): Promise<ReadReply[]> {
    const keys = this.names.map((slot) => this.#storeKeyOf(slot));
    return this.#rt.store.leases.read(keys, { timeoutMs: this.#timeoutMs });
  }

  async readView(): Promise<SlotsView> {
    const replies = await this.read();
    const slots = this.names.map((slot, i) => [slot, obstacleOf(replies[i] as ReadReply)] as const);
    return { slots: new Map(slots), isOutdated: false };
  }

  /**
   * The slots that this process has released last, as if a read had shown them free; null if there
   * are fewer than `callers`. If one is not free after all, none of them is recalled again.
   */
  recall(callers: number): SlotsView | null {
    if (this.#released.size < callers) return null;
    const slots = new Map<string, Obstacle | null>();
    for (const slot of this.#released) {
      slots.set(slot, null);
      if (slots.size === callers) break;
    }
    return { slots, isOutdated: false };
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
  acquire(slot: string, asker: Asker, waitMs = 0): ReturnType<Leases['acquire']> {
    const options = { ...this.#options, ...asker, wait: waitMs };
    return this.#leases.acquire(this.#keyOf(slot), options, () => this.#released.add(slot));
  }

  async #ask(view: SlotsView, slot: string, asker: Asker): Promise<Taken | null> {
    try {
      const result = await this.acquire(slot, asker);
      if (result.ok) {
        view.slots.set(slot, { reason: 'held', expiresInMs: result.lease.remainingMs() });
        return { ok: true, slot, lease: result.lease };
      }
      view.slots.set(slot, result);
      view.isOutdated ||= result.reason === 'held';
    } catch (error) {
      // Slots on the same shard would fail too, each after its own timeout.
      const shard = this.#shardOf(slot);
      for (const other of this.names)
        if (isFree(view, other) && this.#shardOf(other) === shard)
          view.slots.set(other, asError(error));
    } finally {
      this.#asked.delete(slot);
    }
    return null;
  }

  #keyOf(slot: string): string {
    return this.#keys.get(slot) ?? '';
  }

  #storeKeyOf(slot: string): string {
    return this.#keyspace + this.#keyOf(slot);
  }

  #shardOf(slot: string): string {
    return this.#rt.store.leases.lane?.(this.#storeKeyOf(slot)) ?? '';
  }
}

/** The slots as one read has shown them, with the answers since. */
export interface SlotsView {
  /** By the name of the slot: null if it is free. */
  readonly slots: Map<string, Obstacle | null>;
  /** Another process was faster: another slot may have become free since the read. */
  isOutdated: boolean;
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

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
