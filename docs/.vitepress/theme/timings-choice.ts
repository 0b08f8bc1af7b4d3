/**
 * What a choice of timings means, for the calculator. The arithmetic and the refusals are the product's own:
 * `src/lease/timings.ts` imports nothing that a browser lacks, and a test checks that.
 */
import { durationMs } from '../../../src/core/duration.ts';
import {
  deriveTimings,
  LEASE_CLASSES,
  type Timings,
  workTimings,
} from '../../../src/lease/timings.ts';
import { LONGEST_TTL_MS } from '../../../src/store/port/keyspaces.ts';

/** `lease`: what code holds. `command`: what a process group does, under `holdfast run` or a worker. */
export type ChoiceKind = 'lease' | 'command';

/** As typed; empty: not said. */
export interface Choice {
  readonly kind: ChoiceKind;
  readonly ttl: string;
  /** How long the work takes to stop; for a command, its grace. */
  readonly stop: string;
  readonly renewEvery: string;
  readonly guard: string;
  readonly operationTimeout: string;
}

export interface Figures extends Timings {
  readonly stopMs: number;
  /** From a crash until the store can give the key to another. */
  readonly crashLeastMs: number;
  readonly crashMostMs: number;
  /** The store may be away for so long, whenever that begins, and no lease is lost. */
  readonly outageMs: number;
  /** So may the process stand still. */
  readonly freezeMs: number;
  /** By how much the store's clock may run faster than the holder's. */
  readonly drift: number;
  /** After the store may have forgotten grants, so long without new ones. */
  readonly quarantineMs: number;
  /** Requests a minute to renew a thousand leases. */
  readonly requestsPerMinute: number;
}

export type Verdict =
  | { readonly ok: true; readonly figures: Figures }
  | { readonly ok: false; readonly message: string };

/** A renewal that failed is tried again after a second at the most; or after an operation timeout, if that is less. */
const RETRY_MOST_MS = 1_000;
/** How much longer than its longest TTL a store that may have forgotten waits. */
const QUARANTINE_MORE_MS = 1_000;

export function judge(choice: Choice): Verdict {
  try {
    return { ok: true, figures: figuresOf(choice) };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}

function figuresOf(choice: Choice): Figures {
  const { stopMs, timings } = choice.kind === 'command' ? commanded(choice) : leased(choice);
  const { ttlMs, renewEveryMs, guardMs, validMs, operationTimeoutMs } = timings;
  const freezeMs = validMs - renewEveryMs;
  const pauseMs = Math.min(RETRY_MOST_MS, operationTimeoutMs);
  return {
    ...timings,
    stopMs,
    crashLeastMs: ttlMs - renewEveryMs,
    crashMostMs: ttlMs,
    // The last request that goes unanswered is waited for, and then there is a pause.
    outageMs: Math.max(0, freezeMs - operationTimeoutMs - pauseMs),
    freezeMs,
    drift: (guardMs - stopMs) / ttlMs,
    quarantineMs: ttlMs + QUARANTINE_MORE_MS,
    requestsPerMinute: 60_000 / renewEveryMs,
  };
}

function leased({ kind: _, ...typed }: Choice): Chosen {
  const said = present(typed);
  const timings = deriveTimings(said, LEASE_CLASSES.lease.timings, LONGEST_TTL_MS);
  return { timings, stopMs: durationMs(said.stop ?? 0, 'stop') };
}

function commanded({ ttl, stop }: Choice): Chosen {
  const work = workTimings(present({ ttl, grace: stop }));
  return { timings: deriveTimings(work, {}, LONGEST_TTL_MS), stopMs: work.stop };
}

interface Chosen {
  readonly timings: Timings;
  readonly stopMs: number;
}

/** What was said. */
function present<T extends Record<string, string>>(typed: T): Partial<T> {
  const said = Object.entries(typed).flatMap(([name, text]) =>
    text.trim() === '' ? [] : [[name, text.trim()]],
  );
  return Object.fromEntries(said) as Partial<T>;
}

const UNITS = [
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const;

/** `28500` is `28.5 s`. */
export function shown(ms: number): string {
  const [size, unit] = UNITS.find(([least]) => ms >= least) ?? [1, 'ms'];
  return `${Math.round((ms / size) * 100) / 100} ${unit}`;
}

/** `0.05` is `5 %`. */
export function shownShare(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`;
}
