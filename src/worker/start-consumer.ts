/**
 * Takes what is to be started, as much as there is room for. A session is claimed by one step of the store, put-if-revision: of several
 * workers that have it in hands one makes it its own. Then its entry is acknowledged: from there on whoever looks finds it by its state. What is
 * delivered once more, or was stopped before anybody took it, is acknowledged, and nothing is changed.
 */

import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { Loop } from '../core/loop.ts';
import type { Random } from '../core/random.ts';
import { readable, readSessions } from '../intents/session-reading.ts';
import { START_STREAM, type StoredSession } from '../store/port/intent-store.ts';
import type { Store } from '../store/port/store.ts';
import { type Delivery, streamTopic } from '../store/port/stream-store.ts';
import { Subscription } from '../store/subscription.ts';
import { SessionRecord } from './session-record.ts';

/** Without a hint it is looked for work this often. */
const LOOK_EVERY_MS = 1_000;
/** How long an entry is this worker's: claiming takes a moment, and who dies meanwhile should not be waited for. */
const CLAIM_MS = 5_000;
/** Entries in one request. */
const MOST = 64;
const CALL = { timeoutMs: 2_000 };

export interface IntakeParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly instanceId: string;
  /** How many more may be started now. */
  room(): number;
  has(id: string): boolean;
  /** It is this worker's now. */
  claimed(file: SessionRecord): void;
}

export class StartConsumer {
  readonly #parts: IntakeParts;
  readonly #chore: Loop;
  readonly #listening: Subscription;
  readonly #claiming = new Set<Promise<void>>();
  #isStopped = false;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    this.#chore = new Loop(parts, {
      everyMs: LOOK_EVERY_MS,
      round: () => this.#look(),
      onStalled: (error) => parts.events.emit('worker.stalled', { error }),
      onResumed: (afterMs) => parts.events.emit('worker.resumed', { afterMs }),
    });
    const onHint = () => this.#chore.wake();
    this.#listening = new Subscription(parts, streamTopic(START_STREAM), onHint);
  }

  async start(): Promise<void> {
    await this.#listening.open();
    // It may have been told to stop meanwhile.
    if (!this.#isStopped) await this.#chore.start();
  }

  /** Resolves when nothing is claimed any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#listening.close();
    await this.#chore.stop();
    await Promise.all(this.#claiming);
  }

  /** There is room again. */
  hint(): void {
    this.#chore.wake();
  }

  async #look(): Promise<undefined> {
    const { store, instanceId: consumer } = this.#parts;
    await this.#listening.open();
    for (;;) {
      const most = Math.min(MOST, this.#parts.room() - this.#claiming.size);
      if (most <= 0 || this.#isStopped) return undefined;
      const call = { ...CALL, consumer, most, claimMs: CLAIM_MS };
      const taken = await store.streams.consume(START_STREAM, call);
      if (taken.length > 0) await this.#claimAll(taken);
      if (taken.length < most) return undefined;
    }
  }

  async #claimAll(taken: readonly Delivery[]): Promise<void> {
    const ids = taken.map(({ lane }) => lane);
    const found = await readSessions(this.#parts, ids, CALL);
    for (const [i, delivery] of taken.entries()) {
      // What fails is given out again in a while, to whoever asks.
      const claiming = this.#claim(delivery, found[i] ?? null).catch(() => {});
      this.#claiming.add(claiming);
      void claiming.then(() => {
        this.#claiming.delete(claiming);
        this.#chore.wake();
      });
    }
  }

  async #claim({ lane: id, fence }: Delivery, stored: StoredSession | null): Promise<void> {
    const { store, events, instanceId: worker } = this.#parts;
    const held = { lane: id, fence };
    if (this.#isStopped) {
      await store.streams.retry(START_STREAM, [{ ...held, afterMs: 0 }], CALL);
      return;
    }
    const isStart = stored?.state === 'NEW' && !this.#parts.has(id);
    // What cannot be read is not started by anybody: its entry would be given out for ever.
    if (isStart && readable(events, stored) !== null) {
      const file = new SessionRecord(this.#parts, stored);
      // Not written: it was stopped, or claimed by another, a moment ago.
      const isNew = () => file.session.state === 'NEW';
      if (await file.write('STARTING', { worker }, isNew)) this.#parts.claimed(file);
    }
    await store.streams.ack(START_STREAM, [held], CALL);
  }
}
