import type { Clock, Timer } from '../../../core/clock.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import type { SignalStore, Subscriber } from '../../port/signal-store.ts';
import type { FileConnection } from '../file/file-connection.ts';
import type { Host } from '../file/host.ts';
import type { LockQueue } from '../file/lock-queue.ts';
import { LogWatch } from '../file/log-watch.ts';
import type { SqliteOptions } from '../file/options.ts';
import type { Tx, TxSignals } from '../file/sqlite-connection.ts';

/** The timeout of subscribing and publishing. */
const CALL = { timeoutMs: 2_000 };
/** `close` waits this long to unsubscribe. Rows that stay behind expire. */
const CLOSE_CALL = { timeoutMs: 200 };
/**
 * How often the file is polled for messages: while this process waits for a key, and while it only
 * has subscribers. Polling is for hosts where `LogWatch` reports no writes.
 */
const POLL_MS = 25;
const IDLE_POLL_MS = 100;
/** A listener's row expires after this, unless refreshed. A dead process stops counting at once. */
const LISTENER_MS = 3_000;
const REFRESH_MS = 1_000;
/** At most so many messages are kept. A listener that is further behind is told of the gap. */
const MAX_MESSAGES = 10_000;
/** A message older than this may be removed: each listener has read it, or has expired. */
const MESSAGE_MS = 10_000;
/** One poll reads at most so many messages. */
const MAX_READ = 1_000;
/** Each new message removes at most so many old ones. */
const MAX_REMOVED = 4;

type MessageRow = [id: number, topic: string, sender: string, message: string];

/**
 * Signals as rows of the file.
 *
 * A message is a row. Each process with subscribers reads the rows after the last one it has read.
 * A listener is a row, too, so `send` knows whether a waiter can get its hint. Subscribers of this
 * store get a message directly.
 */
export class SqliteSignals implements SignalStore, TxSignals {
  readonly #prefix: string;
  readonly #file: FileConnection;
  readonly #queue: LockQueue;
  readonly #clock: Clock;
  readonly #host: Host;
  readonly #log: LogWatch;
  /** Identifies this store among all that use the file. */
  readonly #owner: string;
  /** By topic, with the prefix. */
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  /** The keys that callers of this store wait for. */
  readonly #awaitedKeys = new Set<string>();
  #timer: Timer | null = null;
  #timerMs = 0;
  #isClosed = false;
  #generation = -1;
  #dataVersion: number | null = null;
  #lastRead = 0;
  #refreshedMs = 0;
  #isRefreshing = false;

  constructor(rt: BaseRuntime, file: FileConnection, queue: LockQueue, options: SqliteOptions) {
    this.#prefix = options.prefix;
    this.#file = file;
    this.#queue = queue;
    this.#clock = rt.clock;
    this.#host = options.host;
    this.#log = new LogWatch(rt.clock, file.location.path, () => this.#poll());
    this.#owner = `${options.host.process}/${rt.random.hex(8)}`;
  }

  async publish(topic: string, message: string): Promise<void> {
    await this.#queue.writeOne('publish', CALL, (tx) => this.send(tx, topic, message));
  }

  async subscribe(topic: string, subscriber: Subscriber): Promise<() => void> {
    const name = this.#prefix + topic;
    const known = this.#subscribers.get(name) ?? new Set();
    this.#subscribers.set(name, known);
    known.add(subscriber);
    try {
      await this.#refresh();
    } catch (error) {
      this.#unsubscribe(name, subscriber);
      throw error;
    }
    this.#schedulePoll();
    return () => this.#unsubscribe(name, subscriber);
  }

  /** Sends a message when the transaction commits. Returns whether the topic has a subscriber. */
  send(tx: Tx, topic: string, message: string): boolean {
    const name = this.#prefix + topic;
    const local = [...(this.#subscribers.get(name) ?? [])];
    if (local.length > 0)
      tx.afterCommit.push(() =>
        this.#clock.soon(() => {
          for (const subscriber of local) subscriber.onMessage(message);
        }),
      );
    const hasOtherListener = this.#hasOtherListener(tx, name);
    if (hasOtherListener) this.#addMessage(tx, name, message);
    return local.length > 0 || hasOtherListener;
  }

