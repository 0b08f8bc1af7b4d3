/**
 * redlock's settings, and what they come to here. It asks, sleeps and asks again; Holdfast waits to be woken. So what it
 * would sleep in all is how long is waited, and the pauses themselves are only for a store that does not answer.
 */
import { ConfigError } from '../core/errors.ts';
import type { Random } from '../core/random.ts';
import type { AcquireOptions } from '../lease/options.ts';
import { SHORTEST_TTL_MS } from '../store/port/keyspaces.ts';

export interface Settings {
  /** The share of the duration by which clocks may differ: a lock ends that much sooner here than in the store. */
  readonly driftFactor: number;
  /** 0: asks once. -1: waits for ever. Else waits about this many times `retryDelay`. */
  readonly retryCount: number;
  readonly retryDelay: number;
  readonly retryJitter: number;
  /** `using` renews when this is left at the latest; sooner where a third of the duration is sooner. */
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
    'it is a share of the duration, from 0 to 0.5',
  ],
  retryCount: [
    (value) => value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && value >= -1),
    'it is a whole number from 0 up, or -1: without end',
  ],
  retryDelay: [isSpan, 'it is milliseconds from 0 up'],
  retryJitter: [isSpan, 'it is milliseconds from 0 up'],
  automaticExtensionThreshold: [isSpan, 'it is milliseconds from 0 up'],
};

/** Between two tries of a store that fails, whatever the settings say: asking without pause would help nobody. */
const SHORTEST_PAUSE_MS = 10;

/** `settings` over `below`, or a `CONFIG_INVALID`. What is left out, or undefined, is taken from below. */
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
  const rule = 'Duration must be an integer value in milliseconds.';
  throw new ConfigError({ field: 'duration', value: duration, rule });
}

/** What redlock would sleep between its tries, on average and in all. */
export function retryWindowMs({ retryCount, retryDelay, retryJitter }: Settings): number {
  if (retryCount === -1) return Number.POSITIVE_INFINITY;
  // A pause is drawn from delay ± jitter, and never below 0.
  const pauseMs =
    retryJitter <= retryDelay ? retryDelay : (retryDelay + retryJitter) ** 2 / (4 * retryJitter);
  return retryCount === 0 ? 0 : retryCount * Math.max(1, pauseMs);
}

export function retryPauseMs({ retryDelay, retryJitter }: Settings, random: Random): number {
  return Math.max(SHORTEST_PAUSE_MS, retryDelay + (random.next() * 2 - 1) * retryJitter);
}

/** How a lock of some duration stands in the store, and how long it is good for here. */
export interface LockTerms {
  readonly durationMs: number;
  readonly timings: Pick<AcquireOptions, 'ttl' | 'guard' | 'renewEvery' | 'operationTimeout'>;
  /** From the moment its last confirmed request was sent. */
  readonly validMs: number;
}

/**
 * For `duration` ms, renewed at the latest when `threshold` ms are left. The kernel keeps nothing for less than 600 ms: the key of a
 * shorter lock lives that long should its process die; else it is freed when the duration is over.
 */
export function termsOf(duration: number, settings: Settings, threshold = 0): LockTerms {
  const ttl = Math.max(duration, SHORTEST_TTL_MS);
  const driftMs = Math.round(settings.driftFactor * duration) + 2;
  const guard = Math.max(driftMs, Math.min(Math.max(ttl / 20, 100), 1_500));
  const renewEvery = Math.min(ttl / 3, Math.max(SHORTEST_PAUSE_MS, duration - threshold));
  // Three renewals that time out one after the other fit before the end.
  const operationTimeout = Math.min(5_000, ttl / 6, (ttl - renewEvery - guard) / 3);
  const validMs = Math.max(0, Math.min(duration - driftMs, ttl - guard));
  return { durationMs: duration, timings: { ttl, guard, renewEvery, operationTimeout }, validMs };
}

/** redlock's own condition: there has to be time for an extension. */
export function checkThreshold(durationMs: number, { automaticExtensionThreshold }: Settings) {
  if (automaticExtensionThreshold <= durationMs - 100) return;
  const rule =
    `a lock duration must be at least 100ms greater than the automaticExtensionThreshold setting, ` +
    `which is ${automaticExtensionThreshold} ms`;
  throw new ConfigError({ field: 'duration', value: durationMs, rule });
}

function isSpan(value: number): boolean {
  return Number.isFinite(value) && value >= 0;
}
