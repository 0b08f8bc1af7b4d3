import type { Runtime } from '../../store/runtime.ts';
import { hashMember } from '../plan/hash.ts';
import { isPlannedDifferently } from '../plan/plan-cache.ts';
import { type FleetMember, fleetMember } from './member.ts';

/** A heartbeat is a new one only if it expires later than the last by more than this. */
const SAME_BEAT_MS = 50;

/**
 * The other members, as this instance knows them: those whose heartbeats the store has. Two
 * instances may know different members for a moment; that delays a move and is never unsafe.
 *
 * A member that let a lease expire does not count until it beats again. A process that died still
 * has a heartbeat for a while, and a plan that counts on it would leave targets without an owner.
 */
export class FleetMembers {
  readonly #rt: Runtime;
  #others = new Map<string, FleetMember>();
  /** Members that let a lease expire, with the end of their last known heartbeat. */
  readonly #lapsed = new Map<string, number>();
  /** When the last member joined. */
  joinedAtMs = Number.NEGATIVE_INFINITY;

  constructor(rt: Runtime) {
    this.#rt = rt;
  }

  /** The other members that may own targets. */
  others(): FleetMember[] {
    const nowMs = this.#rt.clock.monotonicMs();
    return [...this.#others.values()].filter(
      (member) => member.expiresAtMs > nowMs && !this.#hasLapsed(member),
    );
  }

  /** Another member with a heartbeat, even if it let a lease expire. */
  get(id: string): FleetMember | undefined {
    const member = this.#others.get(id);
    const isLive = (member?.expiresAtMs ?? 0) > this.#rt.clock.monotonicMs();
    return isLive ? member : undefined;
  }

  /** When the next heartbeat expires, unless it is renewed. */
  get earliestExpiryMs(): number {
    return Math.min(...[...this.#others.values()].map(({ expiresAtMs }) => expiresAtMs));
  }

  /** Lists the members in the store. Returns whether that changes what any of them should own. */
  async refresh(timeoutMs: number): Promise<boolean> {
    const { store, clock, instanceId } = this.#rt;
    const live = await store.members.list({ timeoutMs });
    const nowMs = clock.monotonicMs();
    const before = this.#others;
    this.#others = new Map();
    for (const member of live) {
      const { id } = member;
      if (id === instanceId) continue;
      this.#others.set(id, fleetMember(member, before.get(id) ?? hashMember(id), nowMs));
    }
    return this.#compare(before, nowMs);
  }

  /** A lease of this member expired although the member should have renewed it. */
  markLapsed(id: string): void {
    const member = this.#others.get(id);
    if (member !== undefined && !this.#hasLapsed(member)) this.#lapsed.set(id, member.expiresAtMs);
  }

  #hasLapsed({ id, expiresAtMs }: FleetMember): boolean {
    const beatEndMs = this.#lapsed.get(id);
    return beatEndMs !== undefined && expiresAtMs <= beatEndMs + SAME_BEAT_MS;
  }

  /** Emits the events of members that joined, left or drain. */
  #compare(before: ReadonlyMap<string, FleetMember>, nowMs: number): boolean {
    const { events } = this.#rt;
    let isChanged = false;
    for (const member of this.#others.values()) {
      const known = before.get(member.id);
      if (known === undefined) {
        isChanged = true;
        this.joinedAtMs = nowMs;
        events.emit('member.joined', { member: member.id, isForeign: member.isForeign });
      } else if (isPlannedDifferently(known, member)) {
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
