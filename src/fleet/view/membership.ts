import type { Clock } from '../../core/clock.ts';
import type { Emitter } from '../../core/events.ts';
import type { Store } from '../../store/port/store.ts';
import { hashMember } from '../plan/hash.ts';
import { isDifferent } from '../plan/planner.ts';
import { type FleetMember, fleetMember } from './member.ts';

/** A heartbeat seen again is taken for a new one only if it runs out later than before by more than clocks are read apart. */
const SAME_BEAT_MS = 50;

/**
 * Who takes part, as this instance sees it: those whose heartbeats the store shows. Views of different instances differ
 * for moments; that costs a late move, never safety.
 *
 * A member that let a lease run out is counted out until it beats again: a process that died beats for a while yet, and
 * whoever waited for it would leave targets unowned.
 */
export class Membership {
  readonly #parts: { store: Store; clock: Clock; events: Emitter; self: () => FleetMember };
  #others = new Map<string, FleetMember>();
  /** Members that let a lease run out, with the end of the last heartbeat seen of them. */
  readonly #lapsed = new Map<string, number>();
  /** When somebody was last seen to join. */
  joinedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: { store: Store; clock: Clock; events: Emitter; self: () => FleetMember }) {
    this.#parts = parts;
  }

  /** Everybody who may own targets, this instance first. */
  members(): FleetMember[] {
    const nowMs = this.#parts.clock.monotonicMs();
    const others = [...this.#others.values()].filter(
      (member) => member.expiresAtMs > nowMs && !this.#hasLapsed(member),
    );
    return [this.#parts.self(), ...others];
  }

  get(id: string): FleetMember | undefined {
    const member = this.#others.get(id);
    const isLive = (member?.expiresAtMs ?? 0) > this.#parts.clock.monotonicMs();
    return isLive ? member : undefined;
  }

  /** When the next heartbeat runs out, unless it is renewed. */
  get earliestExpiryMs(): number {
    return Math.min(...[...this.#others.values()].map(({ expiresAtMs }) => expiresAtMs));
  }

  /** Asks the store who lives; says whether that changes what anybody should own. */
  async refresh(timeoutMs: number): Promise<boolean> {
    const { store, clock, self } = this.#parts;
    const live = await store.members.list({ timeoutMs });
    const nowMs = clock.monotonicMs();
    const before = this.#others;
    this.#others = new Map();
    for (const member of live) {
      const { id } = member;
      if (id === self().id) continue;
      this.#others.set(id, fleetMember(member, before.get(id) ?? hashMember(id), nowMs));
    }
    return this.#compare(before, nowMs);
  }

  /** A lease of this member ran out although it should have renewed it. */
  lapse(id: string): void {
    const member = this.#others.get(id);
    if (member !== undefined && !this.#hasLapsed(member)) this.#lapsed.set(id, member.expiresAtMs);
  }

  #hasLapsed({ id, expiresAtMs }: FleetMember): boolean {
    const beatEndMs = this.#lapsed.get(id);
    return beatEndMs !== undefined && expiresAtMs <= beatEndMs + SAME_BEAT_MS;
  }

  /** Tells of those who came, left, or changed what they say of themselves. */
  #compare(before: ReadonlyMap<string, FleetMember>, nowMs: number): boolean {
    const { events } = this.#parts;
    let isChanged = false;
    for (const member of this.#others.values()) {
      const known = before.get(member.id);
      if (known === undefined) {
        isChanged = true;
        this.joinedAtMs = nowMs;
        events.emit('member.joined', { member: member.id, isForeign: member.isForeign });
      } else if (isDifferent(known, member)) {
        isChanged = true;
      }
      if (member.isDraining !== (known?.isDraining ?? false))
        events.emit(member.isDraining ? 'member.draining' : 'member.undrained', {
          member: member.id,
        });
    }
    for (const { id, expiresAtMs } of before.values()) {
      if (this.#others.has(id)) continue;
      isChanged = true;
      this.#lapsed.delete(id);
      events.emit('member.left', {
        member: id,
        reason: expiresAtMs > nowMs ? 'left' : 'expired',
      });
    }
    return isChanged;
  }
}
