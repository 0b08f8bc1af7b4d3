import type { Clock } from './clock.ts';
import { durationMs } from './duration.ts';
import { ConfigError } from './errors.ts';
import { jittered, type Random } from './random.ts';

export interface BackoffLimits {
  /** The first pause. */
  readonly minMs: number;
  /** No pause is longer. */
  readonly maxMs: number;
}

const MIN_PAUSE_MS = 10;
const MAX_PAUSE_MS = 24 * 3_600_000;
const RANGE_RULE =
  "it must be the first pause and the longest, such as '1s..1m', from 10ms to 24h, or one pause for all";

/** The limits in a text such as `1s..1m`. `field` names the option in the error for any other. */
export function backoffLimits(text: string, field: string): BackoffLimits {
  const invalid = () => new ConfigError({ field, value: text, rule: RANGE_RULE });
  if (typeof text !== 'string') throw invalid();
  const [min = '', max = min, ...rest] = text.split('..');
  let limits: BackoffLimits;
  try {
    limits = { minMs: durationMs(min, field), maxMs: durationMs(max, field) };
  } catch {
    throw invalid();
  }
  const { minMs, maxMs } = limits;
  const isInRange = minMs >= MIN_PAUSE_MS && minMs <= maxMs && maxMs <= MAX_PAUSE_MS;
  if (!isInRange || rest.length > 0) throw invalid();
  return limits;
}

export interface Backoff {
  /** How long to wait before the next try: `minMs`, then twice as long each time, up to `maxMs`. */
  nextMs(): number;
  /** A try succeeded: the next pause is `minMs` again. */
  reset(): void;
}

/** With `random`, each pause is shortened by up to a tenth, so that processes drift apart. */
export function backoff({ minMs, maxMs }: BackoffLimits, random?: Random): Backoff {
  let pauseMs = minMs;
  return {
    nextMs() {
      const currentMs = pauseMs;
      pauseMs = Math.min(pauseMs * 2, maxMs);
      return random === undefined ? currentMs : jittered(currentMs, random);
    },
    reset() {
      pauseMs = minMs;
    },
  };
}

const DEFAULT_LIMITS: BackoffLimits = { minMs: 100, maxMs: 5_000 };

export interface BackoffStateOptions {
  /** No pause is longer; default 5 s. */
  readonly maxPauseMs?: number | undefined;
  /** The first failure of a streak. */
  onStalled(error: unknown): void;
  /** The streak is over, `afterMs` after its first failure. */
  onResumed(afterMs: number): void;
}

/**
 * Failures in a row of something that is tried until it succeeds. `onStalled` and `onResumed` are
 * called once for each streak, however many tries it has.
 */
export class BackoffState {
  readonly #clock: Clock;
  readonly #options: BackoffStateOptions;
  readonly #backoff: Backoff;
  #sinceMs: number | null = null;

  constructor(clock: Clock, options: BackoffStateOptions) {
    this.#clock = clock;
    this.#options = options;
    const { minMs, maxMs } = DEFAULT_LIMITS;
    this.#backoff = backoff({ minMs, maxMs: options.maxPauseMs ?? maxMs });
  }

  /** A try failed. Returns how long to wait before the next one, without jitter. */
  failed(error: unknown): number {
    if (this.#sinceMs === null) {
      this.#sinceMs = this.#clock.monotonicMs();
      this.#options.onStalled(error);
    }
    return this.#backoff.nextMs();
  }

  succeeded(): void {
    this.#backoff.reset();
    if (this.#sinceMs === null) return;
    const afterMs = this.#clock.monotonicMs() - this.#sinceMs;
    this.#sinceMs = null;
    this.#options.onResumed(afterMs);
  }
}
