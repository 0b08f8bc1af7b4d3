/**
 * Takes session starts from the streams of its kinds, as many as the worker has room for. One step
 * of the store,
 * put-if-revision, claims a session: of several workers that were given it, one makes it its own.
 * The entry is then acknowledged, because from now on the session's state says that it was taken.
 * An entry that is delivered again, or whose session was stopped before, is acknowledged only.
 */
import { Loop } from '../core/loop.ts';
import { readable, readSessions } from '../intents/session-reading.ts';
import { type StoredSession, startStream } from '../store/port/intent-store.ts';
import { type Delivery, streamTopic } from '../store/port/stream-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { Subscription } from '../store/subscription.ts';
import { SessionRecord } from './session-record.ts';
import type { SessionRunSet } from './session-run-set.ts';

/** How often the streams are read without a hint. */
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
  /** The kinds that this worker takes, in the order in which they are read. */
  readonly #claiming: ReadonlyMap<string, Set<Promise<void>>>;
  readonly #hints: readonly Subscription[];
  #isStopped = false;

  constructor(rt: Runtime, runs: SessionRunSet, kinds: Iterable<string>) {
    this.#rt = rt;
    this.#runs = runs;
    this.#claiming = new Map([...kinds].map((kind) => [kind, new Set()]));
    this.#loop = new Loop(rt, {
      everyMs: READ_EVERY_MS,
      round: () => this.#readStreams(),
      onStalled: (error) => rt.events.emit('worker.stalled', { error }),
      onResumed: (afterMs) => rt.events.emit('worker.resumed', { afterMs }),
    });
    this.#hints = [...this.#claiming.keys()].map(
      (kind) => new Subscription(rt, streamTopic(startStream(kind)), () => this.wake()),
    );
  }

  async start(): Promise<void> {
    await this.#openHints();
    // `stop` may have been called meanwhile.
    if (!this.#isStopped) await this.#loop.start();
  }

  /** Resolves when no claim is under way any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const hints of this.#hints) hints.close();
    await this.#loop.stop();
    await Promise.all([...this.#claiming.values()].flatMap((claiming) => [...claiming]));
  }

  /** Reads the stream soon: there may be an entry, or room for one. */
  wake(): void {
    this.#loop.wake();
  }

  async #openHints(): Promise<void> {
    await Promise.all(this.#hints.map((hints) => hints.open()));
  }

  /** Starts of a kind that waits for slots do not hold back other kinds: each has its own room. */
  async #readStreams(): Promise<undefined> {
    await this.#openHints();
    const reading = [...this.#claiming].map(([kind, claiming]) => this.#readStream(kind, claiming));
    await Promise.all(reading);
    return undefined;
  }

  async #readStream(kind: string, claiming: Set<Promise<void>>): Promise<void> {
    const { store, instanceId: consumer } = this.#rt;
    for (;;) {
      const most = Math.min(MAX_ENTRIES, this.#runs.room(kind) - claiming.size);
      if (most <= 0 || this.#isStopped) return;
      const call = { ...CALL, consumer, most, claimMs: CLAIM_MS };
      const deliveries = await store.streams.consume(startStream(kind), call);
      if (deliveries.length > 0) await this.#claimAll(kind, deliveries, claiming);
      if (deliveries.length < most) return;
    }
  }

  async #claimAll(
    kind: string,
    deliveries: readonly Delivery[],
    underWay: Set<Promise<void>>,
  ): Promise<void> {
    const ids = deliveries.map(({ lane }) => lane);
    const found = await readSessions(this.#rt, ids, CALL);
    for (const [i, delivery] of deliveries.entries()) {
      // An entry whose claim fails is delivered again after CLAIM_MS.
      const claiming = this.#claim(kind, delivery, found[i] ?? null).catch(() => {});
      underWay.add(claiming);
      void claiming.then(() => {
        underWay.delete(claiming);
        this.wake();
      });
    }
  }

  async #claim(
    kind: string,
    { lane: id, fence }: Delivery,
    stored: StoredSession | null,
  ): Promise<void> {
    const { store, events, instanceId: worker } = this.#rt;
    const entry = { lane: id, fence };
    if (this.#isStopped) {
      await store.streams.retry(startStream(kind), [{ ...entry, afterMs: 0 }], CALL);
      return;
    }
    // A program may have put an entry into the stream of another kind.
    const isStart = stored?.state === 'NEW' && stored.kind === kind && !this.#runs.has(id);
    // No worker can start an unreadable session: its entry would be delivered for ever.
    if (isStart && readable(events, stored) !== null) {
      const record = new SessionRecord(this.#rt, stored);
      const isNew = () => record.session.state === 'NEW';
      // Not written: the session was stopped, or another worker has claimed it.
      if (await record.write('STARTING', { worker }, isNew)) this.#runs.start(record);
    }
    await store.streams.ack(startStream(kind), [entry], CALL);
  }
}
