/**
 * How this instance is doing, as it says with its heartbeat: whether its renewals come in good time, and whether its event loop keeps up.
 * Whoever operates a fleet sees by it that an instance will lose its leases before it does.
 */
import type { Clock } from '../../core/clock.ts';
import type { Emitter } from '../../core/events.ts';

export interface Vitals {
  /** How long a lease of a target lasts without a renewal, and how often it is renewed. */
  readonly ttlMs: number;
  readonly renewEveryMs: number;
  /** How long its renewals took, over the last few minutes; null while there were none. */
  readonly renewP50Ms: number | null;
  readonly renewP99Ms: number | null;
  /** By how much its event loop was late at most, over the last minute. */
  readonly loopDelayMs: number;
}

/** Renewals remembered, each of a whole batch: with more, the oldest go first. */
const MOST_RENEWALS = 128;
const RENEWALS_MS = 5 * 60_000;
/** The last minute, of which the worst of every ten seconds is kept. */
const SPANS = 6;
const SPAN_MS = 10_000;

export interface VitalSignsParts {
  readonly clock: Clock;
  readonly events: Emitter;
  readonly ttlMs: number;
  readonly renewEveryMs: number;
}

export class VitalSigns {
  readonly #parts: VitalSignsParts;
  #renewals: { readonly atMs: number; readonly tookMs: number }[] = [];
  /** The longest delay of each span, and which span that is. */
  readonly #delays = Array.from({ length: SPANS }, () => ({ span: -1, lateMs: 0 }));
  readonly #unlisten: readonly (() => void)[];

  constructor(parts: VitalSignsParts) {
    const { clock, events } = parts;
    this.#parts = parts;
    this.#unlisten = [
      events.on('lease.renewed', ({ leaseClass, tookMs }) => {
        if (leaseClass !== 'poll') return;
        this.#renewals.push({ atMs: clock.monotonicMs(), tookMs });
        if (this.#renewals.length > MOST_RENEWALS) this.#renewals.shift();
      }),
      events.on('loop.delayed', ({ lateMs }) => this.late(lateMs)),
    ];
  }

  /** Something was done that much later than it was due. */
  late(lateMs: number): void {
    const span = this.#span();
    const delay = this.#delays[span % SPANS];
    if (delay === undefined || (delay.span === span && delay.lateMs >= lateMs)) return;
    delay.span = span;
    delay.lateMs = lateMs;
  }

  read(): Vitals {
    const { clock, ttlMs, renewEveryMs } = this.#parts;
    const sinceMs = clock.monotonicMs() - RENEWALS_MS;
    this.#renewals = this.#renewals.filter(({ atMs }) => atMs >= sinceMs);
    const sorted = this.#renewals.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
    const earliest = this.#span() - SPANS;
    const delays = this.#delays.flatMap(({ span, lateMs }) => (span > earliest ? [lateMs] : []));
    return {
      ...{ ttlMs, renewEveryMs },
      renewP50Ms: percentile(sorted, 0.5),
      renewP99Ms: percentile(sorted, 0.99),
      loopDelayMs: rounded(Math.max(0, ...delays)),
    };
  }

  close(): void {
    for (const unlisten of this.#unlisten) unlisten();
  }

  #span(): number {
    return Math.floor(this.#parts.clock.monotonicMs() / SPAN_MS);
  }
}

/** What a heartbeat says of it; null where it says nothing, or nothing that makes sense: other versions beat, too. */
export function readVitals(value: unknown): Vitals | null {
  if (typeof value !== 'object' || value === null) return null;
  const { ttlMs, renewEveryMs, renewP50Ms, renewP99Ms, loopDelayMs } = value as {
    [field: string]: unknown;
  };
  if (!isSpan(ttlMs) || !isSpan(renewEveryMs) || !isSpan(loopDelayMs)) return null;
  return {
    ...{ ttlMs, renewEveryMs, loopDelayMs },
    renewP50Ms: isSpan(renewP50Ms) ? renewP50Ms : null,
    renewP99Ms: isSpan(renewP99Ms) ? renewP99Ms : null,
  };
}

export function isSpan(ms: unknown): ms is number {
  return typeof ms === 'number' && Number.isFinite(ms) && ms >= 0;
}

/** Of sorted values: the least that so great a share of them does not exceed. */
function percentile(sorted: readonly number[], share: number): number | null {
  const value = sorted[Math.ceil(sorted.length * share) - 1];
  return value === undefined ? null : rounded(value);
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
