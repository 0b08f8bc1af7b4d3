import { timeLeft } from '../../core/clock.ts';
import { packageVersion } from '../../core/version.ts';
import type { Timings } from '../../lease/timings.ts';
import type { Runtime } from '../../store/runtime.ts';
import { hashMember } from '../plan/hash.ts';
import type { Attributes, FleetMember, Vitals } from '../view/member.ts';

/** The collection of the orders to drain: one record per member, by its id. */
export const DRAIN_COLLECTION = 'drain';
/** The topic for members that joined, left or changed, by their ids, and for new orders. */
export const FLEET_TOPIC = 'fleet';
export const orderFor = (member: string) => `order:${member}`;
export const isOrder = (message: string) => message.startsWith(orderFor(''));

const VERSION = packageVersion();
/** Renewals kept, each of a whole batch; beyond this the oldest goes. */
const MAX_RENEWALS = 128;
const RENEWALS_MS = 5 * 60_000;
/** The last minute; of every ten seconds the longest delay is kept. */
const SPANS = 6;
const SPAN_MS = 10_000;

/**
 * This instance as a member: it beats, follows operators' orders, and announces that it leaves.
 * Every beat says how the instance is doing.
 */
export class Heartbeat {
  readonly #rt: Runtime;
  readonly #timings: Timings;
  #member: FleetMember;
  #isOrdered = false;
  /** Signals announce orders; a missed one is found by a read now and then. */
  #readOrderAtMs = Number.NEGATIVE_INFINITY;
  #leaveByMs: number | null = null;
  /** `new`: the store has not seen a beat yet. `left`: no beat may follow. */
  #presence: 'new' | 'present' | 'left' = 'new';
  #renewals: { readonly atMs: number; readonly tookMs: number }[] = [];
  /** The longest delay of each span, and which span that is. */
  readonly #delays = Array.from({ length: SPANS }, () => ({ span: -1, lateMs: 0 }));
  readonly #unlisten: readonly (() => void)[];

