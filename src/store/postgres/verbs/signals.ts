import { createHash } from 'node:crypto';
import type { Clock, Timer } from '../../../core/clock.ts';
import { isDoneWithin } from '../../../core/clock.ts';
import { Loop } from '../../../core/loop.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import type { SignalStore, Subscriber } from '../../port/signal-store.ts';
import type { PostgresLink } from '../dialer.ts';
import type { PostgresConnection } from '../postgres-connection.ts';
import { literal, statement, within } from '../statement.ts';
import type { ReturnedHint } from './function-connection.ts';

/** The timeout of subscribing and publishing. */
const TIMEOUT_MS = 2_000;
/** `close` waits this long to unsubscribe. Rows that stay behind expire. */
const CLOSE_MS = 500;
/** A hint to this process itself arrives within this time, or LISTEN is swallowed. */
const PROBE_MS = 1_000;
/** While hints are being sent, others gather for at least this long. */
const GATHER_MS = 2;
/** One statement sends at most so many hints. */
const MAX_SENT = 200;
/** At most so many hints wait to be sent. The oldest are dropped: their readers also look. */
const MAX_WAITING = 10_000;
/** A process counts as listening for this long, unless it says so again. */
const LISTENER_MS = 3_000;
const REFRESH_MS = 1_000;
/** How often a process looks for hints if it cannot LISTEN. */
const POLL_MS = 100;
/** PostgreSQL refuses a payload of 8,000 bytes. */
const MAX_PAYLOAD_BYTES = 7_900;
const OWNER_DIGITS = 16;

interface WaitingHint {
  readonly hint: readonly [channel: string, topic: string, payload: string];
  readonly done: (error?: unknown) => void;
}

export interface SignalOptions {
  readonly store: string;
  readonly schema: string;
  readonly prefix: string;
}

/**
 * Signals by NOTIFY, on a connection of their own.
 *
 * No verb notifies: NOTIFY takes a lock that every commit of the server shares. A verb returns its
 * hints, and this class sends those of many verbs with one statement. A process that dies in
 * between loses them, as any hint may be lost.
 *
 * Behind a pooler LISTEN is swallowed. The first subscription finds that out: a hint to this very
 * process does not arrive. Then hints for it are kept as rows, and it looks for them.
 */
export class PostgresSignals implements SignalStore {
  readonly #rt: BaseRuntime;
  readonly #clock: Clock;
  readonly #options: SignalOptions;
  readonly #hints: PostgresConnection;
  readonly #work: PostgresConnection;
  /** Identifies this store among all that use the database. */
  readonly #owner: string;
  /** By topic, with the prefix. */
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  readonly #topics = new Map<string, string>();
  readonly #waiting: WaitingHint[] = [];
  readonly #refreshes: Loop;
  #probe: Promise<void> | null = null;
  #onProbe: (() => void) | null = null;
  #mode: 'listens' | 'polls' = 'listens';
  #pollTimer: Timer | null = null;
  #isSending = false;
  #isRefreshing = false;
  #isClosed = false;
  #links = 0;

