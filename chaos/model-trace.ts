/**
 * Replays a history against the rules of `testing/model/rules.ts`. A history has no word of the store: it has what its
 * clients learned. So a grant counts from when its holder learned of it, and lasts to the deadline that the holder gave
 * itself; the key is free once the holder has stopped. Commits are judged in `checker.ts`, in the database's own order.
 */
import { LeaseModel, type ModelEvent, type Refusal } from '../testing/model/rules.ts';
import type { Entry } from './history.ts';
import { TTL_MS } from './timings.ts';

/** All processes of a run share one clock. */
const SAME_CLOCK = { drift: 0, slackMs: 1 };
/** The giver of a key may write that down so long before or after its successor has claimed it. */
const HANDOVER_MS = TTL_MS;

/** Every step of the history that the model does not allow. */
export function modelRefusals(history: readonly Entry[]): Refusal[] {
  const model = new LeaseModel({ ...SAME_CLOCK, boundMs: TTL_MS });
  return traceOf(history).flatMap((event) => model.take(event) ?? []);
}

function traceOf(history: readonly Entry[]): ModelEvent[] {
  const isSharded = history.some(({ what, isSharded: is }) => what === 'run.began' && is === true);
  const transfers = history.filter(({ what }) => what === 'lease.transferred');
  const reading = new Reading(transfers, isSharded);
  for (const entry of history) reading.take(entry);
  return reading.events;
}

/** A tenure as its holder knows it. */
interface Held {
  readonly fence: number;
  polls: number;
  isReleasing: boolean;
}

class Reading {
  readonly events: ModelEvent[] = [];
  readonly #transfers: readonly Entry[];
  /** Only one of several servers has forgotten, and a history does not say which keys were there. */
  readonly #isSharded: boolean;
  /** By client and target. */
  readonly #held = new Map<string, Held>();
  #lostMs = Number.NEGATIVE_INFINITY;

  constructor(transfers: readonly Entry[], isSharded: boolean) {
    this.#transfers = transfers;
    this.#isSharded = isSharded;
  }

  take(entry: Entry): void {
    const { what, who, target = '', atMs } = entry;
    if (what === 'store.forgot') {
      this.#lostMs = atMs;
      this.events.push({ what: 'lost', atMs });
    } else if (what === 'lease.acquired') this.#begin(entry);
    else if (what === 'lease.extended') this.#extend(entry);
    else if (what === 'lease.lost' || what === 'lease.abandoned') this.#end(entry);
    const held = this.#held.get(`${who} ${target}`);
    if (held === undefined || held.fence !== entry.fence) return;
    if (what === 'poll.began') held.polls++;
    if (what === 'poll.ended') held.polls--;
    if (what === 'lease.releasing') held.isReleasing = true;
    if (what === 'poll.acted') this.events.push({ ...stepOf(entry), what: 'acted' });
    // Its work has stopped: the store may hear of it, and grant the key, at any moment.
    if (held.isReleasing && held.polls === 0) this.#end(entry);
  }

  #begin(entry: Entry): void {
    const { who, target = '', atMs, deadlineMs } = entry;
    if (typeof deadlineMs !== 'number' || typeof entry.fence !== 'number') return;
    const { fence } = entry;
    this.#held.set(`${who} ${target}`, { fence, polls: 0, isReleasing: false });
    const ttlMs = deadlineMs - atMs;
    // What was sent before the loss may have been granted before it.
    const isEarly = deadlineMs - TTL_MS < this.#lostMs;
    const isOwed = isEarly || this.#isSharded || this.#isHandedOver(entry);
    this.events.push({ ...stepOf(entry), what: 'granted', ttlMs, isOwed });
    this.events.push({ ...stepOf(entry), what: 'believed', untilMs: deadlineMs });
  }

  #extend(entry: Entry): void {
    const { who, target = '', atMs, deadlineMs, fence } = entry;
    const held = this.#held.get(`${who} ${target}`);
    if (typeof deadlineMs !== 'number' || held?.fence !== fence || deadlineMs <= atMs) return;
    this.events.push({ ...stepOf(entry), what: 'renewed', ttlMs: deadlineMs - atMs });
    this.events.push({ ...stepOf(entry), what: 'believed', untilMs: deadlineMs });
  }

  #end(entry: Entry): void {
    const { who, target = '', fence } = entry;
    const name = `${who} ${target}`;
    if (this.#held.get(name)?.fence !== fence) return;
    this.#held.delete(name);
    this.events.push({ ...stepOf(entry), what: 'yielded' });
  }

  #isHandedOver({ who, target, atMs }: Entry): boolean {
    return this.#transfers.some(
      (other) =>
        other.successor === who &&
        other.target === target &&
        Math.abs(other.atMs - atMs) < HANDOVER_MS,
    );
  }
}

function stepOf({ atMs, who, target = '', fence }: Entry) {
  return { atMs, key: target, client: who, fence: Number(fence) };
}
