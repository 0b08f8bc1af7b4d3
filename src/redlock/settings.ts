/**
 * redlock's settings, and their meaning here. redlock retries after pauses; Holdfast waits for a
 * wake-up. So the sum of redlock's pauses is the time that Holdfast waits, and the pauses
 * themselves apply only while the store does not answer.
 */
import { ConfigError } from '../core/errors.ts';
import type { Random } from '../core/random.ts';
import type { AcquireOptions } from '../lease/options.ts';
import { SHORTEST_TTL_MS } from '../store/port/keyspaces.ts';
import { invalidArgument } from './errors.ts';

export interface Settings {
  /** Allowed clock drift as a share of the duration: the lock expires here that much earlier. */
  readonly driftFactor: number;
  /** 0: one attempt. -1: wait for ever. Else wait about this many times `retryDelay`. */
  readonly retryCount: number;
  readonly retryDelay: number;
  readonly retryJitter: number;
  /** `using` extends the lock at the latest when this much is left. */
  readonly automaticExtensionThreshold: number;
}

const DEFAULTS: Settings = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
};

const RULES: Readonly<Record<keyof Settings, [(value: number) => boolean, string]>> = {
  driftFactor: [
    (value) => value >= 0 && value <= 0.5,
    'must be a share of the duration, from 0 to 0.5',
  ],
  retryCount: [
    (value) => value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && value >= -1),
    'must be a whole number of at least 0, or -1 for no limit',
  ],
  retryDelay: [isSpan, 'must be milliseconds of at least 0'],
  retryJitter: [isSpan, 'must be milliseconds of at least 0'],
  automaticExtensionThreshold: [isSpan, 'must be milliseconds of at least 0'],
};

/** The minimum pause between two attempts while the store fails, whatever the settings say. */
const MIN_PAUSE_MS = 10;

/** `settings` over `below`. Absent and undefined settings are taken from `below`. */
export function settingsOf(settings: Partial<Settings>, below: Settings = DEFAULTS): Settings {
  const all = { ...below };
  for (const name of Object.keys(RULES) as (keyof Settings)[]) {
    const value = settings[name];
    if (value === undefined) continue;
    const [isGood, rule] = RULES[name];
    if (!isGood(value)) throw new ConfigError({ field: name, value, rule });
    all[name] = value;
  }
  return all;
}

export function checkDuration(duration: unknown): asserts duration is number {
  if (Number.isInteger(duration) && (duration as number) > 0) return;
  throw invalidArgument('duration', duration, 'Duration must be an integer value in milliseconds.');
}

/** The average sum of redlock's pauses. */
export function retryWindowMs({ retryCount, retryDelay, retryJitter }: Settings): number {
  if (retryCount === -1) return Number.POSITIVE_INFINITY;
  // A pause is random in delay ± jitter, and at least 0.
  const pauseMs =
    retryJitter <= retryDelay ? retryDelay : (retryDelay + retryJitter) ** 2 / (4 * retryJitter);
  return retryCount === 0 ? 0 : retryCount * Math.max(1, pauseMs);
}

export function retryPauseMs({ retryDelay, retryJitter }: Settings, random: Random): number {
  return Math.max(MIN_PAUSE_MS, retryDelay + (random.next() * 2 - 1) * retryJitter);
}

/** The timings of a lock's leases, and how long the lock is valid here. */
export interface LockTimings {
  readonly durationMs: number;
  readonly timings: Pick<AcquireOptions, 'ttl' | 'guard' | 'renewEvery' | 'operationTimeout'>;
  /** Counted from when the last confirmed request was sent. */
  readonly validMs: number;
}

/**
 * The timings for `duration` ms, renewed at the latest when `threshold` ms are left. The shortest
 * TTL of a lease is 600 ms: if the process dies, the key of a shorter lock lives that long. Else it
 * is released when the duration is over.
 */
export function timingsOf(duration: number, settings: Settings, threshold = 0): LockTimings {
  const ttl = Math.max(duration, SHORTEST_TTL_MS);
  const driftMs = Math.round(settings.driftFactor * duration) + 2;
  const guard = Math.max(driftMs, Math.min(Math.max(ttl / 20, 100), 1_500));
  const renewEvery = Math.min(ttl / 3, Math.max(MIN_PAUSE_MS, duration - threshold));
  // Three renewals that time out in a row fit before the end.
  const operationTimeout = Math.min(5_000, ttl / 6, (ttl - renewEvery - guard) / 3);
  const validMs = Math.max(0, Math.min(duration - driftMs, ttl - guard));
  return { durationMs: duration, timings: { ttl, guard, renewEvery, operationTimeout }, validMs };
}

/** redlock's own condition: there must be time for an extension. */
export function checkThreshold(durationMs: number, { automaticExtensionThreshold }: Settings) {
  if (automaticExtensionThreshold <= durationMs - 100) return;
  throw invalidArgument(
    'duration',
    durationMs,
    'A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold` setting.',
  );
}

function isSpan(value: number): boolean {
  return Number.isFinite(value) && value >= 0;
}
