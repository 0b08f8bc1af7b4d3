/** How many clients may watch a stream at once: in all, and with one token. */
import { Problem } from '../http/problem.ts';

export interface StreamOptions {
  /** Clients that may watch at the same time; default 5,000. */
  readonly clients?: number;
  /** With one token; default 100. */
  readonly clientsPerToken?: number;
  /** Unread bytes in the queue of one client, before it is disconnected; default 1 MiB. */
  readonly queuedBytes?: number;
}

export const DEFAULT_STREAM_OPTIONS: Required<StreamOptions> = {
  clients: 5_000,
  clientsPerToken: 100,
  queuedBytes: 1_048_576,
};

const RETRY_AFTER_MS = 5_000;

export class StreamLimits {
  readonly #limits: Required<StreamOptions>;
  /** What the clients watch, for messages. */
  readonly #subject: string;
  readonly #perToken = new Map<string, number>();
  #clients = 0;
  #isClosed = false;

  constructor(limits: Required<StreamOptions>, subject: string) {
    this.#limits = limits;
    this.#subject = subject;
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
    if (this.#clients >= clients)
      throw tooMany(`${clients} clients watch ${this.#subject} here, which is the limit.`);
    if (withToken >= clientsPerToken)
      throw tooMany(
        `${clientsPerToken} clients watch ${this.#subject} with this token, which is the limit.`,
      );
    this.#perToken.set(tokenId, withToken + 1);
    this.#clients++;
  }

  /** Counts a client out. */
  leave(tokenId: string): void {
    this.#clients--;
    const others = (this.#perToken.get(tokenId) ?? 1) - 1;
    if (others > 0) this.#perToken.set(tokenId, others);
    else this.#perToken.delete(tokenId);
  }

  /** Admits no more clients. */
  close(): void {
    this.#isClosed = true;
  }
}

function tooMany(detail: string): Problem {
  return new Problem('too-many-requests', { detail, retryAfterMs: RETRY_AFTER_MS });
}
