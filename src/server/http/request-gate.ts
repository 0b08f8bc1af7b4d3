/** Limits of concurrency and rate. A request above a limit is refused with `Retry-After`. */
import type { Clock } from '../../core/clock.ts';
import { ConfigError } from '../../core/errors.ts';
import { Problem } from './problem.ts';

export interface RateSettings {
  /** For each token. */
  readonly requestsPerSecond: number;
  /** Requests that may arrive at once after a pause; default `requestsPerSecond`, at least 1. */
  readonly burst?: number;
}

export interface LimitSettings {
  /** Concurrent requests in this process, and concurrent bodies of one token; default 1,000. */
  readonly inFlight?: number;
  /** Default none. */
  readonly rate?: RateSettings;
}

const DEFAULT_IN_FLIGHT = 1_000;
const FIELDS = new Set(['inFlight', 'rate']);
const RATE_FIELDS = new Set(['requestsPerSecond', 'burst']);
const BUSY_RETRY_MS = 1_000;

export class RequestGate {
  readonly #clock: Clock;
  readonly #maxInFlight: number;
  readonly #rate: Required<RateSettings> | null;
  /** By token id, so there are never more than tokens. */
  readonly #buckets = new Map<string, TokenBucket>();
  /** Bodies that are being read, by token id. */
  readonly #bodies = new Map<string, number>();
  #inFlight = 0;

  constructor(settings: LimitSettings, clock: Clock) {
    checkFields(settings, FIELDS, 'limits');
    const { inFlight = DEFAULT_IN_FLIGHT, rate } = settings;
    if (!Number.isSafeInteger(inFlight) || inFlight < 1) {
      const rule = 'must be a whole number of at least 1';
      throw new ConfigError({ field: 'limits.inFlight', value: inFlight, rule });
    }
    this.#clock = clock;
    this.#maxInFlight = inFlight;
    this.#rate = rate === undefined ? null : checkRate(rate);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Counts a request in, or throws. The returned function counts it out. */
  startRequest(): () => void {
    if (this.#inFlight >= this.#maxInFlight) {
      throw new Problem('too-many-requests', {
        detail: `This instance is handling ${this.#maxInFlight} requests, which is its limit.`,
        retryAfterMs: BUSY_RETRY_MS,
      });
    }
    this.#inFlight++;
    return () => {
      this.#inFlight--;
    };
  }

  /**
   * Counts a body in, or throws. The returned function counts it out. Bodies do not count as
   * requests in flight: a slow sender delays only its own token.
   */
  startBody(tokenId: string): () => void {
    const count = (this.#bodies.get(tokenId) ?? 0) + 1;
    if (count > this.#maxInFlight) {
      throw new Problem('too-many-requests', {
        detail: `This token is sending ${this.#maxInFlight} bodies, which is its limit.`,
        retryAfterMs: BUSY_RETRY_MS,
      });
    }
    this.#bodies.set(tokenId, count);
    return () => {
      const left = (this.#bodies.get(tokenId) ?? 1) - 1;
      if (left > 0) this.#bodies.set(tokenId, left);
      else this.#bodies.delete(tokenId);
    };
  }

  /** The rate limit: takes one request from the token's bucket, or throws. */
  countRequest(tokenId: string): void {
    if (this.#rate === null) return;
    const { requestsPerSecond, burst } = this.#rate;
    const nowMs = this.#clock.monotonicMs();
    const { left, atMs } = this.#buckets.get(tokenId) ?? { left: burst, atMs: nowMs };
    const now = Math.min(burst, left + ((nowMs - atMs) / 1_000) * requestsPerSecond);
    if (now < 1) {
      throw new Problem('too-many-requests', {
        detail: `A token may send ${requestsPerSecond} requests per second, and ${burst} at once.`,
        retryAfterMs: ((1 - now) / requestsPerSecond) * 1_000,
      });
    }
    this.#buckets.set(tokenId, { left: now - 1, atMs: nowMs });
  }
}

interface TokenBucket {
  /** Requests left at `atMs`. */
  readonly left: number;
  readonly atMs: number;
}

function checkRate(rate: RateSettings): Required<RateSettings> {
  checkFields(rate, RATE_FIELDS, 'limits.rate');
  const { requestsPerSecond, burst = Math.max(1, requestsPerSecond) } = rate;
  if (!Number.isFinite(requestsPerSecond) || requestsPerSecond <= 0) {
    const field = 'limits.rate.requestsPerSecond';
    throw new ConfigError({ field, value: requestsPerSecond, rule: 'must be a number above 0' });
  }
  if (!Number.isFinite(burst) || burst < 1) {
    const rule = 'must be a number of at least 1: with less, no request would pass';
    throw new ConfigError({ field: 'limits.rate.burst', value: burst, rule });
  }
  return { requestsPerSecond, burst };
}

function checkFields(settings: object, known: ReadonlySet<string>, where: string): void {
  for (const name of Object.keys(settings)) {
    if (known.has(name)) continue;
    const rule = `unknown setting; ${where} has ${[...known].join(', ')}`;
    throw new ConfigError({ field: `${where}.${name}`, value: undefined, rule });
  }
}
