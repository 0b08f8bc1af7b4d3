import { type Clock, timeLeft } from '../../core/clock.ts';
import type { Emitter } from '../../core/events.ts';
import { packageVersion } from '../../core/version.ts';
import type { Store } from '../../store/port/store.ts';
import { hashMember } from '../plan/hash.ts';
import type { Attributes, FleetMember } from '../view/member.ts';
import type { VitalSigns } from './vitals.ts';

/** Where operators say who is to hand everything over: one record per member, by its id. */
export const DRAIN_COLLECTION = 'drain';
/** Where it is said that members came, left or changed, by their ids, and who has been given an order. */
export const FLEET_TOPIC = 'fleet';
export const orderFor = (member: string) => `order:${member}`;
export const isOrder = (message: string) => message.startsWith(orderFor(''));

const VERSION = packageVersion();

export interface PresenceParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly instanceId: string;
  readonly weight: number;
  readonly vitals: VitalSigns;
  readonly ttlMs: number;
  readonly timeoutMs: number;
}

/** This instance as the others see it: it beats, does as operators ordered, and says when it leaves. */
export class Heartbeat {
  readonly #parts: PresenceParts;
  #member: FleetMember;
  #isOrdered = false;
  /** Orders are told of; one that was not heard is found by a look now and then. */
  #readOrderAtMs = Number.NEGATIVE_INFINITY;
  #leaveByMs: number | null = null;
  #isKnown = false;
  #hasLeft = false;

  constructor(parts: PresenceParts) {
    this.#parts = parts;
    this.#member = {
      ...hashMember(parts.instanceId),
      weight: parts.weight,
      isDraining: false,
      isForeign: false,
      owned: 0,
      version: VERSION,
      asks: {},
      beatTtlMs: parts.ttlMs,
      vitals: null,
      expiresAtMs: Number.POSITIVE_INFINITY,
    };
  }

  /** It hands everything over, and takes nothing. */
  get isDraining(): boolean {
    return this.#isOrdered || this.#leaveByMs !== null;
  }

  /** When it will be gone; null while it is to stay. */
  get leaveByMs(): number | null {
    return this.#leaveByMs;
  }

  /** As a member among the others. */
  get member(): FleetMember {
    const { isDraining } = this;
    if (this.#member.isDraining !== isDraining) this.#member = { ...this.#member, isDraining };
    return this.#member;
  }

  async beat({ owned, asks }: Pick<Attributes, 'owned' | 'asks'>): Promise<void> {
    const { store, events, instanceId, weight, vitals, ttlMs, timeoutMs } = this.#parts;
    // A round that was under way when it left must not bring it back.
    if (this.#hasLeft) return;
    const { isDraining: draining } = this;
    const attributes: Attributes = {
      ...{ weight, draining, owned, version: VERSION, asks },
      ...{ beatTtlMs: ttlMs, vitals: vitals.read() },
    };
    await store.members.beat(
      { id: instanceId, attributes: { ...attributes } },
      { ttlMs, timeoutMs },
    );
    if (this.#isKnown) return;
    this.#isKnown = true;
    events.emit('member.joined', { member: instanceId, isForeign: false });
    this.announce();
  }

  /** Something may have been ordered: the next look shows it. */
  expectOrder(): void {
    this.#readOrderAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Reads what operators ordered, if something may have been; says whether it is something new. */
  async readOrder(): Promise<boolean> {
    const { clock, events, instanceId, ttlMs } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#readOrderAtMs) return false;
    // Before it is read: an order that comes meanwhile is read once more.
    this.#readOrderAtMs = nowMs + ttlMs;
    const isOrdered = await this.#hasOrder();
    if (isOrdered === this.#isOrdered) return false;
    this.#isOrdered = isOrdered;
    events.emit(isOrdered ? 'member.draining' : 'member.undrained', { member: instanceId });
    return true;
  }

  async #hasOrder(): Promise<boolean> {
    const { store, instanceId, timeoutMs } = this.#parts;
    try {
      const [order] = await store.records.get(DRAIN_COLLECTION, [instanceId], { timeoutMs });
      if (order?.kind === 'failed') throw order.error;
      return order?.kind === 'found';
    } catch (error) {
      this.expectOrder();
      throw error;
    }
  }

  /** From now on it hands everything over, until it leaves. */
  prepareToLeave(byMs: number): void {
    this.#leaveByMs = byMs;
  }

  /** Takes its heartbeat and its order to drain away. */
  async leave(withinMs: number): Promise<void> {
    const { store, clock, events, instanceId } = this.#parts;
    this.#hasLeft = true;
    if (!this.#isKnown) return;
    this.#isKnown = false;
    const leftMs = timeLeft(clock, withinMs);
    if (this.#isOrdered)
      await store.records.remove(DRAIN_COLLECTION, [{ id: instanceId }], { timeoutMs: leftMs() });
    await store.members.leave(instanceId, { timeoutMs: leftMs() });
    events.emit('member.left', { member: instanceId, reason: 'left' });
    await store.signals.publish(FLEET_TOPIC, instanceId);
  }

  /** A hint for those who could see something new now. */
  announce(): void {
    const { store, instanceId } = this.#parts;
    store.signals.publish(FLEET_TOPIC, instanceId).catch(() => {});
  }
}
