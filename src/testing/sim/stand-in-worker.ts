/**
 * Does what a worker will: takes sessions from the stream of starts, one at a time, and brings each to its end. Nothing runs, and
 * nothing is leased; but what the store is told of a session is told as a worker would. Who finds one that another had
 * in hands goes on with it, or gives it up.
 */
import {
  type Outcome,
  type Reason,
  type SessionStatus,
  sessionOf,
} from '../../intents/intent-session.ts';
import { type SessionState, START_STREAM, type StoredSession } from '../../store/intent-store.ts';
import type { Store } from '../../store/store.ts';
import type { Delivery, Held } from '../../store/stream-store.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';

export interface StandInParts {
  readonly process: SimProcess;
  readonly store: Store;
  readonly counters: Counters;
  /** How long a session is a worker's without a sign of life. */
  readonly claimMs: number;
  /** Aborts when the instance is told to stop. */
  readonly over: AbortSignal;
}

interface Step {
  readonly state: SessionState;
  readonly reason: Reason | null;
  readonly outcome: Outcome | null;
}

/** How often it looks for something to do, and whether what it runs is to stop. */
const LOOK_MOST_MS = 2_000;
const STEP_MOST_MS = 800;
/** How long a session runs by itself, mostly; and one in so many, up to the longest. */
const RUN_USUAL_MS = 6_000;
const RUN_LONG_MS = 15_000;
const LONG_ONE_IN = 8;
/** A session that another had is given up rather than gone on with, once in so many. */
const GIVES_UP_ONE_IN = 3;
const CALL = { timeoutMs: 3_000 };

export class StandInWorker {
  readonly #parts: StandInParts;
  #work: Promise<void> = Promise.resolve();

  constructor(parts: StandInParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#work = this.#live();
  }

  /** Resolves when it does nothing any more; `over` tells it to. */
  stopped(): Promise<void> {
    return this.#work;
  }

  async #live(): Promise<void> {
    const { process, store, claimMs, over } = this.#parts;
    const call = { ...CALL, consumer: process.name, most: 1, claimMs };
    while (!over.aborted) {
      try {
        await this.#sleep(LOOK_MOST_MS, over);
        for (const delivery of await store.streams.consume(START_STREAM, call))
          await this.#serve(delivery);
      } catch {
        // The store is away, or we stop; what was in hands is given to another, now or when its time is over.
      }
    }
  }

  async #serve({ lane: id, fence, tries }: Delivery): Promise<void> {
    const { store, over } = this.#parts;
    const held = [{ lane: id, fence }];
    const gone = new AbortController();
    const signal = AbortSignal.any([gone.signal, over]);
    const keeping = this.#keep(held, gone, signal);
    if (tries > 1) this.#parts.counters.add('session taken over');
    try {
      await this.#bring(id, tries > 1, signal);
      await store.streams.ack(START_STREAM, held, CALL);
    } catch (error) {
      if (!over.aborted) throw error;
      await store.streams.retry(START_STREAM, [{ lane: id, fence, afterMs: 0 }], CALL);
    } finally {
      gone.abort();
      await keeping;
    }
  }

  /** Says from time to time that it is still at it, until it is told that it is not, or done. */
  async #keep(held: readonly Held[], gone: AbortController, signal: AbortSignal): Promise<void> {
    const { process, store, claimMs } = this.#parts;
    while (!signal.aborted) {
      await process.sleep(claimMs / 3, signal).catch(() => {});
      if (signal.aborted) return;
      const call = { ...CALL, claimMs };
      const [reply] = await store.streams.extend(START_STREAM, held, call).catch(() => []);
      if (reply === 'gone') gone.abort(new Error('another has it'));
    }
  }

  /** Until it has ended, or is not there any more. */
  async #bring(id: string, wasAnothers: boolean, signal: AbortSignal): Promise<void> {
    const { process, store } = this.#parts;
    const mostMs = this.#oneIn(LONG_ONE_IN) ? RUN_LONG_MS : RUN_USUAL_MS;
    const untilMs = process.monotonicMs() + process.random.next() * mostMs;
    const givesUp = wasAnothers && this.#oneIn(GIVES_UP_ONE_IN);
    for (;;) {
      signal.throwIfAborted();
      try {
        const [session = null] = await store.intents.read([id], CALL);
        if (session === null || session.state === 'ENDED') return;
        const step = givesUp ? LOST : stepAfter(session.state, process.monotonicMs() >= untilMs);
        await this.#sleep(step === null ? LOOK_MOST_MS : STEP_MOST_MS, signal);
        if (step !== null) await this.#advance(session, step);
      } catch {
        // The store is away: it is tried again for as long as nobody else has it.
        await this.#sleep(LOOK_MOST_MS, signal);
      }
    }
  }

  /** Refused where its clients were faster: then it is looked at once more. */
  async #advance(session: StoredSession, { state, reason, outcome }: Step): Promise<void> {
    const { process, store } = this.#parts;
    const { slot } = sessionOf(session);
    const status: SessionStatus = { reason, outcome, slot, worker: process.name };
    const change = { state, ifRevision: session.revision, status: JSON.stringify(status) };
    await store.intents.advance(session.id, change, CALL);
  }

  /** Up to so long. */
  #sleep(mostMs: number, signal: AbortSignal): Promise<void> {
    const { process } = this.#parts;
    return process.sleep(process.random.next() * mostMs, signal);
  }

  #oneIn(count: number): boolean {
    return this.#parts.process.random.next() * count < 1;
  }
}

const LOST: Step = { state: 'ENDED', reason: 'R_WORKER_LOST', outcome: 'FAILED' };

/** Null: it runs, and its time is not over. */
function stepAfter(state: SessionState, isOver: boolean): Step | null {
  const none = { reason: null, outcome: null };
  if (state === 'NEW') return { state: 'STARTING', ...none };
  if (state === 'STARTING') return { state: 'RUNNING', ...none };
  if (state === 'STOPPING') return { state: 'ENDED', reason: 'R_STOPPED', outcome: 'STOPPED' };
  return isOver ? { state: 'ENDED', reason: 'R_PIPELINE_ENDED', outcome: 'COMPLETED' } : null;
}
