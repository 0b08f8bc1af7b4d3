/** The clients of one kind of stream: their limits, in all and with one token, and heartbeats. */
import type { Clock, Timer } from '../../core/clock.ts';
import { Problem } from '../http/problem.ts';
import type { StreamClient } from './stream-client.ts';

export interface StreamOptions {
  /** Clients that may watch at the same time; default 5,000. */
  readonly clients?: number;
  /** With one token; default 100. */
  readonly clientsPerToken?: number;
  /** Unread bytes in the queue of one client, before it is disconnected; default 1 MiB. */
  readonly queuedBytes?: number;
}

const DEFAULT_STREAM_OPTIONS: Required<StreamOptions> = {
  clients: 5_000,
  clientsPerToken: 100,
  queuedBytes: 1_048_576,
};

const RETRY_AFTER_MS = 5_000;
/** Proxies close a connection that is silent for a minute or less. */
const HEARTBEAT_MS = 15_000;

export class ClientSet<C extends StreamClient> {
  readonly #clock: Clock;
  readonly #limits: Required<StreamOptions>;
  readonly #subject: string;
  readonly #positionOf: (client: C) => string | null;
  readonly #clients = new Set<C>();
  /** Includes clients that have entered and are not added yet. */
  readonly #perToken = new Map<string, number>();
  #entered = 0;
  #heartbeat: Timer | null = null;
  #isClosed = false;

  /** `subject`: what the clients watch, for messages. `positionOf`: for their heartbeats. */
  constructor(
    clock: Clock,
    options: StreamOptions,
    subject: string,
    positionOf: (client: C) => string | null = () => null,
  ) {
    this.#clock = clock;
    this.#limits = { ...DEFAULT_STREAM_OPTIONS, ...options };
    this.#subject = subject;
    this.#positionOf = positionOf;
  }

  get size(): number {
    return this.#clients.size;
  }

  get queuedBytes(): number {
    return this.#limits.queuedBytes;
  }

  [Symbol.iterator](): SetIterator<C> {
    return this.#clients.values();
  }

  /** Counts a client in, or throws. */
  enter(tokenId: string): void {
    if (this.#isClosed)
      throw new Problem('not-ready', {
        detail: 'This instance is closing. Use another one.',
        retryAfterMs: RETRY_AFTER_MS,
      });
    const { clients, clientsPerToken } = this.#limits;
    const withToken = this.#perToken.get(tokenId) ?? 0;
    if (this.#entered >= clients)
      throw tooMany(`${clients} clients watch ${this.#subject} here, which is the limit.`);
    if (withToken >= clientsPerToken)
      throw tooMany(
        `${clientsPerToken} clients watch ${this.#subject} with this token, which is the limit.`,
      );
    this.#perToken.set(tokenId, withToken + 1);
    this.#entered++;
  }

  /** Counts a client out. */
  leave(tokenId: string): void {
    this.#entered--;
    const others = (this.#perToken.get(tokenId) ?? 1) - 1;
    if (others > 0) this.#perToken.set(tokenId, others);
    else this.#perToken.delete(tokenId);
  }

  add(client: C): void {
    this.#clients.add(client);
    this.#scheduleHeartbeat();
  }

  remove(client: C): void {
    this.#clients.delete(client);
    if (this.#clients.size > 0) return;
    this.#heartbeat?.cancel();
    this.#heartbeat = null;
  }

  /** Ends all streams, and admits no more clients. */
  close(): void {
    this.#isClosed = true;
    for (const client of this.#clients) client.end('closing');
  }

  #scheduleHeartbeat(): void {
    this.#heartbeat ??= this.#clock.after(HEARTBEAT_MS, () => {
      this.#heartbeat = null;
      for (const client of this.#clients) client.beat(this.#positionOf(client));
      if (this.#clients.size > 0) this.#scheduleHeartbeat();
    });
  }
}

function tooMany(detail: string): Problem {
  return new Problem('too-many-requests', { detail, retryAfterMs: RETRY_AFTER_MS });
}
