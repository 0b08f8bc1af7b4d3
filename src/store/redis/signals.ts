import type { SignalStore, Subscriber } from '../store.ts';
import { type Client, Connection, type ConnectionOptions } from './connection.ts';
import type { Keys } from './keys.ts';

/** How long a subscription, a publication or a sign of life may take. */
const SIGNAL_TIMEOUT_MS = 2_000;
/** A subscribed connection hears nothing for long by nature: this often it is asked whether it is still there. */
const PING_EVERY_MS = 5_000;

/**
 * Signals over a connection of their own, made when the first subscriber comes: a connection that subscribes can do
 * nothing else. When it is lost, messages are: every subscriber is told so once it is back.
 */
export class RedisSignals implements SignalStore {
  readonly #keys: Keys;
  readonly #publisher: Connection;
  readonly #options: Pick<ConnectionOptions, 'url' | 'name' | 'clock' | 'random'>;
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  #connection: Connection | null = null;
  #opening: Promise<void> | null = null;
  #watch = new AbortController();

  constructor(
    parts: { keys: Keys; publisher: Connection } & Pick<
      ConnectionOptions,
      'url' | 'name' | 'clock' | 'random'
    >,
  ) {
    this.#keys = parts.keys;
    this.#publisher = parts.publisher;
    this.#options = parts;
  }

  async publish(topic: string, message: string): Promise<void> {
    // Messages travel with the prefix, as those that scripts publish do: they are names of leases.
    const args = ['PUBLISH', this.#keys.channel(topic), this.#keys.lease(message)];
    await this.#publisher.send('publish', args, SIGNAL_TIMEOUT_MS);
  }

  async subscribe(topic: string, subscriber: Subscriber): Promise<() => void> {
    const channel = this.#keys.channel(topic);
    const known = this.#subscribers.get(channel) ?? new Set();
    this.#subscribers.set(channel, known);
    known.add(subscriber);
    try {
      await this.#open();
      await this.#connection?.use('subscribe', SIGNAL_TIMEOUT_MS, (client) =>
        this.#listen(client, channel),
      );
    } catch (error) {
      this.#unsubscribe(channel, subscriber);
      throw error;
    }
    return () => this.#unsubscribe(channel, subscriber);
  }

  async close(): Promise<void> {
    this.#watch.abort();
    this.#subscribers.clear();
    await this.#connection?.close();
    await this.#opening?.catch(() => {});
  }

  #open(): Promise<void> {
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #connect(): Promise<void> {
    let first = true;
    const connection = new Connection({
      ...this.#options,
      prepare: async (client) => {
        for (const channel of this.#subscribers.keys()) await this.#listen(client, channel);
      },
      onConnected: () => {
        if (!first) this.#tellGap();
        first = false;
      },
      onDisconnected: () => {},
    });
    this.#connection = connection;
    await connection.open();
    void this.#pingForEver(connection);
  }

  async #listen(client: Client, channel: string): Promise<void> {
    // node-redis calls one listener per function: the same for all, so that subscribing twice is subscribing once.
    await client.subscribe(channel, this.#deliver);
  }

  readonly #deliver = (message: string, channel: string): void => {
    const text = this.#keys.withoutPrefix(message);
    for (const subscriber of this.#subscribers.get(channel) ?? []) subscriber.onMessage(text);
  };

  #tellGap(): void {
    for (const subscribers of this.#subscribers.values()) {
      for (const subscriber of subscribers) subscriber.onGap();
    }
  }

  #unsubscribe(channel: string, subscriber: Subscriber): void {
    const known = this.#subscribers.get(channel);
    known?.delete(subscriber);
    if (known?.size !== 0) return;
    this.#subscribers.delete(channel);
    const connection = this.#connection;
    if (!connection?.isConnected) return;
    connection
      .use('unsubscribe', SIGNAL_TIMEOUT_MS, (client) => client.unsubscribe(channel))
      .catch(() => {});
  }

  /** A half-open connection would stay silent for ever: a sign of life that does not come costs the connection. */
  async #pingForEver(connection: Connection): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#watch;
    while (!signal.aborted) {
      await clock.sleep(PING_EVERY_MS, signal).catch(() => {});
      if (signal.aborted || !connection.isConnected) continue;
      await connection.send('ping', ['PING'], SIGNAL_TIMEOUT_MS).catch(() => {});
    }
  }
}