  constructor(
    rt: Runtime,
    { weight, commands }: Pick<FleetMember, 'weight' | 'commands'>,
    timings: Timings,
  ) {
    this.#rt = rt;
    this.#timings = timings;
    this.#member = {
      ...hashMember(rt.instanceId),
      weight,
      commands,
      isDraining: false,
      isForeign: false,
      owned: 0,
      version: VERSION,
      asks: {},
      beatTtlMs: timings.ttlMs,
      vitals: null,
      expiresAtMs: Number.POSITIVE_INFINITY,
    };
    this.#unlisten = [
      rt.events.on('lease.renewed', ({ leaseClass, tookMs }) => {
        if (leaseClass !== 'poll') return;
        this.#renewals.push({ atMs: rt.clock.monotonicMs(), tookMs });
        if (this.#renewals.length > MAX_RENEWALS) this.#renewals.shift();
      }),
      rt.events.on('loop.delayed', ({ lateMs }) => this.noteDelay(lateMs)),
    ];
  }

  /** This instance hands everything over and takes nothing. */
  get isDraining(): boolean {
    return this.#isOrdered || this.#leaveByMs !== null;
  }

  /** When this instance will be gone; null while it stays. */
  get leaveByMs(): number | null {
    return this.#leaveByMs;
  }

  /** This instance among the other members. */
  get member(): FleetMember {
    const { isDraining } = this;
    if (this.#member.isDraining !== isDraining) this.#member = { ...this.#member, isDraining };
    return this.#member;
  }

  async beat({ owned, asks }: Pick<Attributes, 'owned' | 'asks'>): Promise<void> {
    const { store, events, instanceId } = this.#rt;
    const { ttlMs, operationTimeoutMs: timeoutMs } = this.#timings;
    // A round that was under way when this instance left must not bring it back.
    if (this.#presence === 'left') return;
    const { weight, commands } = this.#member;
    const attributes: Attributes = {
      weight,
      ...(commands !== undefined && { commands }),
      draining: this.isDraining,
      owned,
      version: VERSION,
      asks,
      beatTtlMs: ttlMs,
      vitals: this.vitals(),
    };
    await store.members.beat(
      { id: instanceId, attributes: { ...attributes } },
      { ttlMs, timeoutMs },
    );
    if (this.#presence !== 'new') return;
    this.#presence = 'present';
    events.emit('member.joined', { member: instanceId, isForeign: false });
    this.announce();
  }

  /** There may be a new order: the next `readOrder` reads it. */
  expectOrder(): void {
    this.#readOrderAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Reads the operators' order, if there may be a new one. Returns whether there is. */
  async readOrder(): Promise<boolean> {
    const { clock, events, instanceId } = this.#rt;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#readOrderAtMs) return false;
    // Set before the read: an order that arrives meanwhile is read again.
    this.#readOrderAtMs = nowMs + this.#timings.ttlMs;
    const isOrdered = await this.#hasOrder();
    if (isOrdered === this.#isOrdered) return false;
    this.#isOrdered = isOrdered;
    events.emit(isOrdered ? 'member.draining' : 'member.undrained', { member: instanceId });
    return true;
  }

  /** A timer fired that much later than it was due. */
  noteDelay(lateMs: number): void {
    const span = this.#span();
    const delay = this.#delays[span % SPANS];
    if (delay === undefined || (delay.span === span && delay.lateMs >= lateMs)) return;
    delay.span = span;
    delay.lateMs = lateMs;
  }

  /** How this instance is doing. */
  vitals(): Vitals {
    const { ttlMs, renewEveryMs } = this.#timings;
    const sinceMs = this.#rt.clock.monotonicMs() - RENEWALS_MS;
    this.#renewals = this.#renewals.filter(({ atMs }) => atMs >= sinceMs);
    const sorted = this.#renewals.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
    const earliest = this.#span() - SPANS;
    const delays = this.#delays.flatMap(({ span, lateMs }) => (span > earliest ? [lateMs] : []));
    return {
      ttlMs,
      renewEveryMs,
      renewP50Ms: percentile(sorted, 0.5),
      renewP99Ms: percentile(sorted, 0.99),
      loopDelayMs: rounded(Math.max(0, ...delays)),
    };
  }

  /** From now on this instance hands everything over, until it leaves. */
  prepareToLeave(byMs: number): void {
    this.#leaveByMs = byMs;
  }

  /** Removes the heartbeat, and the order to drain. */
  async leave(withinMs: number): Promise<void> {
    const { store, clock, events, instanceId } = this.#rt;
    const wasPresent = this.#presence === 'present';
    this.#presence = 'left';
    if (!wasPresent) return;
    const leftMs = timeLeft(clock, withinMs);
    if (this.#isOrdered)
      await store.records.remove(DRAIN_COLLECTION, [{ id: instanceId }], { timeoutMs: leftMs() });
    await store.members.leave(instanceId, { timeoutMs: leftMs() });
    events.emit('member.left', { member: instanceId, reason: 'left' });
    await store.signals.publish(FLEET_TOPIC, instanceId);
  }

  /** A hint to the other members that this one has changed. */
  announce(): void {
    const { store, instanceId } = this.#rt;
    store.signals.publish(FLEET_TOPIC, instanceId).catch(() => {});
  }

  /** From now on the vitals do not change. */
  close(): void {
    for (const unlisten of this.#unlisten) unlisten();
  }

  async #hasOrder(): Promise<boolean> {
    const { store, instanceId } = this.#rt;
    const call = { timeoutMs: this.#timings.operationTimeoutMs };
    try {
      const [order] = await store.records.get(DRAIN_COLLECTION, [instanceId], call);
      if (order?.kind === 'failed') throw order.error;
      return order?.kind === 'found';
    } catch (error) {
      this.expectOrder();
      throw error;
    }
  }

  #span(): number {
    return Math.floor(this.#rt.clock.monotonicMs() / SPAN_MS);
  }
}

/** The smallest of the sorted values that `share` of them do not exceed. */
function percentile(sorted: readonly number[], share: number): number | null {
  const value = sorted[Math.ceil(sorted.length * share) - 1];
  return value === undefined ? null : rounded(value);
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
