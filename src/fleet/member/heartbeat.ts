import { timeLeft } from '../../core/clock.ts';
import { packageVersion } from '../../core/version.ts';
import type { Timings } from '../../lease/timings.ts';
import type { Runtime } from '../../store/runtime.ts';
import { hashMember } from '../plan/hash.ts';
import type { Attributes, FleetMember } from '../view/member.ts';
import { VitalSigns } from './vitals.ts';

/** The collection of the orders to drain: one record per member, by its id. */
export const DRAIN_COLLECTION = 'drain';
/** The topic for members that joined, left or changed, by their ids, and for new orders. */
export const FLEET_TOPIC = 'fleet';
export const orderFor = (member: string) => `order:${member}`;
export const isOrder = (message: string) => message.startsWith(orderFor(''));

const VERSION = packageVersion();

/** This instance as a member: it beats, follows operators' orders, and announces that it leaves. */
export class Heartbeat {
  /** How this instance is doing; every beat says it. */
  readonly vitals: VitalSigns;
  readonly #rt: Runtime;
  readonly #weight: number;
  readonly #timings: Timings;
  #member: FleetMember;
  #isOrdered = false;
  /** Signals announce orders; a missed one is found by a read now and then. */
  #readOrderAtMs = Number.NEGATIVE_INFINITY;
  #leaveByMs: number | null = null;
  /** `new`: the store has not seen a beat yet. `left`: no beat may follow. */
  #presence: 'new' | 'present' | 'left' = 'new';

  constructor(rt: Runtime, weight: number, timings: Timings) {
    this.#rt = rt;
    this.#weight = weight;
    this.#timings = timings;
    this.vitals = new VitalSigns(rt, timings);
    this.#member = {
      ...hashMember(rt.instanceId),
      weight,
      isDraining: false,
      isForeign: false,
      owned: 0,
      version: VERSION,
      asks: {},
      beatTtlMs: timings.ttlMs,
      vitals: null,
      expiresAtMs: Number.POSITIVE_INFINITY,
    };
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
    const attributes: Attributes = {
      weight: this.#weight,
      draining: this.isDraining,
      owned,
      version: VERSION,
      asks,
      beatTtlMs: ttlMs,
      vitals: this.vitals.read(),
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
}
