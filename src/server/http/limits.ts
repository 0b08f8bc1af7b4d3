/** How much at once, and how often. What is too much is told to come back; nothing queues up here. */
import type { Clock } from '../../core/clock.ts';
import { ConfigError } from '../../core/errors.ts';
import { Problem } from './problem.ts';

export interface RateSettings {
  /** For each token. */
  readonly requestsPerSecond: number;
  /** How many may come at once after a pause; default what comes in a second, at least 1. */
  readonly burst?: number;
}

export interface LimitSettings {
  /** Requests that are being answered at once, in this process, and bodies that one token may be sending; default 1,000. */
  readonly inFlight?: number;
  /** Default none. */
  readonly rate?: RateSettings;
}

const DEFAULT_IN_FLIGHT = 1_000;
const FIELDS = new Set(['inFlight', 'rate']);
const RATE_FIELDS = new Set(['requestsPerSecond', 'burst']);
const BUSY_RETRY_MS = 1_000;

export class Limits {
  readonly #clock: Clock;
  readonly #mostInFlight: number;
  readonly #rate: Required<RateSettings> | null;
  readonly #allowances = new Map<string, Allowance>();
  /** Bodies that are being read, by token. */
  readonly #arriving = new Map<string, number>();
  #inFlight = 0;

  constructor(settings: LimitSettings, clock: Clock) {
    checkFields(settings, FIELDS, 'limits');
    const { inFlight = DEFAULT_IN_FLIGHT, rate } = settings;
    if (!Number.isSafeInteger(inFlight) || inFlight < 1) {
      const rule = 'it is a whole number from 1 up';
      throw new ConfigError({ field: 'limits.inFlight', value: inFlight, rule });
    }
    this.#clock = clock;
    this.#mostInFlight = inFlight;
    this.#rate = rate === undefined ? null : checkRate(rate);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Lets one in, or throws. The function returned says that it has been answered. */
  enter(): () => void {
    if (this.#inFlight >= this.#mostInFlight) {
      throw new Problem('too-many-requests', {
        detail: `${this.#mostInFlight} requests are being answered, which is as many as this instance takes at once.`,
        retryAfterMs: BUSY_RETRY_MS,
      });
    }
    this.#inFlight++;
    return () => {
      this.#inFlight--;
    };
  }

  /**
   * A body of a token is on its way, or throws. It takes no place among those that are being answered: whoever sends slowly keeps nobody
   * else out, and only its own token from sending more. The function returned says that it has arrived.
   */
  receive(tokenId: string): () => void {
    const count = (this.#arriving.get(tokenId) ?? 0) + 1;
    if (count > this.#mostInFlight) {
      throw new Problem('too-many-requests', {
        detail: `${this.#mostInFlight} bodies of this token are on their way, which is as many as it may send at once.`,
        retryAfterMs: BUSY_RETRY_MS,
      });
    }
    this.#arriving.set(tokenId, count);
    return () => {
      const left = (this.#arriving.get(tokenId) ?? 1) - 1;
      if (left > 0) this.#arriving.set(tokenId, left);
      else this.#arriving.delete(tokenId);
    };
  }

  /** Counts one request of a token, or throws. There are no more allowances than tokens. */
  spend(tokenId: string): void {
    if (this.#rate === null) return;
    const { requestsPerSecond, burst } = this.#rate;
    const nowMs = this.#clock.monotonicMs();
    const { left, atMs } = this.#allowances.get(tokenId) ?? { left: burst, atMs: nowMs };
    const now = Math.min(burst, left + ((nowMs - atMs) / 1_000) * requestsPerSecond);
    if (now < 1) {
      throw new Problem('too-many-requests', {
        detail: `A token may send ${requestsPerSecond} requests a second, and ${burst} at once.`,
        retryAfterMs: ((1 - now) / requestsPerSecond) * 1_000,
      });
    }
    this.#allowances.set(tokenId, { left: now - 1, atMs: nowMs });
  }
}

/** What a token may still send, and when that was so. */
interface Allowance {
  readonly left: number;
  readonly atMs: number;
}

function checkRate(rate: RateSettings): Required<RateSettings> {
  checkFields(rate, RATE_FIELDS, 'limits.rate');
  const { requestsPerSecond, burst = Math.max(1, requestsPerSecond) } = rate;
  if (!Number.isFinite(requestsPerSecond) || requestsPerSecond <= 0) {
    const field = 'limits.rate.requestsPerSecond';
    throw new ConfigError({ field, value: requestsPerSecond, rule: 'it is a number above 0' });
  }
  if (!Number.isFinite(burst) || burst < 1) {
    const rule = 'it is a number from 1 up: with less, nothing would ever pass';
    throw new ConfigError({ field: 'limits.rate.burst', value: burst, rule });
  }
  return { requestsPerSecond, burst };
}

function checkFields(settings: object, known: ReadonlySet<string>, where: string): void {
  for (const name of Object.keys(settings)) {
    if (known.has(name)) continue;
    const rule = `there is no such setting; there are ${[...known].join(', ')}`;
    throw new ConfigError({ field: `${where}.${name}`, value: undefined, rule });
  }
}