  /** `hints` LISTENs and notifies; `work` is another connection, for the probe. */
  constructor(
    rt: BaseRuntime,
    hints: PostgresConnection,
    work: PostgresConnection,
    options: SignalOptions,
  ) {
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#hints = hints;
    this.#work = work;
    this.#options = options;
    this.#owner = rt.random.hex(OWNER_DIGITS);
    this.#refreshes = new Loop(rt, {
      everyMs: REFRESH_MS,
      maxPauseMs: REFRESH_MS,
      round: () => this.#refresh(),
      // The readers of hints also look, and the verbs report a store that is away.
      onStalled: () => {},
      onResumed: () => {},
    });
  }

  /** How hints arrive. Takes a second where they do not arrive by LISTEN. */
  async findMode(): Promise<'listens' | 'polls'> {
    this.#probe ??= this.#probeMode();
    await this.#probe;
    return this.#mode;
  }

  /** Prepares a new link of the connection for hints. */
  async prepare(link: PostgresLink): Promise<void> {
    link.onNotification((channel, payload) => this.#onNotification(channel, payload));
    const topics = [...this.#subscribers.keys()];
    if (this.#mode !== 'polls' && topics.length > 0)
      await link.query(
        within(TIMEOUT_MS, topics.map((topic) => `LISTEN "${this.#channelOf(topic)}"`).join(';')),
      );
    // Hints between the two links are lost.
    if (++this.#links > 1) this.#clock.soon(() => this.#reportGap());
  }

  publish(topic: string, message: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (error?: unknown) =>
        error === undefined ? resolve() : reject(error instanceof Error ? error : new Error());
      this.#publish(this.#options.prefix + topic, message, done);
    });
  }

  /** Sends hints of a verb that has committed. */
  send(hints: readonly ReturnedHint[]): void {
    for (const [topic, message] of hints) this.#publish(topic, message, () => {});
  }

  async subscribe(topic: string, subscriber: Subscriber): Promise<() => void> {
    const name = storable(this.#options.prefix + topic);
    const known = this.#subscribers.get(name) ?? new Set();
    this.#subscribers.set(name, known);
    known.add(subscriber);
    try {
      if ((await this.findMode()) === 'listens')
        await this.#run('subscribe', `LISTEN "${this.#channelOf(name)}"`);
      await this.#register([...this.#subscribers.keys()]);
    } catch (error) {
      this.#unsubscribe(name, subscriber);
      throw error;
    }
    if (!this.#isRefreshing) void this.#refreshes.start();
    this.#isRefreshing = true;
    this.#schedulePoll();
    return () => this.#unsubscribe(name, subscriber);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pollTimer?.cancel();
    void this.#refreshes.stop();
    const wasListening = this.#subscribers.size > 0;
    this.#subscribers.clear();
    if (!wasListening) return;
    const leaving = this.#call('unsubscribe', 'hint_listen', this.#listening([], 0), CLOSE_MS);
    await isDoneWithin(this.#clock, CLOSE_MS, leaving);
  }

  #publish(topic: string, message: string, done: (error?: unknown) => void): void {
    const name = storable(topic);
    const local = [...(this.#subscribers.get(name) ?? [])];
    if (local.length > 0)
      this.#clock.soon(() => {
        for (const subscriber of local) subscriber.onMessage(message);
      });
    const hint = [this.#channelOf(name), name, this.#payloadOf(message)] as const;
    this.#waiting.push({ hint, done });
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift()?.done();
    if (!this.#isSending) void this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    // The rest of this turn may bring more.
    await null;
    while (this.#waiting.length > 0 && !this.#isClosed) {
      const batch = this.#waiting.splice(0, MAX_SENT);
      const request = { owner: this.#owner, hints: batch.map(({ hint }) => hint) };
      try {
        await this.#call('publish', 'hint_send', request);
        for (const { done } of batch) done();
      } catch (error) {
        for (const { done } of batch) done(error);
      }
      if (this.#waiting.length > 0) await this.#clock.sleep(GATHER_MS);
    }
    this.#isSending = false;
  }

  /** A payload names its sender, which has told its own subscribers already. */
  #payloadOf(message: string): string {
    const payload = `${this.#owner}m${message}`;
    const isSendable = Buffer.byteLength(payload) <= MAX_PAYLOAD_BYTES && !message.includes('\0');
    return isSendable ? payload : `${this.#owner}g`;
  }

  #onNotification(channel: string, payload: string): void {
    if (channel === this.#ownChannel) this.#onProbe?.();
    const topic = this.#topics.get(channel);
    if (topic !== undefined) this.#deliver(topic, payload);
  }

  #deliver(topic: string, payload: string): void {
    if (payload.startsWith(this.#owner)) return;
    const isGap = payload.charAt(OWNER_DIGITS) === 'g';
    const message = payload.slice(OWNER_DIGITS + 1);
    for (const subscriber of [...(this.#subscribers.get(topic) ?? [])]) {
      if (isGap) subscriber.onGap();
      else subscriber.onMessage(message);
    }
  }

  /** Sends a hint to this process itself, over another connection, and sees whether it arrives. */
  async #probeMode(): Promise<void> {
    try {
      await this.#run('subscribe', `LISTEN "${this.#ownChannel}"`);
      const arrived = new Promise<void>((resolve) => {
        this.#onProbe = resolve;
      });
      const sql = `SELECT pg_notify(${literal(this.#ownChannel)}, '')::text`;
      await this.#work.run('subscribe', within(TIMEOUT_MS, sql), TIMEOUT_MS);
      const isListening = await isDoneWithin(this.#clock, PROBE_MS, arrived);
      this.#mode = isListening ? 'listens' : 'polls';
    } catch (error) {
      this.#probe = null;
      throw error;
    }
    if (this.#mode === 'polls') this.#warn();
  }

  #warn(): void {
    const { events } = this.#rt;
    const finding =
      'A hint to this process itself did not arrive: a pooler swallows LISTEN. It looks for hints every 100 ms instead.';
    const advice = 'Add ?listen=postgres://… to the address, with an address of the server itself.';
    events.emit('store.warned', { store: this.#options.store, finding, advice });
    if (!events.hasListener('store.warned'))
      process.emitWarning(`${this.#options.store}: ${finding} ${advice}`, 'HoldfastWarning');
  }

  async #refresh(): Promise<undefined> {
    if (this.#isClosed || this.#subscribers.size === 0) return;
    const wasLive = await this.#register(null);
    if (wasLive) return;
    // The rows had expired: a hint may have gone to another waiter.
    await this.#register([...this.#subscribers.keys()]);
    this.#reportGap();
  }

  /** Returns whether this process counted as listening before. Follows the hints that were lost. */
  async #register(topics: readonly string[] | null): Promise<boolean> {
    type Reply = [wasLive: boolean, missed: ReturnedHint[]];
    const request = this.#listening(topics, LISTENER_MS);
    const [wasLive, missed] = await this.#call<Reply>('subscribe', 'hint_listen', request);
    for (const [topic, message] of missed)
      for (const subscriber of [...(this.#subscribers.get(topic) ?? [])])
        subscriber.onMessage(message);
    return wasLive;
  }

  #listening(topics: readonly string[] | null, ttl: number): object {
    const scope = this.#options.prefix;
    return { scope, owner: this.#owner, ttl, polls: this.#mode === 'polls', topics };
  }

  #schedulePoll(): void {
    if (this.#mode !== 'polls' || this.#pollTimer !== null || this.#isClosed) return;
    this.#pollTimer = this.#clock.after(POLL_MS, () => void this.#poll());
  }

  async #poll(): Promise<void> {
    try {
      const request = { owner: this.#owner };
      const rows = await this.#call<[string, string][]>('read hints', 'hint_take', request);
      for (const [topic, payload] of rows) this.#deliver(topic, payload);
    } catch {
      // The next look finds them.
    }
    this.#pollTimer = null;
    if (this.#subscribers.size > 0) this.#schedulePoll();
  }

  #unsubscribe(name: string, subscriber: Subscriber): void {
    const known = this.#subscribers.get(name);
    if (!known?.delete(subscriber) || known.size > 0 || this.#isClosed) return;
    this.#subscribers.delete(name);
    const channel = this.#channelOf(name);
    this.#topics.delete(channel);
    if (this.#mode === 'listens') this.#run('unsubscribe', `UNLISTEN "${channel}"`).catch(() => {});
    this.#register([...this.#subscribers.keys()]).catch(() => {});
  }

  #run(operation: string, text: string): Promise<string | null> {
    return this.#hints.run(operation, within(TIMEOUT_MS, text), TIMEOUT_MS);
  }

  async #call<R>(
    operation: string,
    name: string,
    request: object,
    timeoutMs = TIMEOUT_MS,
  ): Promise<R> {
    const { schema } = this.#options;
    const options = { schema, timeoutMs, isDurable: false };
    const sql = statement(name, JSON.stringify(request), options);
    return JSON.parse((await this.#hints.run(operation, sql, timeoutMs)) ?? 'null') as R;
  }

  #reportGap(): void {
    for (const subscribers of [...this.#subscribers.values()])
      for (const subscriber of [...subscribers]) subscriber.onGap();
  }

  get #ownChannel(): string {
    return `hf_${this.#owner}`;
  }

  /** A channel has at most 63 bytes, and is seen by all schemas of the database. */
  #channelOf(topic: string): string {
    const hash = createHash('sha256').update(`${this.#options.schema}/${topic}`).digest('hex');
    const channel = `hf_${hash.slice(0, 2 * OWNER_DIGITS)}`;
    if (this.#subscribers.has(topic)) this.#topics.set(channel, topic);
    return channel;
  }
}

/** PostgreSQL stores no NUL. */
function storable(text: string): string {
  return text.replaceAll('\0', '\u2400');
}
