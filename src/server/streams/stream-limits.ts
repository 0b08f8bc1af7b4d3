/** How many may follow something at once: in all, and with one token. */
import { Problem } from '../http/problem.ts';

export interface PlaceLimits {
  readonly clients: number;
  readonly clientsPerToken: number;
}

/** Who was told to come again later. */
const RETRY_AFTER_MS = 5_000;

export class StreamLimits {
  readonly #limits: PlaceLimits;
  /** What is watched, in words. */
  readonly #what: string;
  readonly #perToken = new Map<string, number>();
  #taken = 0;
  #isClosed = false;

  constructor(limits: PlaceLimits, what: string) {
    this.#limits = limits;
    this.#what = what;
  }

  /** Takes a place, or throws why there is none. */
  take(tokenId: string): void {
    if (this.#isClosed)
      throw new Problem('not-ready', {
        detail: 'This instance is closing: ask another.',
        retryAfterMs: RETRY_AFTER_MS,
      });
    const { clients, clientsPerToken } = this.#limits;
    const withToken = this.#perToken.get(tokenId) ?? 0;
    if (this.#taken >= clients)
      throw tooMany(`${clients} watch ${this.#what} here already, which is as many as may.`);
    if (withToken >= clientsPerToken)
      throw tooMany(
        `${clientsPerToken} watch ${this.#what} with this token already, as many as may.`,
      );
    this.#perToken.set(tokenId, withToken + 1);
    this.#taken++;
  }

  leave(tokenId: string): void {
    this.#taken--;
    const others = (this.#perToken.get(tokenId) ?? 1) - 1;
    if (others > 0) this.#perToken.set(tokenId, others);
    else this.#perToken.delete(tokenId);
  }

  close(): void {
    this.#isClosed = true;
  }
}

function tooMany(detail: string): Problem {
  return new Problem('too-many-requests', { detail, retryAfterMs: RETRY_AFTER_MS });
}
