import type { Clock, Timer } from '../../../core/clock.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import { Connection } from './connection.ts';
import type { Dialer, Link, MessageListener } from './link.ts';

/** The time limit of a subscription or a ping. */
const SIGNAL_TIMEOUT_MS = 2_000;
/** A subscribed connection may be silent for long, so it is pinged this often. */
const PING_EVERY_MS = 10_000;

export interface PubSubListener {
  /**
   * Whether the server is known to be reachable. While it is not, this connection does not try it.
   */
  isReachable(): boolean;
  readonly onMessage: MessageListener;
  /** The connection was lost and is back: messages may have been missed. */
  onGap(): void;
}

/**
 * Listens on one server. A connection that subscribes can do nothing else, so this one is separate.
 * It is made for the first channel. After a loss it is made again, with all channels.
 */
export class PubSubConnection {
  readonly #clock: Clock;
  readonly #listener: PubSubListener;
  readonly #channels = new Set<string>();
  readonly #connection: Connection;
  #opening: Promise<void> | null = null;
  #ping: Timer | null = null;
  #isClosed = false;
  /** It was connected, or failed to connect: the next connection follows a gap. */
  #wasOpened = false;

  constructor(rt: Pick<BaseRuntime, 'clock' | 'random'>, dialer: Dialer, listener: PubSubListener) {
    this.#clock = rt.clock;
    this.#listener = listener;
    this.#connection = new Connection(rt, dialer, {
      role: 'hints',
      obstacle: () => (listener.isReachable() ? null : ''),
      prepare: async (link) => {
        for (const channel of this.#channels) await this.#subscribe(link, channel);
      },
      onConnected: () => {
        if (this.#wasOpened) listener.onGap();
        this.#wasOpened = true;
      },
      onDisconnected: () => {},
    });
  }

  /** Resolves once messages to this channel arrive. */
  async listen(channel: string): Promise<void> {
    this.#channels.add(channel);
    this.#opening ??= this.#open();
    await this.#opening;
    await this.#connection.use('subscribe', SIGNAL_TIMEOUT_MS, (link) =>
      this.#subscribe(link, channel),
    );
  }

  unlisten(channel: string): void {
    this.#channels.delete(channel);
    if (!this.#connection.isConnected) return;
    this.#connection
      .use('unsubscribe', SIGNAL_TIMEOUT_MS, (link) => link.unsubscribe(channel))
      .catch(() => {});
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#ping?.cancel();
    await this.#connection.close();
    await this.#opening;
  }

  /**
   * A first attempt that fails is repeated in the background. Messages may have been missed by
   * then.
   */
  async #open(): Promise<void> {
    try {
      await this.#connection.open();
    } catch {
      this.#wasOpened = true;
      this.#connection.connect();
    }
    this.#pingLater();
  }

  async #subscribe(link: Link, channel: string): Promise<void> {
    // Clients keep one listener per function: with the same one, subscribing twice has no effect.
    await link.subscribe(channel, this.#listener.onMessage);
  }

  /** A half-open connection would stay silent for ever: a ping without an answer ends it. */
  #pingLater(): void {
    if (this.#isClosed) return;
    this.#ping = this.#clock.after(PING_EVERY_MS, () => {
      this.#pingLater();
      if (!this.#connection.isConnected) return;
      this.#connection.send('ping', ['PING'], SIGNAL_TIMEOUT_MS).catch(() => {});
    });
  }
}
