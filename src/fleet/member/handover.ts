/**
 * Targets that change owners while both owners live. Moves are pulled: a member below its quota
 * asks the owners of the targets that are planned for it, and never for more than it lacks. An
 * owner above its quota, or draining, hands over once the work in flight has settled; otherwise it
 * does nothing. Each decides by its own view (`mayGive`). So every move makes the fleet more even,
 * and different views cannot send a target round in circles. A member that beats and never asks
 * gets nothing.
 *
 * For a target that an operator has moved, the pinned member asks whatever its quota, and the owner
 * hands over whatever its own. Nothing is forced: a frozen owner keeps it until its lease expires.
 *
 * An ask is a signal and may be lost. The heartbeat repeats it, and so does a later round.
 */
import type { Runtime } from '../../store/runtime.ts';
import { mayGive, type Share } from '../plan/decide.ts';
import type { FleetTarget } from '../view/fleet-target.ts';
import type { Attributes, FleetMember } from '../view/member.ts';
import type { TargetLeases } from './target-leases.ts';

/** Moves asked for and not made yet; more are asked for as these arrive. */
const MAX_ASKED = 500;
/** How many of them a heartbeat repeats. */
const MAX_REPEATED = 100;

export class Handover {
  readonly #rt: Runtime;
  readonly #targetLeases: TargetLeases;
  readonly #patienceMs: number;
  /** Targets asked for: the owner, and when. */
  readonly #asked = new Map<FleetTarget, { owner: string; atMs: number }>();
  /** Asks that could not be answered, by asker, until the next round has read the fleet. */
  #unanswered = new Map<string, readonly string[]>();

  /** An ask that brought nothing is repeated after `patienceMs`. */
  constructor(rt: Runtime, targetLeases: TargetLeases, patienceMs: number) {
    this.#rt = rt;
    this.#targetLeases = targetLeases;
    this.#patienceMs = patienceMs;
  }

  /** What the next heartbeat repeats. */
  get asks(): Attributes['asks'] {
    const asks: Record<string, string[]> = {};
    for (const [{ id }, { owner }] of [...this.#asked].slice(0, MAX_REPEATED)) {
      asks[owner] ??= [];
      asks[owner].push(id);
    }
    return asks;
  }

  /** Asks the owners of `wanted`: for no more than `quota`, and for all that are pinned here. */
  ask(wanted: readonly FleetTarget[], quota: number): void {
    const { clock, instanceId } = this.#rt;
    const nowMs = clock.monotonicMs();
    this.#dropAsked(new Set(wanted), nowMs);
    const isPinnedHere = ({ pinned }: FleetTarget) => pinned === instanceId;
    const unasked = wanted.filter((target) => !this.#asked.has(target));
    const pinned = unasked.filter(isPinnedHere).slice(0, Math.max(0, MAX_ASKED - this.#asked.size));
    const lacking = Math.min(quota - this.#targetLeases.claimed, MAX_ASKED);
    const others = unasked
      .filter((target) => !isPinnedHere(target))
      .slice(0, Math.max(0, lacking - this.#asked.size - pinned.length));
    const perOwner = new Map<string, string[]>();
    for (const target of [...pinned, ...others]) {
      const owner = target.owner ?? instanceId;
      this.#asked.set(target, { owner, atMs: nowMs });
      const ids = perOwner.get(owner) ?? [];
      perOwner.set(owner, ids);
      ids.push(target.id);
    }
    for (const [owner, ids] of perOwner) this.#send(owner, ids);
  }

  /** This instance may own the target now. Returns whether it was the last one asked for. */
  arrived(target: FleetTarget): boolean {
    if (target.state !== 'owned') return false;
    return this.#asked.delete(target) && this.#asked.size === 0;
  }

  /**
   * Answers an ask that came by signal. False where nothing was given: the asker may know something
   * that this instance has not read yet, so the ask is kept for the next round.
   */
  answer({ from, ids }: Ask, asker: FleetMember | undefined, share: Share): boolean {
    if (asker !== undefined && this.#give(asker, ids, share) > 0) return true;
    if (this.#unanswered.size < MAX_ASKED) this.#unanswered.set(from, ids);
    return false;
  }

  /** Answers the asks of heartbeats, and those kept since the round before. */
  answerAll(members: readonly FleetMember[], share: Share): void {
    for (const asker of members) {
      const ids = asker.asks[this.#rt.instanceId] ?? this.#unanswered.get(asker.id);
      if (ids !== undefined) this.#give(asker, ids, share);
    }
    this.#unanswered = new Map();
  }

  #give(asker: FleetMember, ids: readonly string[], share: Share): number {
    let given = 0;
    for (const id of ids) {
      const target = this.#targetLeases.get(id);
      const owned = this.#targetLeases.owned.size;
      if (target === undefined || !mayGive(target, asker, owned, share)) continue;
      void this.#targetLeases.give(target, asker.id, share.withinMs);
      given++;
    }
    return given;
  }

  /** Drops the asks that are out of date: not wanted, with another owner, or too old. */
  #dropAsked(wanted: ReadonlySet<FleetTarget>, nowMs: number): void {
    for (const [target, { owner, atMs }] of this.#asked) {
      const isRecent = atMs + this.#patienceMs > nowMs;
      if (!wanted.has(target) || target.owner !== owner || !isRecent) this.#asked.delete(target);
    }
  }

  #send(owner: string, ids: readonly string[]): void {
    const { store, events, instanceId } = this.#rt;
    events.emit('fleet.asked', { member: owner, count: ids.length });
    const ask: Ask = { from: instanceId, ids };
    // A hint: the heartbeat repeats it.
    store.signals.publish(askTopic(owner), JSON.stringify(ask)).catch(() => {});
  }
}

export interface Ask {
  readonly from: string;
  readonly ids: readonly string[];
}

export function askTopic(member: string): string {
  return `ask:${member}`;
}

/** The ask in a signal; null for anything else that was published there. */
export function readAsk(message: string): Ask | null {
  try {
    const { from, ids } = JSON.parse(message) as Record<string, unknown>;
    const isAsk = typeof from === 'string' && Array.isArray(ids) && ids.length <= MAX_ASKED;
    return isAsk ? { from, ids: ids.filter((id) => typeof id === 'string') } : null;
  } catch {
    return null;
  }
}
