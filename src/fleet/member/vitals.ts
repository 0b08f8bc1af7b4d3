/**
 * How this instance is doing, as its heartbeat says: whether its renewals are fast enough, and
 * whether its event loop keeps up. Operators see in it that an instance is about to lose its
 * leases.
 */
import type { Clock } from '../../core/clock.ts';
import type { Timings } from '../../lease/timings.ts';
import type { Runtime } from '../../store/runtime.ts';

export interface Vitals {
  /** How long the lease of a target lasts without a renewal, and how often it is renewed. */
  readonly ttlMs: number;
  readonly renewEveryMs: number;
  /** How long its renewals took in the last few minutes; null where there were none. */
  readonly renewP50Ms: number | null;
  readonly renewP99Ms: number | null;
  /** The longest delay of its event loop in the last minute. */
  readonly loopDelayMs: number;
}

/** Renewals kept, each of a whole batch; beyond this the oldest goes. */
const MAX_RENEWALS = 128;
const RENEWALS_MS = 5 * 60_000;
/** The last minute; of every ten seconds the longest delay is kept. */
const SPANS = 6;
const SPAN_MS = 10_000;

export class VitalSigns {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #renewEveryMs: number;
  #renewals: { readonly atMs: number; readonly tookMs: number }[] = [];
  /** The longest delay of each span, and which span that is. */
  readonly #delays = Array.from({ length: SPANS }, () => ({ span: -1, lateMs: 0 }));
  readonly #unlisten: readonly (() => void)[];

  constructor({ clock, events }: Runtime, timings: Pick<Timings, 'ttlMs' | 'renewEveryMs'>) {
    this.#clock = clock;
    this.#ttlMs = timings.ttlMs;
    this.#renewEveryMs = timings.renewEveryMs;
    this.#unlisten = [
      events.on('lease.renewed', ({ leaseClass, tookMs }) => {
        if (leaseClass !== 'poll') return;
        this.#renewals.push({ atMs: clock.monotonicMs(), tookMs });
        if (this.#renewals.length > MAX_RENEWALS) this.#renewals.shift();
      }),
      events.on('loop.delayed', ({ lateMs }) => this.late(lateMs)),
    ];
  }

  /** A timer fired that much later than it was due. */
  late(lateMs: number): void {
    const span = this.#span();
    const delay = this.#delays[span % SPANS];
    if (delay === undefined || (delay.span === span && delay.lateMs >= lateMs)) return;
    delay.span = span;
    delay.lateMs = lateMs;
  }

  read(): Vitals {
    const sinceMs = this.#clock.monotonicMs() - RENEWALS_MS;
    this.#renewals = this.#renewals.filter(({ atMs }) => atMs >= sinceMs);
    const sorted = this.#renewals.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
    const earliest = this.#span() - SPANS;
    const delays = this.#delays.flatMap(({ span, lateMs }) => (span > earliest ? [lateMs] : []));
    return {
      ttlMs: this.#ttlMs,
      renewEveryMs: this.#renewEveryMs,
      renewP50Ms: percentile(sorted, 0.5),
      renewP99Ms: percentile(sorted, 0.99),
      loopDelayMs: rounded(Math.max(0, ...delays)),
    };
  }

  close(): void {
    for (const unlisten of this.#unlisten) unlisten();
  }

  #span(): number {
    return Math.floor(this.#clock.monotonicMs() / SPAN_MS);
  }
}

/** The vitals in a heartbeat; null where it has none that are valid: other versions beat too. */
export function readVitals(value: unknown): Vitals | null {
  if (typeof value !== 'object' || value === null) return null;
  const { ttlMs, renewEveryMs, renewP50Ms, renewP99Ms, loopDelayMs } = value as {
    [field: string]: unknown;
  };
  if (!isSpan(ttlMs) || !isSpan(renewEveryMs) || !isSpan(loopDelayMs)) return null;
  return {
    ttlMs,
    renewEveryMs,
    loopDelayMs,
    renewP50Ms: isSpan(renewP50Ms) ? renewP50Ms : null,
    renewP99Ms: isSpan(renewP99Ms) ? renewP99Ms : null,
  };
}

export function isSpan(ms: unknown): ms is number {
  return typeof ms === 'number' && Number.isFinite(ms) && ms >= 0;
}

/** The smallest of the sorted values that `share` of them do not exceed. */
function percentile(sorted: readonly number[], share: number): number | null {
  const value = sorted[Math.ceil(sorted.length * share) - 1];
  return value === undefined ? null : rounded(value);
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
