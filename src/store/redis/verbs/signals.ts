import type { Clock } from '../../../core/clock.ts';
import type { Random } from '../../../core/random.ts';
import type { SignalStore, Subscriber } from '../../port/signal-store.ts';
import { PubSubConnection } from '../client/pubsub-connection.ts';
import type { Keys } from '../keys.ts';
import type { Primary } from '../topology/primary.ts';
import type { Servers } from '../topology/servers.ts';

/** How long a publication may take. */
const PUBLISH_TIMEOUT_MS = 2_000;

/**
 * Signals by publishing. A script that wakes a waiter looks at how many have heard it, and a server counts only those who
 * listen on itself: so on a Cluster every inbox has a channel of its own on each server, `…@server`. What has no such
 * name reaches all servers, and one listener is enough.
 */
export class RedisSignals implements SignalStore {
  readonly #parts: { keys: Keys; servers: Servers; clock: Clock; random: Random };
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  readonly #ears = new Map<Primary, PubSubConnection>();

  constructor(parts: { keys: Keys; servers: Servers; clock: Clock; random: Random }) {
    this.#parts = parts;
    parts.servers.onPrimaries = () => this.#follow();
  }

  async publish(topic: string, message: string): Promise<void> {
    const { keys, servers } = this.#parts;
    const channel = keys.channel(topic);
    // Messages travel with the prefix, as those that scripts publish do: they are names of leases.
    const args = ['PUBLISH', channel, keys.lease(message)];
    await servers.send('publish', channel, args, PUBLISH_TIMEOUT_MS);
  }

  async subscribe(topic: string, subscriber: Subscriber): Promise<() => void> {
    const channel = this.#parts.keys.channel(topic);
    const known = this.#subscribers.get(channel) ?? new Set();
    this.#subscribers.set(channel, known);
    known.add(subscriber);
    const listening = this.#parts.servers.primaries.map((primary) =>
      this.#listen(primary, channel),
    );
    try {
      // One server that does not answer keeps its own waiters from hints, not those of the others.
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
    await Promise.all([...this.#ears.values()].map((ear) => ear.close()));
  }

  async #listen(primary: Primary, channel: string): Promise<void> {
    for (const name of this.#namesOn(primary, channel)) await this.#ear(primary).listen(name);
  }

  /** The first server is the one on which what has no server in its name is listened for. */
  #namesOn(primary: Primary, channel: string): Set<string> {
    const isFirst = this.#parts.servers.primaries[0] === primary;
    return new Set([channel + primary.at, ...(isFirst ? [channel] : [])]);
  }

  #ear(primary: Primary): PubSubConnection {
    const { clock, random } = this.#parts;
    const known = this.#ears.get(primary);
    if (known !== undefined) return known;
    const { dialer, at, connection } = primary;
    const ear = new PubSubConnection({
      ...{ dialer, clock, random },
      isReachable: () => connection.isConnected,
      onMessage: (message, name) => {
        const isHere = at !== '' && name.endsWith(at);
        this.#deliver(isHere ? name.slice(0, -at.length) : name, message);
      },
      onGap: () => this.#tellGap(),
    });
    this.#ears.set(primary, ear);
    return ear;
  }

  /** Other servers have come or gone: listens where they are. Who waits on one of them has to ask again. */
  #follow(): void {
    const { primaries } = this.#parts.servers;
    for (const [primary, ear] of this.#ears) {
      if (primaries.includes(primary)) continue;
      this.#ears.delete(primary);
      void ear.close();
    }
    const listening = primaries.flatMap((primary) =>
      [...this.#subscribers.keys()].map((channel) => this.#listen(primary, channel)),
    );
    void Promise.allSettled(listening).then(() => this.#tellGap());
  }

  #deliver(channel: string, message: string): void {
    const text = this.#parts.keys.withoutPrefix(message);
    for (const subscriber of this.#subscribers.get(channel) ?? []) subscriber.onMessage(text);
  }

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
    for (const [primary, ear] of this.#ears) {
      for (const name of this.#namesOn(primary, channel)) ear.unlisten(name);
    }
  }
}
