import type { BaseRuntime } from '../../../core/runtime.ts';
import type { SignalStore, Subscriber } from '../../port/signal-store.ts';
import { PubSubConnection } from '../client/pubsub-connection.ts';
import type { Keys } from '../keys.ts';
import type { PrimaryServer } from '../topology/primary-server.ts';
import type { Servers } from '../topology/servers.ts';

/** The time limit of a publication. */
const PUBLISH_TIMEOUT_MS = 2_000;

/**
 * Signals by `PUBLISH`. A script that wakes a waiter checks how many subscribers received the
 * message, and a server counts only its own. So on a Cluster every inbox has a channel on each
 * server, `…@server`. A channel without a server reaches all servers, and one subscription is
 * enough.
 */
export class RedisSignals implements SignalStore {
  readonly #rt: BaseRuntime;
  readonly #keys: Keys;
  readonly #servers: Servers;
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  readonly #connections = new Map<PrimaryServer, PubSubConnection>();

  constructor(rt: BaseRuntime, keys: Keys, servers: Servers) {
    this.#rt = rt;
    this.#keys = keys;
    this.#servers = servers;
    servers.onPrimaries = () => this.#resubscribe();
  }

  async publish(topic: string, message: string): Promise<void> {
    const channel = this.#keys.channel(topic);
    // Messages have the prefix, as those that scripts publish have: they are names of leases.
    const args = ['PUBLISH', channel, this.#keys.lease(message)];
    await this.#servers.send('publish', channel, args, PUBLISH_TIMEOUT_MS);
  }

  async subscribe(topic: string, subscriber: Subscriber): Promise<() => void> {
    const channel = this.#keys.channel(topic);
    const known = this.#subscribers.get(channel) ?? new Set();
    this.#subscribers.set(channel, known);
    known.add(subscriber);
    const listening = this.#servers.primaries.map((primary) => this.#listen(primary, channel));
    try {
      // A server that does not answer keeps its own waiters from hints, not those of the others.
      await Promise.any(listening).catch((error: AggregateError) =>
        Promise.reject(error.errors[0]),
      );
      await Promise.allSettled(listening);
    } catch (error) {
      this.#unsubscribe(channel, subscriber);
      throw error;
    }
    return () => this.#unsubscribe(channel, subscriber);
  }

  async close(): Promise<void> {
    this.#subscribers.clear();
    await Promise.all([...this.#connections.values()].map((each) => each.close()));
  }

  async #listen(primary: PrimaryServer, channel: string): Promise<void> {
    for (const name of this.#namesOn(primary, channel))
      await this.#connectionTo(primary).listen(name);
  }

  /** Channels without a server in their name are subscribed on the first server. */
  #namesOn(primary: PrimaryServer, channel: string): Set<string> {
    const isFirst = this.#servers.primaries[0] === primary;
    return new Set([channel + primary.at, ...(isFirst ? [channel] : [])]);
  }

  #connectionTo(primary: PrimaryServer): PubSubConnection {
    const known = this.#connections.get(primary);
    if (known !== undefined) return known;
    const { dialer, at, connection: leases } = primary;
    const connection = new PubSubConnection(this.#rt, dialer, {
      isReachable: () => leases.isConnected,
      onMessage: (message, name) => {
        const isHere = at !== '' && name.endsWith(at);
        this.#deliver(isHere ? name.slice(0, -at.length) : name, message);
      },
      onGap: () => this.#reportGap(),
    });
    this.#connections.set(primary, connection);
    return connection;
  }

  /**
   * Servers have joined or left: subscribes on the present ones. Waiters on the others have to ask
   * again.
   */
  #resubscribe(): void {
    const { primaries } = this.#servers;
    for (const [primary, connection] of this.#connections) {
      if (primaries.includes(primary)) continue;
      this.#connections.delete(primary);
      void connection.close();
    }
    const listening = primaries.flatMap((primary) =>
      [...this.#subscribers.keys()].map((channel) => this.#listen(primary, channel)),
    );
    void Promise.allSettled(listening).then(() => this.#reportGap());
  }

  #deliver(channel: string, message: string): void {
    const text = this.#keys.withoutPrefix(message);
    for (const subscriber of this.#subscribers.get(channel) ?? []) subscriber.onMessage(text);
  }

  #reportGap(): void {
    for (const subscribers of this.#subscribers.values()) {
      for (const subscriber of subscribers) subscriber.onGap();
    }
  }

  #unsubscribe(channel: string, subscriber: Subscriber): void {
    const known = this.#subscribers.get(channel);
    known?.delete(subscriber);
    if (known?.size !== 0) return;
    this.#subscribers.delete(channel);
    for (const [primary, connection] of this.#connections) {
      for (const name of this.#namesOn(primary, channel)) connection.unlisten(name);
    }
  }
}
