/**
 * Writes events of this instance into the log that all instances share. Only transitions: frequent
 * events (renewals, refusals, successful polls) would push out those that people look for.
 *
 * No other work waits for it. Events are lost only after a long outage of the store, which
 * `log.dropped` reports, or in a crash, which loses the last quarter of a second. After a reply
 * that never came, entries may be in the log twice.
 */
import { isDoneWithin, type Timer, timeLeft } from '../core/clock.ts';
import type { EventName } from '../core/events.ts';
import { jittered } from '../core/random.ts';
import type { Runtime } from '../store/runtime.ts';
import { plainFacts } from './facts.ts';

/** The topic of hints about new entries. */
export const LOG_TOPIC = 'log';

/** Entries wait this long for others, unless there is a full batch. */
const LINGER_MS = 250;
const MAX_BATCH = 1_000;
/** Entries kept while the store is unavailable. Above that the oldest are dropped. */
const MAX_WAITING = 10_000;
const TIMEOUT_MS = 5_000;
/** Pauses after a failed request double from the minimum to the maximum. */
const MIN_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;
/** How long `close` tries to write the waiting entries. */
const CLOSE_WITHIN_MS = 1_000;

/**
 * Of doubts, and of confirmations: so many are kept of each until they are written. An outage puts
 * every lease in doubt at once, and would push everything else out of the log.
 */
const MAX_DOUBTS = 100;

/** Longer facts are cut: an error may quote anything, and an entry must fit into the log. */
const MAX_FACT_CHARACTERS = 2_000;

const RECORDED = [
  'lease.acquired',
  'lease.uncertain',
  'lease.confirmed',
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
  'pipeline.retried',
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
  'run.exited',
  'run.silent',
  'run.resumed',
  'run.stuck',
  'run.settled',
  'store.forgot',
  'store.quarantined',
  'loop.delayed',
  'result.refused',
  'workflow.claimed',
  'workflow.transferred',
  'workflow.started',
  'workflow.completed',
  'workflow.failed',
  'step.failed',
  'workflow.revoked',
  'workflow.violation',
  'operator.acted',
] satisfies readonly EventName[];

const DOUBTS: ReadonlySet<EventName> = new Set(['lease.uncertain', 'lease.confirmed']);

type HistoryRuntime = Omit<Runtime, 'tracing'>;

export class History {
  readonly #rt: HistoryRuntime;
  readonly #unsubscribes: (() => void)[];
  #waiting: Record<string, unknown>[] = [];
  /** Entries dropped since `log.dropped` was last emitted, and since it was last written. */
  #dropped = 0;
  #missing = 0;
  /** Entries of each kind of doubt that wait to be written. */
  readonly #doubts = new Map<EventName, number>();
  #timer: Timer | null = null;
  #writing: Promise<void> | null = null;
  /** 0 unless the last request failed. */
  #pauseMs = 0;
  #isClosed = false;

  constructor(rt: HistoryRuntime) {
    this.#rt = rt;
    this.#unsubscribes = RECORDED.map((name) =>
      rt.events.on(name, (facts: object) => this.#record(name, facts)),
    );
  }

  /** Stops recording, and tries to write the waiting entries within this time. */
  async close(withinMs = CLOSE_WITHIN_MS): Promise<void> {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#isClosed = true;
    this.#unschedule();
    const { clock } = this.#rt;
    const leftMs = timeLeft(clock, withinMs);
    if (this.#writing !== null) await isDoneWithin(clock, withinMs, this.#writing);
    if (this.#writing === null) await this.#writeAll(leftMs);
  }

  #record(name: EventName, facts: object): void {
    if (!isOurs(facts, this.#rt.instanceId) || isRedundant(name, facts)) return;
    if (DOUBTS.has(name) && !this.#countDoubt(name)) return;
    this.#append(name, facts);
    if (this.#waiting.length > MAX_WAITING) {
      this.#waiting.shift();
      this.#dropped++;
    }
    if (this.#writing !== null) return;
    if (this.#waiting.length >= MAX_BATCH && this.#pauseMs === 0) this.#startWriting();
    else this.#schedule();
  }

  /** Whether there is room for another. */
  #countDoubt(name: EventName): boolean {
    const count = (this.#doubts.get(name) ?? 0) + 1;
    this.#doubts.set(name, count);
    return count <= MAX_DOUBTS;
  }

  #append(event: EventName, facts: object): void {
    const { clock, instanceId: instance } = this.#rt;
    const at = Math.round(clock.wallMs());
    const entry: Record<string, unknown> = { at, instance, event };
    for (const [name, fact] of Object.entries(plainFacts(facts))) entry[name] = clipped(fact);
    this.#waiting.push(entry);
  }

  #startWriting(): void {
    this.#unschedule();
    this.#writing = this.#writeAll(() => TIMEOUT_MS).then(() => {
      this.#writing = null;
      if (!this.#isClosed && this.#waiting.length > 0) this.#schedule();
    });
  }

  #schedule(): void {
    const { clock, random } = this.#rt;
    const delayMs = this.#pauseMs > 0 ? jittered(this.#pauseMs, random) : LINGER_MS;
    this.#timer ??= clock.after(delayMs, () => this.#startWriting());
  }

  #unschedule(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** Writes until no entry waits, or the store fails. Never rejects. */
  async #writeAll(leftMs: () => number): Promise<void> {
    const { store } = this.#rt;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, MAX_BATCH);
      const droppedBefore = this.#dropped;
      try {
        await store.log.append(batch, { timeoutMs: leftMs() });
      } catch (error) {
        this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, MIN_PAUSE_MS), MAX_PAUSE_MS);
        this.#reportDropped(error);
        return;
      }
      this.#pauseMs = 0;
      // Entries dropped meanwhile were at the front. Those in this batch were written after all.
      const rescued = Math.min(batch.length, this.#dropped - droppedBefore);
      this.#dropped -= rescued;
      this.#waiting = this.#waiting.slice(batch.length - rescued);
      this.#doubts.clear();
      this.#appendMissing();
      // Only a hint: readers that miss it read periodically.
      store.signals.publish(LOG_TOPIC, '').catch(() => {});
    }
  }

  #reportDropped(error: unknown): void {
    const count = this.#dropped;
    if (count === 0) return;
    this.#dropped = 0;
    this.#missing += count;
    this.#rt.events.emit('log.dropped', { count, error });
  }

  /** Readers of the log should know that entries are missing. */
  #appendMissing(): void {
    if (this.#missing === 0) return;
    const error = 'the store was unavailable for too long';
    this.#append('log.dropped', { count: this.#missing, error });
    this.#missing = 0;
  }
}

/**
 * For a target without an earlier owner `lease.acquired` says it all, and a start takes thousands.
 * Of a task that keeps ending, the first end of a row is news; the result of its target has the
 * last.
 */
function isRedundant(name: EventName, facts: object): boolean {
  const { how, exits } = facts as { how?: unknown; exits?: unknown };
  return name === 'target.taken' ? how === 'first' : name === 'run.exited' && exits !== 1;
}

/**
 * All instances see a member join or leave, but only that member records it. For one that cannot,
 * because it died or is not a Holdfast instance, all others do.
 */
function isOurs(facts: object, instanceId: string): boolean {
  const { member, isForeign, reason } = facts as { [fact: string]: unknown };
  return (
    member === undefined || member === instanceId || isForeign === true || reason === 'expired'
  );
}

function clipped(fact: unknown): unknown {
  return typeof fact === 'string' ? fact.slice(0, MAX_FACT_CHARACTERS) : fact;
}
