import type { Clock, Timer } from '../../../core/clock.ts';
import type { Random } from '../../../core/random.ts';
import { Connection } from './connection.ts';
import type { Dialer, Link, MessageListener } from './link.ts';

/** How long a subscription or a sign of life may take. */
const SIGNAL_TIMEOUT_MS = 2_000;
/** A subscribed connection hears nothing for long by nature: this often it is asked whether it is still there. */
const PING_EVERY_MS = 10_000;

export interface EarParts {
  readonly dialer: Dialer;
  readonly clock: Clock;
  readonly random: Random;
  /** Whether the server can be reached, as far as is known: while it can not, it is not tried over this connection too. */
  isReachable(): boolean;
  readonly onMessage: MessageListener;
  /** The connection was lost and is back: messages may have been missed. */
  onGap(): void;
}

/**
 * Listens on one server, over a connection of its own, made for the first channel: a connection that subscribes can do
 * nothing else. One that is lost is made anew, with all channels.
 */
export class PubSubConnection {
  readonly #parts: EarParts;
  readonly #channels = new Set<string>();
  readonly #connection: Connection;
  #opening: Promise<void> | null = null;
  #ping: Timer | null = null;
  #isClosed = false;
  #hasHeard = false;

  constructor(parts: EarParts) {
    this.#parts = parts;
    this.#connection = new Connection({
      ...parts,
      obstacle: () => (parts.isReachable() ? null : ''),
      prepare: async (link) => {
        for (const channel of this.#channels) await this.#subscribe(link, channel);
      },
      onConnected: () => {
        if (this.#hasHeard) parts.onGap();
        this.#hasHeard = true;
      },
      onDisconnected: () => {},
    });
  }

  /** Resolves once messages to this channel are heard. */
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

  /** A connection that can not be made is tried again in the background; once it stands, something has been missed. */
  async #open(): Promise<void> {
    try {
      await this.#connection.open();
    } catch {
      this.#hasHeard = true;
      this.#connection.connect();
    }
    this.#pingLater();
  }

  async #subscribe(link: Link, channel: string): Promise<void> {
    // Clients call one listener per function: the same for all, so that subscribing twice is subscribing once.
    await link.subscribe(channel, this.#parts.onMessage);
  }

  /** A half-open connection would stay silent for ever: a sign of life that does not come costs the connection. */
  #pingLater(): void {
    if (this.#isClosed) return;
    this.#ping = this.#parts.clock.after(PING_EVERY_MS, () => {
      this.#pingLater();
      if (!this.#connection.isConnected) return;
      this.#connection.send('ping', ['PING'], SIGNAL_TIMEOUT_MS).catch(() => {});
    });
  }
}