  /** A caller of this store waits for the key: the file is polled more often. */
  beginWait(key: string): void {
    this.#awaitedKeys.add(key);
    if (this.#timerMs > POLL_MS) this.#schedulePoll();
  }

  endWait(key: string): void {
    this.#awaitedKeys.delete(key);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#log.close();
    const wasListening = this.#subscribers.size > 0;
    this.#subscribers.clear();
    if (!wasListening) return;
    await this.#queue
      .writeOne('unsubscribe', CLOSE_CALL, ({ connection }) =>
        connection.run('DELETE FROM listeners WHERE owner = ?', this.#owner),
      )
      .catch(() => {});
  }

  #hasOtherListener({ connection, nowMs }: Tx, topic: string): boolean {
    const sql = 'SELECT owner, expires FROM listeners WHERE topic = ?';
    const owners = connection.rows<[string, number]>(sql, topic);
    const isAlive = ([owner, expires]: [string, number]) =>
      expires > nowMs && !this.#host.isGone(owner.slice(0, owner.lastIndexOf('/')));
    return owners.filter(([owner]) => owner !== this.#owner).some(isAlive);
  }

  #addMessage({ connection, nowMs }: Tx, topic: string, message: string): void {
    const sql =
      'INSERT INTO messages (topic, sender, message, at) VALUES (?, ?, ?, ?) RETURNING id';
    const [id = 0] = connection.row<[number]>(sql, topic, this.#owner, message, nowMs) ?? [];
    const oldest = connection.rows<[number, number]>(
      `SELECT id, at FROM messages ORDER BY id LIMIT ${MAX_REMOVED}`,
    );
    const last = oldest.findLast(
      ([old, at]) => at < nowMs - MESSAGE_MS || old <= id - MAX_MESSAGES,
    );
    if (last !== undefined) connection.run('DELETE FROM messages WHERE id <= ?', last[0]);
  }

  #unsubscribe(name: string, subscriber: Subscriber): void {
    const known = this.#subscribers.get(name);
    if (!known?.delete(subscriber) || known.size > 0 || this.#isClosed) return;
    this.#subscribers.delete(name);
    if (this.#subscribers.size === 0) {
      this.#refreshedMs = 0;
      this.#log.close();
    }
    this.#queue
      .writeOne('unsubscribe', CALL, ({ connection }) => {
        if (!this.#subscribers.has(name))
          connection.run('DELETE FROM listeners WHERE topic = ? AND owner = ?', name, this.#owner);
      })
      .catch(() => {});
  }

  /** Writes a listener row for each topic. Messages written after the first refresh are read. */
  async #refresh(): Promise<void> {
    const beganMs = this.#clock.monotonicMs();
    await this.#queue.writeOne('subscribe', CALL, (tx) => {
      const { connection, nowMs } = tx;
      connection.run('DELETE FROM listeners WHERE expires <= ?', nowMs);
      const sql = 'INSERT OR REPLACE INTO listeners VALUES (?, ?, ?)';
      for (const topic of this.#subscribers.keys())
        connection.run(sql, topic, this.#owner, nowMs + LISTENER_MS);
      if (this.#generation !== this.#file.generation) {
        const last = lastMessage(tx);
        tx.afterCommit.push(() => this.#begin(last));
      }
    });
    const isListening = !this.#isClosed && this.#subscribers.size > 0;
    if (isListening && !this.#log.isWatching) this.#log.open();
    const isLate =
      this.#refreshedMs > 0 && this.#clock.monotonicMs() - this.#refreshedMs > LISTENER_MS;
    this.#refreshedMs = beganMs;
    // The listener rows had expired: a hint may have gone to another waiter.
    if (isLate) this.#reportGap();
  }

  /** Begins on a new connection. Messages written since the previous connection are lost. */
  #begin(last: number): void {
    const isFirst = this.#generation === -1;
    this.#generation = this.#file.generation;
    this.#log.close();
    this.#lastRead = last;
    this.#dataVersion = null;
    if (!isFirst) this.#clock.soon(() => this.#reportGap());
  }

  #schedulePoll(): void {
    this.#timer?.cancel();
    this.#timer = null;
    if (this.#isClosed || this.#subscribers.size === 0) return;
    this.#timerMs = this.#awaitedKeys.size > 0 ? POLL_MS : IDLE_POLL_MS;
    this.#timer = this.#clock.after(this.#timerMs, () => this.#poll());
  }

  #poll(): void {
    const version = this.#file.dataVersion();
    if (version !== null && version !== this.#dataVersion) {
      this.#dataVersion = version;
      // After a failure the next poll reads them.
      this.#readMessages().catch(() => {
        this.#dataVersion = null;
      });
    }
    const isDue = this.#clock.monotonicMs() - this.#refreshedMs >= REFRESH_MS;
    const isAnotherFile = this.#generation !== this.#file.generation;
    if (!this.#isRefreshing && (isDue || isAnotherFile)) {
      this.#isRefreshing = true;
      this.#refresh()
        .catch(() => {})
        .finally(() => {
          this.#isRefreshing = false;
        });
    }
    this.#schedulePoll();
  }

  async #readMessages(): Promise<void> {
    await this.#queue.readOne('read messages', CALL, (tx) => {
      if (this.#generation !== this.#file.generation) return;
      const sql = `SELECT id, topic, sender, message FROM messages WHERE id > ? ORDER BY id LIMIT ${MAX_READ}`;
      const rows = tx.connection.rows<MessageRow>(sql, this.#lastRead);
      const last = rows.at(-1)?.[0] ?? lastMessage(tx);
      const hasGap = last > this.#lastRead && rows[0]?.[0] !== this.#lastRead + 1;
      this.#lastRead = last;
      if (rows.length === MAX_READ) this.#dataVersion = null;
      tx.afterCommit.push(() => this.#clock.soon(() => this.#deliver(rows, hasGap)));
    });
  }

  #deliver(rows: readonly MessageRow[], hasGap: boolean): void {
    if (hasGap) this.#reportGap();
    for (const [, topic, sender, message] of rows) {
      if (sender === this.#owner) continue;
      for (const subscriber of this.#subscribers.get(topic) ?? []) subscriber.onMessage(message);
    }
  }

  #reportGap(): void {
    for (const subscribers of [...this.#subscribers.values()])
      for (const subscriber of [...subscribers]) subscriber.onGap();
  }
}

function lastMessage({ connection }: Tx): number {
  return (
    connection.row<[number]>("SELECT seq FROM sqlite_sequence WHERE name = 'messages'")?.[0] ?? 0
  );
}
