import type { Clock, Timer } from '../../../core/clock.ts';
import type { Random } from '../../../core/random.ts';
import type { SignalStore, Subscriber } from '../../port/signal-store.ts';
import type { DatabaseFile } from '../file/database-file.ts';
import type { Host } from '../file/host.ts';
import type { LockQueue } from '../file/lock-queue.ts';
import { LogWatch } from '../file/log-watch.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import type { Names } from '../tables/names.ts';

/** How long a subscription or a publication may take. */
const CALL = { timeoutMs: 2_000 };
/** How long unsubscribing may hold up closing; what stays behind expires. */
const CLOSE_CALL = { timeoutMs: 200 };
/**
 * How often the file is looked at while somebody here waits for a key; and otherwise, while anybody listens at all. That is for hosts
 * on which nobody says that it was written to: else it is looked at then, and this finds nothing.
 */
const WATCH_MS = 25;
const IDLE_WATCH_MS = 100;
/** How long a listener counts as one without a sign of life, and how often it gives one. A process that is gone counts no more at once. */
const LISTENER_MS = 3_000;
const REFRESH_MS = 1_000;
/** How many messages are kept for those who have not looked yet. Who is further behind is told of the gap. */
const MESSAGES_KEPT = 10_000;
/** A message older than this may go: its listeners have looked since, or do not count any more. */
const MESSAGE_MS = 10_000;
/** How many messages one look takes out of the file. */
const MOST_READ = 1_000;
/** How many old messages each new one clears away. */
const CLEARED = 4;

type MessageRow = [id: number, topic: string, sender: string, message: string];

/**
 * Messages are rows that every process with listeners reads past where it was. Those who listen are rows, too: so whoever frees a key
 * knows whether the next in line can hear of it. Within this store messages arrive without being looked for.
 */
export class SqliteSignals implements SignalStore {
  readonly #names: Names;
  readonly #file: DatabaseFile;
  readonly #turns: LockQueue;
  readonly #clock: Clock;
  readonly #host: Host;
  readonly #log: LogWatch;
  /** This store among all that use the file. */
  readonly #owner: string;
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  /** The keys for which somebody here stands in line: only then is every moment worth a look. */
  readonly #expected = new Set<string>();
  #timer: Timer | null = null;
  #timerMs = 0;
  #isClosed = false;
  #generation = -1;
  #dataVersion: number | null = null;
  #lastRead = 0;
  #refreshedMs = 0;
  #isRefreshing = false;

  constructor(parts: {
    path: string;
    names: Names;
    file: DatabaseFile;
    turns: LockQueue;
    clock: Clock;
    random: Random;
    host: Host;
  }) {
    this.#names = parts.names;
    this.#file = parts.file;
    this.#turns = parts.turns;
    this.#clock = parts.clock;
    this.#host = parts.host;
    this.#log = new LogWatch(parts.path, parts.clock, () => this.#look());
    this.#owner = `${parts.host.process}/${parts.random.hex(8)}`;
  }

  async publish(topic: string, message: string): Promise<void> {
    await this.#turns.writeOne('publish', CALL, (tx) =>
      this.send(tx, this.#names.of(topic), message),
    );
  }

  async subscribe(topic: string, subscriber: Subscriber): Promise<() => void> {
    const name = this.#names.of(topic);
    const known = this.#subscribers.get(name) ?? new Set();
    this.#subscribers.set(name, known);
    known.add(subscriber);
    try {
      await this.#refresh();
    } catch (error) {
      this.#unsubscribe(name, subscriber);
      throw error;
    }
    this.#watch();
    return () => this.#unsubscribe(name, subscriber);
  }

  /** Sends a message once the transaction is committed; says whether anybody will hear it. */
  send(tx: Tx, topic: string, message: string): boolean {
    const here = [...(this.#subscribers.get(topic) ?? [])];
    if (here.length > 0)
      tx.after.push(() =>
        this.#clock.soon(() => {
          for (const subscriber of here) subscriber.onMessage(message);
        }),
      );
    const isHeardElsewhere = this.#isHeardElsewhere(tx, topic);
    if (isHeardElsewhere) this.#write(tx, topic, message);
    return here.length > 0 || isHeardElsewhere;
  }

