/**
 * Writes what happens to this instance into the log that all instances share. Transitions only: what happens all the time
 * (renewals, refusals, polls that go well) would push out what people look for.
 *
 * Nothing waits for it, and it loses something only after a long time without the store, or in a crash: then `log.dropped`
 * says how much, or the last quarter of a second is missing. After an answer that never came entries may be there twice.
 */
import { type Clock, isDoneWithin, type Timer, timeLeft } from '../core/clock.ts';
import type { Emitter, EventName } from '../core/events.ts';
import { jittered, type Random } from '../core/random.ts';
import type { Store } from '../store/port/store.ts';
import { plainFacts } from './facts.ts';

/** Where it is said that something was added to the log. */
export const LOG_TOPIC = 'log';

/** Entries wait this long for others to go with, and no longer once there are so many. */
const LINGER_MS = 250;
const BATCH = 1_000;
/** What is kept while the store is away; beyond that the oldest are dropped. */
const MOST_WAITING = 10_000;
const TIMEOUT_MS = 5_000;
/** Pauses after a request that failed double from the first to the second. */
const PAUSE_FIRST_MS = 250;
const PAUSE_MOST_MS = 5_000;
/** How long `close` tries to write the rest. */
const CLOSE_WITHIN_MS = 1_000;

/** What is kept of a fact, in characters: an error may quote anything, and an entry has to fit into the log. */
const MOST_FACT = 2_000;

const RECORDED = [
  'lease.acquired',
  'lease.lost',
  'lease.released',
  'lease.transferred',
  'lease.abandoned',
  'lease.reasserted',
  'lease.revoked',
  'member.joined',
  'member.left',
  'member.draining',
  'member.undrained',
  'session.added',
  'session.changed',
  'session.paused',
  'session.resumed',
  'session.removed',
  'session.unreadable',
  'session.advanced',
  'session.recovered',
  'pipeline.started',
  'pipeline.ended',
  'pipeline.stuck',
  'worker.reclaimed',
  'worker.stalled',
  'worker.resumed',
  'intent.accepted',
  'intent.refused',
  'intent.republished',
  'fleet.stalled',
  'fleet.resumed',
  'target.taken',
  'poll.stuck',
  'poll.settled',
  'store.forgot',
  'store.quarantined',
  'result.refused',
  'workflow.claimed',
  'workflow.transferred',
  'workflow.revoked',
  'workflow.violation',
  'operator.acted',
] satisfies readonly EventName[];

export interface HistoryParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly instanceId: string;
}

export class History {
  readonly #parts: HistoryParts;
  readonly #unsubscribes: (() => void)[];
  #waiting: Record<string, unknown>[] = [];
  /** Dropped since that was last told here, and since it was last written down. */
  #dropped = 0;
  #missing = 0;
  #timer: Timer | null = null;
  #writing: Promise<void> | null = null;
  /** 0 unless the last request failed. */
  #pauseMs = 0;
  #isClosed = false;

  constructor(parts: HistoryParts) {
    this.#parts = parts;
    this.#unsubscribes = RECORDED.map((name) =>
      parts.events.on(name, (facts: object) => this.#record(name, facts)),
    );
  }

  /** Writes what waits, as far as that goes in this time, and records nothing more. */
  async close(withinMs = CLOSE_WITHIN_MS): Promise<void> {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#isClosed = true;
    this.#disarm();
    const { clock } = this.#parts;
    const leftMs = timeLeft(clock, withinMs);
    if (this.#writing !== null) await isDoneWithin(clock, withinMs, this.#writing);
    if (this.#writing === null) await this.#writeAll(leftMs);
  }

  #record(name: EventName, facts: object): void {
    if (!isOurs(facts, this.#parts.instanceId) || isSaidAlready(name, facts)) return;
    this.#note(name, facts);
    if (this.#waiting.length > MOST_WAITING) {
      this.#waiting.shift();
      this.#dropped++;
    }
    if (this.#writing !== null) return;
    if (this.#waiting.length >= BATCH && this.#pauseMs === 0) this.#begin();
    else this.#arm();
  }

  #note(event: EventName, facts: object): void {
    const { clock, instanceId: instance } = this.#parts;
    const at = Math.round(clock.wallMs());
    this.#waiting.push({ at, instance, event, ...clipped(plainFacts(facts)) });
  }

  #begin(): void {
    this.#disarm();
    this.#writing = this.#writeAll(() => TIMEOUT_MS).then(() => {
      this.#writing = null;
      if (!this.#isClosed && this.#waiting.length > 0) this.#arm();
    });
  }

  #arm(): void {
    const { clock, random } = this.#parts;
    const delayMs = this.#pauseMs > 0 ? jittered(this.#pauseMs, random) : LINGER_MS;
    this.#timer ??= clock.after(delayMs, () => this.#begin());
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** Until nothing waits any more, or the store does not take it. Never rejects. */
  async #writeAll(leftMs: () => number): Promise<void> {
    const { store } = this.#parts;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH);
      const droppedBefore = this.#dropped;
      try {
        await store.log.append(batch, { timeoutMs: leftMs() });
      } catch (error) {
        this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, PAUSE_FIRST_MS), PAUSE_MOST_MS);
        this.#tellDropped(error);
        return;
      }
      this.#pauseMs = 0;
      // What was dropped meanwhile stood at the front: so far as it was on its way, it has been written all the same.
      const rescued = Math.min(batch.length, this.#dropped - droppedBefore);
      this.#dropped -= rescued;
      this.#waiting = this.#waiting.slice(batch.length - rescued);
      this.#noteMissing();
      // A hint: who misses it looks again by itself.
      store.signals.publish(LOG_TOPIC, '').catch(() => {});
    }
  }

  #tellDropped(error: unknown): void {
    const count = this.#dropped;
    if (count === 0) return;
    this.#dropped = 0;
    this.#missing += count;
    this.#parts.events.emit('log.dropped', { count, error });
  }

  /** Who reads the log later should know, too. */
  #noteMissing(): void {
    if (this.#missing === 0) return;
    const error = 'the store was away for too long';
    this.#note('log.dropped', { count: this.#missing, error });
    this.#missing = 0;
  }
}

/** Its lease was acquired: where nobody had the target before, there is no more to say, and instances that start take thousands. */
function isSaidAlready(name: EventName, facts: object): boolean {
  return name === 'target.taken' && (facts as { how?: unknown }).how === 'first';
}

/**
 * Everybody sees members come and go; each of these is written down once, by the one it is about. But for those who can
 * not: who died, and members of another make.
 */
function isOurs(facts: object, instanceId: string): boolean {
  const { member, isForeign, reason } = facts as { [fact: string]: unknown };
  return (
    member === undefined || member === instanceId || isForeign === true || reason === 'expired'
  );
}

function clipped(facts: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).map(([name, fact]) => [
      name,
      typeof fact === 'string' ? fact.slice(0, MOST_FACT) : fact,
    ]),
  );
}
