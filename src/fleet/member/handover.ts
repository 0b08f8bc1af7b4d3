/**
 * Targets that should change hands while their owners live. Moves are pulled: who is below its quota asks the owners of
 * what is planned for it, never for more than it lacks; an owner above its quota, or draining, answers by handing over
 * once the work in flight has settled, and otherwise does nothing. Both judge by what they see themselves, so every move
 * makes the fleet more even, and views that differ can not send a target round in circles. Who only beats and never asks
 * gets nothing, and costs nothing.
 *
 * Where an operator has moved a target, whoever it is pinned to asks for it, whatever its quota, and the owner hands it over, whatever its
 * own: that is all a transfer is. Nothing is forced: an owner that is frozen is waited for until its lease runs out.
 *
 * An ask is a signal, and may be lost: it stands in the heartbeat too, and is repeated.
 */
import type { Clock } from '../../core/clock.ts';
import type { Emitter } from '../../core/events.ts';
import type { Store } from '../../store/port/store.ts';
import type { Attributes, FleetMember } from '../view/member.ts';
import type { TargetEntry } from '../view/target-entry.ts';
import type { Ownership } from './ownership.ts';

/** Moves asked for and not yet made; more are asked for as these arrive. */
const MOST_ASKED = 500;
/** How many of them a heartbeat repeats. */
const MOST_REPEATED = 100;

export interface MovesParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly instanceId: string;
  readonly holdings: Ownership;
  /** After how long an ask that came to nothing is repeated. */
  readonly patienceMs: number;
  entry(id: string): TargetEntry | undefined;
}

/** What this instance may own, by its own plan. */
export interface Share {
  readonly quota: number;
  /** It hands over everything it is asked for. */
  readonly isDraining: boolean;
  /** How long the work on what it hands over has to settle. */
  readonly withinMs?: number;
}

export class Handover {
  readonly #parts: MovesParts;
  /** Targets asked for, with whom and when. */
  readonly #asked = new Map<TargetEntry, { owner: string; atMs: number }>();
  /** What others asked for and could not be answered: per asker, until the fleet has been looked at again. */
  #unanswered = new Map<string, readonly string[]>();

  constructor(parts: MovesParts) {
    this.#parts = parts;
  }

  /** What the next heartbeat repeats. */
  get asks(): Attributes['asks'] {
    const asks: Record<string, string[]> = {};
    for (const [{ id }, { owner }] of [...this.#asked].slice(0, MOST_REPEATED)) {
      asks[owner] ??= [];
      asks[owner].push(id);
    }
    return asks;
  }

  /** Asks the owners of `wanted`, for no more than is lacking, and for all that was moved here by hand. */
  ask(wanted: readonly TargetEntry[], quota: number): void {
    const { clock, holdings, instanceId, patienceMs } = this.#parts;
    const nowMs = clock.monotonicMs();
    const isWanted = new Set(wanted);
    for (const [entry, { owner, atMs }] of this.#asked) {
      const isPending = isWanted.has(entry) && entry.owner === owner && atMs + patienceMs > nowMs;
      if (!isPending) this.#asked.delete(entry);
    }
    const anew = wanted.filter((one) => !this.#asked.has(one));
    const ordered = anew
      .filter(({ pinned }) => pinned === instanceId)
      .slice(0, Math.max(0, MOST_ASKED - this.#asked.size));
    const most = Math.min(quota - holdings.claimed, MOST_ASKED) - this.#asked.size - ordered.length;
    const others = anew.filter(({ pinned }) => pinned !== instanceId).slice(0, Math.max(0, most));
    const perOwner = new Map<string, string[]>();
    for (const entry of [...ordered, ...others]) {
      const owner = entry.owner ?? instanceId;
      this.#asked.set(entry, { owner, atMs: nowMs });
      const ids = perOwner.get(owner) ?? [];
      perOwner.set(owner, ids);
      ids.push(entry.id);
    }
    for (const [owner, ids] of perOwner) this.#send(owner, ids);
  }

  /** The target is ours now. True if that was the last of those asked for: there may be more to ask for. */
  onTaken(entry: TargetEntry): boolean {
    return this.#asked.delete(entry) && this.#asked.size === 0;
  }

  /**
   * Asked by signal. False where nothing could be given: the asker may know something that this instance has not seen
   * yet, so the ask is kept until it has looked.
   */
  hear({ from, ids }: Ask, asker: FleetMember | undefined, share: Share): boolean {
    if (asker !== undefined && this.#give(asker, ids, share) > 0) return true;
    if (this.#unanswered.size < MOST_ASKED) this.#unanswered.set(from, ids);
    return false;
  }

  /** The fleet has just been looked at: answers what heartbeats ask for, and what could not be answered before. */
  answer(members: readonly FleetMember[], share: Share): void {
    for (const asker of members) {
      const ids = asker.asks[this.#parts.instanceId] ?? this.#unanswered.get(asker.id);
      if (ids !== undefined) this.#give(asker, ids, share);
    }
    this.#unanswered = new Map();
  }

  /** Hands over as much as this instance has too much, and what was moved to the asker by hand; says how many. */
  #give(asker: FleetMember, ids: readonly string[], share: Share): number {
    const { holdings, entry: find } = this.#parts;
    const { quota, isDraining, withinMs } = share;
    if (asker.isForeign || asker.isDraining) return 0;
    let given = 0;
    for (const id of ids) {
      const entry = find(id);
      if (entry?.state !== 'ours') continue;
      const { pinned, planned } = entry;
      // Pinned to somebody who is there, and not to the asker: it stays, or goes there.
      const isPinned = pinned !== null && pinned === planned;
      const mayGo = isDraining || (holdings.ours.size > quota && !isPinned);
      if (pinned !== asker.id && !mayGo) continue;
      void holdings.give(entry, asker.id, withinMs);
      given++;
    }
    return given;
  }

  #send(owner: string, ids: readonly string[]): void {
    const { store, events, instanceId } = this.#parts;
    events.emit('fleet.asked', { member: owner, count: ids.length });
    const ask: Ask = { from: instanceId, ids };
    // A hint: the heartbeat says it again.
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

/** The ask in a signal; null for anything else that somebody may have published. */
export function readAsk(message: string): Ask | null {
  try {
    const { from, ids } = JSON.parse(message) as Record<string, unknown>;
    const isAsk = typeof from === 'string' && Array.isArray(ids) && ids.length <= MOST_ASKED;
    return isAsk ? { from, ids: ids.filter((id) => typeof id === 'string') } : null;
  } catch {
    return null;
  }
}