  /** Somebody here stands in line for the key. */
  expect(key: string): void {
    this.#expected.add(key);
    if (this.#timerMs > WATCH_MS) this.#watch();
  }

  expectNoMore(key: string): void {
    this.#expected.delete(key);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#log.close();
    const wasListening = this.#subscribers.size > 0;
    this.#subscribers.clear();
    if (!wasListening) return;
    await this.#turns
      .writeOne('unsubscribe', CLOSE_CALL, ({ session }) =>
        session.run('DELETE FROM listeners WHERE owner = ?', this.#owner),
      )
      .catch(() => {});
  }

  #isHeardElsewhere({ session, nowMs }: Tx, topic: string): boolean {
    const owners = session.rows<[string, number]>(
      'SELECT owner, expires FROM listeners WHERE topic = ?',
      topic,
    );
    const isAlive = ([owner, expires]: [string, number]) =>
      expires > nowMs && !this.#host.isGone(owner.slice(0, owner.lastIndexOf('/')));
    return owners.filter(([owner]) => owner !== this.#owner).some(isAlive);
  }

  #write({ session, nowMs }: Tx, topic: string, message: string): void {
    const [id = 0] =
      session.row<[number]>(
        'INSERT INTO messages (topic, sender, message, at) VALUES (?, ?, ?, ?) RETURNING id',
        topic,
        this.#owner,
        message,
        nowMs,
      ) ?? [];
    const oldest = session.rows<[number, number]>(
      `SELECT id, at FROM messages ORDER BY id LIMIT ${CLEARED}`,
    );
    const last = oldest.findLast(
      ([old, at]) => at < nowMs - MESSAGE_MS || old <= id - MESSAGES_KEPT,
    );
    if (last !== undefined) session.run('DELETE FROM messages WHERE id <= ?', last[0]);
  }

  #unsubscribe(name: string, subscriber: Subscriber): void {
    const known = this.#subscribers.get(name);
    if (!known?.delete(subscriber) || known.size > 0 || this.#isClosed) return;
    this.#subscribers.delete(name);
    if (this.#subscribers.size === 0) {
      this.#refreshedMs = 0;
      this.#log.close();
    }
    this.#turns
      .writeOne('unsubscribe', CALL, ({ session }) => {
        if (!this.#subscribers.has(name))
          session.run('DELETE FROM listeners WHERE topic = ? AND owner = ?', name, this.#owner);
      })
      .catch(() => {});
  }

  /** Says for every topic that we listen; from the first time on, what is written after it is read. */
  async #refresh(): Promise<void> {
    const beganMs = this.#clock.monotonicMs();
    await this.#turns.writeOne('subscribe', CALL, (tx) => {
      const { session, nowMs } = tx;
      session.run('DELETE FROM listeners WHERE expires <= ?', nowMs);
      for (const topic of this.#subscribers.keys())
        session.run(
          'INSERT OR REPLACE INTO listeners VALUES (?, ?, ?)',
          topic,
          this.#owner,
          nowMs + LISTENER_MS,
        );
      if (this.#generation !== this.#file.generation) {
        const last = lastMessage(tx);
        tx.after.push(() => this.#begin(last));
      }
    });
    const isListening = !this.#isClosed && this.#subscribers.size > 0;
    if (isListening && !this.#log.isWatching) this.#log.open();
    const isLate =
      this.#refreshedMs > 0 && this.#clock.monotonicMs() - this.#refreshedMs > LISTENER_MS;
    this.#refreshedMs = beganMs;
    // For a while nobody counted on us: a hint may have gone to somebody else.
    if (isLate) this.#tellGap();
  }

  /** On a connection that is new to us. After another one, what was written in between is lost. */
  #begin(last: number): void {
    const isFirst = this.#generation === -1;
    this.#generation = this.#file.generation;
    this.#log.close();
    this.#lastRead = last;
    this.#dataVersion = null;
    if (!isFirst) this.#clock.soon(() => this.#tellGap());
  }

  #watch(): void {
    this.#timer?.cancel();
    this.#timer = null;
    if (this.#isClosed || this.#subscribers.size === 0) return;
    this.#timerMs = this.#expected.size > 0 ? WATCH_MS : IDLE_WATCH_MS;
    this.#timer = this.#clock.after(this.#timerMs, () => this.#look());
  }

  #look(): void {
    const version = this.#file.dataVersion();
    if (version !== null && version !== this.#dataVersion) {
      this.#dataVersion = version;
      // What it finds is told in a moment; what it does not find because of a failure, the next look does.
      this.#read().catch(() => {
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
    this.#watch();
  }

  async #read(): Promise<void> {
    await this.#turns.readOne('read messages', CALL, (tx) => {
      if (this.#generation !== this.#file.generation) return;
      const rows = tx.session.rows<MessageRow>(
        `SELECT id, topic, sender, message FROM messages WHERE id > ? ORDER BY id LIMIT ${MOST_READ}`,
        this.#lastRead,
      );
      const last = rows.at(-1)?.[0] ?? lastMessage(tx);
      const hasGap = last > this.#lastRead && rows[0]?.[0] !== this.#lastRead + 1;
      this.#lastRead = last;
      if (rows.length === MOST_READ) this.#dataVersion = null;
      tx.after.push(() => this.#clock.soon(() => this.#deliver(rows, hasGap)));
    });
  }

  #deliver(rows: readonly MessageRow[], hasGap: boolean): void {
    if (hasGap) this.#tellGap();
    for (const [, topic, sender, message] of rows) {
      if (sender === this.#owner) continue;
      for (const subscriber of this.#subscribers.get(topic) ?? []) subscriber.onMessage(message);
    }
  }

  #tellGap(): void {
    for (const subscribers of [...this.#subscribers.values()])
      for (const subscriber of [...subscribers]) subscriber.onGap();
  }
}

function lastMessage({ session }: Tx): number {
  return session.row<[number]>("SELECT seq FROM sqlite_sequence WHERE name = 'messages'")?.[0] ?? 0;
}
