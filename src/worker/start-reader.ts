/**
 * Takes session starts from the stream, as many as the worker has room for. One step of the store,
 * put-if-revision, claims a session: of several workers that were given it, one makes it its own.
 * The entry is then acknowledged, because from now on the session's state says that it was taken.
 * An entry that is delivered again, or whose session was stopped before, is acknowledged only.
 */
import { Loop } from '../core/loop.ts';
import { readable, readSessions } from '../intents/session-reading.ts';
import { START_STREAM, type StoredSession } from '../store/port/intent-store.ts';
import { type Delivery, streamTopic } from '../store/port/stream-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { Subscription } from '../store/subscription.ts';
import { SessionRecord } from './session-record.ts';
import type { SessionRunSet } from './session-run-set.ts';

/** How often the stream is read without a hint. */
const READ_EVERY_MS = 1_000;
/**
 * How long an entry belongs to this worker. Claiming is quick, and a dead worker should not delay
 * the start.
 */
const CLAIM_MS = 5_000;
/** Entries in one request. */
const MAX_ENTRIES = 64;
const CALL = { timeoutMs: 2_000 };

export class StartReader {
  readonly #rt: Runtime;
  readonly #runs: SessionRunSet;
  readonly #loop: Loop;
  readonly #hints: Subscription;
  readonly #claiming = new Set<Promise<void>>();
  #isStopped = false;

  constructor(rt: Runtime, runs: SessionRunSet) {
    this.#rt = rt;
    this.#runs = runs;
    this.#loop = new Loop(rt, {
      everyMs: READ_EVERY_MS,
      round: () => this.#readStream(),
      onStalled: (error) => rt.events.emit('worker.stalled', { error }),
      onResumed: (afterMs) => rt.events.emit('worker.resumed', { afterMs }),
    });
    this.#hints = new Subscription(rt, streamTopic(START_STREAM), () => this.wake());
  }

  async start(): Promise<void> {
    await this.#hints.open();
    // `stop` may have been called meanwhile.
    if (!this.#isStopped) await this.#loop.start();
  }

  /** Resolves when no claim is under way any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#hints.close();
    await this.#loop.stop();
    await Promise.all(this.#claiming);
  }

  /** Reads the stream soon: there may be an entry, or room for one. */
  wake(): void {
    this.#loop.wake();
  }

  async #readStream(): Promise<undefined> {
    const { store, instanceId: consumer } = this.#rt;
    await this.#hints.open();
    for (;;) {
      const most = Math.min(MAX_ENTRIES, this.#runs.room - this.#claiming.size);
      if (most <= 0 || this.#isStopped) return undefined;
      const call = { ...CALL, consumer, most, claimMs: CLAIM_MS };
      const deliveries = await store.streams.consume(START_STREAM, call);
      if (deliveries.length > 0) await this.#claimAll(deliveries);
      if (deliveries.length < most) return undefined;
    }
  }

  async #claimAll(deliveries: readonly Delivery[]): Promise<void> {
    const ids = deliveries.map(({ lane }) => lane);
    const found = await readSessions(this.#rt, ids, CALL);
    for (const [i, delivery] of deliveries.entries()) {
      // An entry whose claim fails is delivered again after CLAIM_MS.
      const claiming = this.#claim(delivery, found[i] ?? null).catch(() => {});
      this.#claiming.add(claiming);
      void claiming.then(() => {
        this.#claiming.delete(claiming);
        this.wake();
      });
    }
  }

  async #claim({ lane: id, fence }: Delivery, stored: StoredSession | null): Promise<void> {
    const { store, events, instanceId: worker } = this.#rt;
    const entry = { lane: id, fence };
    if (this.#isStopped) {
      await store.streams.retry(START_STREAM, [{ ...entry, afterMs: 0 }], CALL);
      return;
    }
    const isStart = stored?.state === 'NEW' && !this.#runs.has(id);
    // No worker can start an unreadable session: its entry would be delivered for ever.
    if (isStart && readable(events, stored) !== null) {
      const record = new SessionRecord(this.#rt, stored);
      const isNew = () => record.session.state === 'NEW';
      // Not written: the session was stopped, or another worker has claimed it.
      if (await record.write('STARTING', { worker }, isNew)) this.#runs.start(record);
    }
    await store.streams.ack(START_STREAM, [entry], CALL);
  }
}
