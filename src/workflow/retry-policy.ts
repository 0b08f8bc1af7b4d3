import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkKnown } from '../core/options.ts';
import { jittered, type Random } from '../core/random.ts';

export interface RetryPolicy {
  /** How often it is tried, the first time included. */
  tries?: number;
  /**
   * The pause before the second try, which doubles with each further try up to a minute; or both
   * pauses, as `'1s..5m'`.
   */
  backoff?: Duration;
}

/** A policy in numbers. */
export interface RetryLimits {
  readonly tries: number;
  readonly minMs: number;
  readonly maxMs: number;
}

const KNOWN = new Set(['tries', 'backoff']);
const MAX_TRIES = 1_000;
const DEFAULT_MAX_MS = 60_000;
const RANGE = /^([^.]+(?:\.\d+[a-z]+)?)\.\.(.+)$/;

/** Reads a policy; `fallback` has what it leaves out. */
export function readRetry(policy: RetryPolicy, fallback: RetryLimits): RetryLimits {
  checkKnown(policy, KNOWN);
  const { tries = fallback.tries, backoff } = policy;
  if (!Number.isInteger(tries) || tries < 1 || tries > MAX_TRIES) {
    const rule = `it must be a whole number from 1 to ${MAX_TRIES}`;
    throw new ConfigError({ field: 'retry.tries', value: tries, rule });
  }
  if (backoff === undefined) return { ...fallback, tries };
  const [, from, to] = (typeof backoff === 'string' && RANGE.exec(backoff)) || [];
  const minMs = durationMs(from ?? backoff, 'retry.backoff');
  const maxMs =
    to === undefined ? Math.max(minMs, DEFAULT_MAX_MS) : durationMs(to, 'retry.backoff');
  if (maxMs >= minMs) return { tries, minMs, maxMs };
  const rule = 'the first pause is not longer than the last';
  throw new ConfigError({ field: 'retry.backoff', value: backoff, rule });
}

/** The pause after so many failed tries. */
export function retryPauseMs({ minMs, maxMs }: RetryLimits, tried: number, random: Random): number {
  return jittered(Math.min(minMs * 2 ** (tried - 1), maxMs), random);
}
