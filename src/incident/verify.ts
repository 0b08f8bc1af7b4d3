/**
 * Whether the shared log contradicts what leases promise: two tenures of a key at once, a fence
 * that fell, a write that a sink accepted outside its tenure.
 *
 * A tenure is one holder's time with a key. A sink is what holders write to.
 *
 * What instances wrote is testimony: an instance may be wrong about itself, and a log without a
 * contradiction proves nothing. So there are three answers about any two entries: they contradict,
 * they may and something else explains it as well (`unclear`, with what does), or they agree.
 * Clocks are compared with the store's, which every fence shows. Where that is impossible, the
 * clocks of two instances may differ by the tolerance.
 */
import { exactly } from '../core/time-text.ts';
import type { LoggedEvent } from '../telemetry/event-log.ts';
import {
  type LoggedKey,
  type LoggedRevocation,
  type LoggedTenure,
  type LoggedTenures,
  readTenures,
} from './logged-tenures.ts';
import type { SinkRecord } from './sink-records.ts';
import { type ClockOffset, clockOffsets, storeMs } from './store-time.ts';

type FindingKind =
  /** Two holders could act at once. */
  | 'overlap'
  /** A later grant had a lower fence. */
  | 'fence-fell'
  /** Two holders had the same fence. */
  | 'fence-shared'
  /** A sink accepted a write from before or after the tenure of its fence. */
  | 'write-outside-tenure'
  /** A sink accepted a lower fence than it had accepted before. */
  | 'sink-went-back';

export interface Finding {
  readonly kind: FindingKind;
  readonly key: string;
  readonly leaseClass: string;
  readonly atMs: number;
  /** How long two could act, or how far outside a write was; null where that means nothing. */
  readonly lastedMs: number | null;
  readonly text: string;
  /** What else explains it; null for a contradiction. */
  readonly explanation: string | null;
  /** The entries of the log, in order of time. */
  readonly events: readonly LoggedEvent[];
  readonly writes: readonly SinkRecord[];
}

export interface VerifyOptions {
  /** How far clocks may differ that cannot be compared with the store's. */
  readonly toleranceMs: number;
  /** Each sink's in its own order. */
  readonly writes?: readonly SinkRecord[];
  /** Only findings of this time; earlier entries tell who held what then. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  readonly key?: string | undefined;
  /** The log does not reach back to `fromMs`. */
  readonly isTrimmed?: boolean | undefined;
}

export interface Verification {
  readonly contradictions: readonly Finding[];
  readonly unclear: readonly Finding[];
  readonly keys: number;
  readonly tenures: number;
  readonly writes: number;
  /** What the log cannot tell, one sentence each. */
  readonly limits: readonly string[];
}

/** How far clocks of hosts may differ, unless the caller knows better. */
export const DEFAULT_TOLERANCE_MS = 1_000;
/** Longer lists of findings are cut, and `limits` says so. */
const MAX_FINDINGS = 200;
/** Two readings of one clock, rounded. */
const SAME_CLOCK_MS = 5;
/** Monotonic clocks of two hosts may run apart by this share. */
const DRIFT = 0.000_2;
const MAX_NAMED = 3;

/** `events` in the order of the log, the oldest first. */
export function verify(events: Iterable<LoggedEvent>, options: VerifyOptions): Verification {
  return verifyTenures(readTenures(events), options);
}

/** The same, for entries that are read already. */
export function verifyTenures(read: LoggedTenures, options: VerifyOptions): Verification {
  return new VerifyRun(read, options).verification();
}

/** An amount with its error: only more than `slackMs` is certain. */
interface Amount {
  readonly ms: number;
  readonly slackMs: number;
}

class VerifyRun {
  readonly #read: LoggedTenures;
  readonly #options: VerifyOptions;
  readonly #keys: readonly LoggedKey[];
  readonly #offsets: ReadonlyMap<string, ClockOffset>;
  readonly #found: Finding[] = [];
  #tolerated = 0;
  #uncompared = 0;
  #unmatched = 0;

  constructor(read: LoggedTenures, options: VerifyOptions) {
    const { key } = options;
    this.#read = read;
    this.#options = options;
    this.#keys = read.keys.filter((one) => key === undefined || one.key === key);
    this.#offsets = clockOffsets(read.keys.flatMap(({ tenures }) => tenures));
  }

  verification(): Verification {
    for (const key of this.#keys) {
      this.#checkOverlaps(key);
      this.#checkFences(key);
    }
    const writes = this.#checkWrites();
    const found = this.#found
      .filter(({ atMs }) => this.#isAsked(atMs))
      .sort((a, b) => a.atMs - b.atMs);
    const contradictions = found.filter(({ explanation }) => explanation === null);
    const unclear = found.filter(({ explanation }) => explanation !== null);
    const asked = this.#keys.map(
      ({ tenures }) => tenures.filter((one) => this.#isOfTime(one)).length,
    );
    const limits = [...cutLimits(contradictions, unclear), ...this.#limits()];
    return {
      contradictions: contradictions.slice(0, MAX_FINDINGS),
      unclear: unclear.slice(0, MAX_FINDINGS),
      keys: asked.filter((count) => count > 0).length,
      tenures: asked.reduce((sum, count) => sum + count, 0),
      writes,
      limits,
    };
  }

  #isAsked(atMs: number): boolean {
    const { fromMs = Number.NEGATIVE_INFINITY, toMs = Number.POSITIVE_INFINITY } = this.#options;
    return fromMs <= atMs && atMs <= toMs;
  }

  #isOfTime({ fromMs: beganMs, untilMs }: LoggedTenure): boolean {
    const { fromMs = Number.NEGATIVE_INFINITY, toMs = Number.POSITIVE_INFINITY } = this.#options;
    return beganMs <= toMs && (untilMs ?? Number.POSITIVE_INFINITY) >= fromMs;
  }

  /** Each tenure against those with lower fences that may have lasted until it began. */
  #checkOverlaps({ tenures, revocations }: LoggedKey): void {
    const ordered = [...tenures].sort((a, b) => a.fence - b.fence);
    const slackMs = this.#options.toleranceMs;
    let open: LoggedTenure[] = [];
    let before = 0;
    for (const later of ordered) {
      if (later.granted !== null) {
        for (const earlier of open) this.#checkPair(earlier, later, before, revocations);
        // A tenure that has met its successor is not compared with those after it.
        open = open.filter(({ untilMs }) => untilMs !== null && untilMs > later.fromMs - slackMs);
      }
      if (!later.isElsewhere) open.push(later);
      before = later.fence;
    }
  }

  #checkPair(
    earlier: LoggedTenure,
    later: LoggedTenure,
    before: number,
    revocations: readonly LoggedRevocation[],
  ): void {
    if (earlier.holder === later.holder || earlier.fence === later.fence) return;
    if (earlier.untilMs === null && this.#read.dead.has(earlier.instance)) return;
    // The store moved the key from one to the other in one step.
    if (earlier.how === 'transferred' && earlier.ended?.successor === later.holder) return;
    const byWalls = this.#overlapByWalls(earlier, later);
    const byStore = overlapByStore(earlier, later, before);
    const isCertain = isMore(byWalls) && (byStore === null || isMore(byStore));
    const ms = byStore === null ? byWalls.ms : Math.min(byWalls.ms, byStore.ms);
    if (!isCertain && !isMore(byWalls) && !(byStore !== null && isMore(byStore))) {
      if (byWalls.ms > 0 && (byStore === null || byStore.ms > 0)) this.#tolerated++;
      return;
    }
    const lastedMs = Math.max(0, isCertain ? ms : Math.max(byWalls.ms, byStore?.ms ?? 0));
    const explanation = isCertain
      ? (this.#missingEnd(earlier, later) ?? permission(earlier, lastedMs, revocations))
      : 'the clock of an instance and the clock of the store disagree, and by one of them the first tenure was over';
    this.#found.push({
      ...about(later),
      kind: 'overlap',
      lastedMs,
      text: `${later.holder} was granted the key while ${earlier.holder} could still act, for ${exactly(lastedMs)}`,
      explanation,
      events: entriesOf(earlier, later, ...revocations.map(({ event }) => event)),
      writes: [],
    });
  }

  /** Between the moments that two instances wrote down. */
  #overlapByWalls(earlier: LoggedTenure, later: LoggedTenure): Amount {
    const span = (tenure: LoggedTenure) => ({
      fromMs: this.#atStore(tenure.instance, tenure.fromMs),
      untilMs: this.#atStore(tenure.instance, actsUntilMs(tenure)),
    });
    const slackMs = this.#slackMs(earlier.instance, later.instance);
    return { ms: sharedMs(span(earlier), span(later)), slackMs };
  }

  /** By the store's clock, where the offset of the instance's is known. */
  #atStore(instance: string, ms: number): number {
    return ms - (this.#offsets.get(instance)?.offsetMs ?? 0);
  }

  #slackMs(a: string, b: string): number {
    if (a === b) return SAME_CLOCK_MS;
    const [one, other] = [this.#offsets.get(a), this.#offsets.get(b)];
    if (one !== undefined && other !== undefined) return one.spreadMs + other.spreadMs;
    this.#uncompared++;
    return this.#options.toleranceMs;
  }

  /** Why the end of a tenure may be missing from the log; null if it is not missing. */
  #missingEnd(earlier: LoggedTenure, later: LoggedTenure): string | null {
    const { instance, untilMs } = earlier;
    if (untilMs !== null) return null;
    if (this.#read.dropped.has(instance))
      return `${instance} dropped entries, so it may have released the key before`;
    const lastMs = this.#read.lastMs.get(instance) ?? 0;
    const isOver = this.#atStore(instance, lastMs) <= this.#atStore(later.instance, later.fromMs);
    return isOver
      ? `the log of ${instance} ends before: a process that crashes loses its last entries, and may have released the key`
      : null;
  }

  /** In the order in which the holders learned of their grants. */
  #checkFences({ tenures }: LoggedKey): void {
    const granted = tenures.filter((tenure) => tenure.granted !== null);
    granted.sort((a, b) => this.#grantedAt(a) - this.#grantedAt(b));
    const byFence = new Map<number, LoggedTenure>();
    let highest: LoggedTenure | null = null;
    for (const tenure of granted) {
      const same = byFence.get(tenure.fence);
      if (same !== undefined && same.holder !== tenure.holder)
        this.#noteFence('fence-shared', same, tenure);
      else if (highest !== null && tenure.fence < highest.fence) this.#checkFall(highest, tenure);
      byFence.set(tenure.fence, tenure);
      if (highest === null || tenure.fence > highest.fence) highest = tenure;
    }
  }

  #grantedAt({ instance, fromMs }: LoggedTenure): number {
    return this.#atStore(instance, fromMs);
  }

  /** The lower fence was granted when its request was sent, at the earliest. */
  #checkFall(highest: LoggedTenure, tenure: LoggedTenure): void {
    const ms = this.#grantedAt(tenure) - tenure.tookMs - this.#grantedAt(highest);
    const slackMs = this.#slackMs(highest.instance, tenure.instance);
    if (ms > slackMs) this.#noteFence('fence-fell', highest, tenure);
    else this.#tolerated++;
  }

  #noteFence(kind: 'fence-fell' | 'fence-shared', first: LoggedTenure, second: LoggedTenure): void {
    const text =
      kind === 'fence-shared'
        ? `${second.holder} was granted fence ${second.fence}, which ${first.holder} had`
        : `${second.holder} was granted fence ${second.fence} after ${first.holder} had ${first.fence}`;
    const events = entriesOf(first, second);
    const own = { kind, lastedMs: null, text, explanation: null, events, writes: [] };
    this.#found.push({ ...about(second), ...own });
  }

  /** Says how many writes there were. */
  #checkWrites(): number {
    const { writes = [], key } = this.#options;
    const byKey = new Map<string, LoggedKey[]>();
    for (const one of this.#keys) byKey.set(one.key, [...(byKey.get(one.key) ?? []), one]);
    const highest = new Map<string, SinkRecord>();
    let count = 0;
    for (const write of writes) {
      if (key !== undefined && write.key !== key) continue;
      count++;
      if (!write.accepted) continue;
      const place = `${write.sink} ${write.key}`;
      const before = highest.get(place);
      const known = byKey.get(write.key) ?? [];
      if (before !== undefined && write.fence < before.fence)
        this.#noteWentBack(before, write, known);
      else highest.set(place, write);
      this.#checkWrite(write, known);
    }
    return count;
  }

  #noteWentBack(before: SinkRecord, write: SinkRecord, known: readonly LoggedKey[]): void {
    const tenures = known.flatMap((key) =>
      key.tenures.filter(({ fence }) => fence === write.fence || fence === before.fence),
    );
    this.#found.push({
      kind: 'sink-went-back',
      key: write.key,
      leaseClass: known[0]?.leaseClass ?? 'lease',
      atMs: write.at,
      lastedMs: null,
      text: `the sink accepted fence ${write.fence} after it had accepted ${before.fence}`,
      explanation: null,
      events: entriesOf(...tenures),
      writes: [before, write],
    });
  }

  /** A write belongs between the grant of its fence and the end of that tenure. */
  #checkWrite(write: SinkRecord, known: readonly LoggedKey[]): void {
    const key = known.find(({ tenures }) => tenures.some(({ fence }) => fence === write.fence));
    const tenure = key?.tenures.find(({ fence }) => fence === write.fence);
    if (key === undefined || tenure === undefined) {
      this.#unmatched++;
      return;
    }
    const end = this.#writableUntil(tenure, key);
    const from = this.#atStore(tenure.instance, tenure.fromMs - tenure.tookMs);
    const earlyMs = tenure.granted === null ? 0 : from - write.at;
    const lateMs = end === null ? 0 : write.at - end.ms;
    const lastedMs = Math.max(earlyMs, lateMs);
    if (lastedMs <= this.#options.toleranceMs) {
      if (lastedMs > 0) this.#tolerated++;
      return;
    }
    const when =
      earlyMs > lateMs
        ? `${exactly(earlyMs)} before that fence was granted to ${tenure.holder}`
        : `${exactly(lateMs)} after ${end?.what ?? 'its end'}`;
    this.#found.push({
      ...about(tenure),
      kind: 'write-outside-tenure',
      atMs: write.at,
      lastedMs,
      text: `the sink accepted a write with fence ${write.fence} ${when}`,
      explanation: null,
      events: entriesOf(tenure, ...(end?.next === undefined ? [] : [end.next])),
      writes: [write],
    });
  }

  /** Null: the log says nothing of an end, and of no later tenure. */
  #writableUntil(
    tenure: LoggedTenure,
    { tenures }: LoggedKey,
  ): { ms: number; what: string; next?: LoggedTenure } | null {
    const { untilMs, how, ttlMs, instance, holder } = tenure;
    if (untilMs !== null) {
      // The work of an abandoned lease may run on until the lease expires.
      const lastMs = how === 'abandoned' ? untilMs + ttlMs : untilMs;
      return { ms: this.#atStore(instance, lastMs), what: `the tenure of ${holder} had ended` };
    }
    if (tenure.isElsewhere) return null;
    let next: LoggedTenure | undefined;
    for (const other of tenures)
      if (other.fence > tenure.fence && (next === undefined || other.fence < next.fence))
        next = other;
    if (next === undefined) return null;
    const what = `${next.holder} had been granted the key`;
    return { ms: this.#grantedAt(next), what, next };
  }

  #limits(): string[] {
    const { isTrimmed = false, writes = [], toleranceMs } = this.#options;
    const tenures = this.#keys.flatMap((key) => key.tenures);
    const open = tenures.filter((one) => one.untilMs === null && !one.isElsewhere);
    const elsewhere = tenures.filter(({ isElsewhere }) => isElsewhere);
    const dropped = [...this.#read.dropped];
    const lines: (string | false)[] = [
      isTrimmed && 'The log does not go back to the beginning of this time.',
      ...dropped.map(([instance, count]) => `${instance} could not write ${count} entries.`),
      open.length > 0 &&
        `${counted(open, 'tenure has', 'tenures have')} no end in the log: the lease is still held, or its process was killed (${named(open)}).`,
      elsewhere.length > 0 &&
        `${counted(elsewhere, 'lease was', 'leases were')} granted over HTTP: their holders do not write to the log (${named(elsewhere)}).`,
      this.#uncompared > 0 &&
        `Some instances have too few grants to compare their clocks with the store's. Their clocks may differ by up to ${exactly(toleranceMs)} (--tolerance).`,
      this.#tolerated > 0 &&
        `${this.#tolerated} times the order of two entries is within what the clocks may differ by, and is not reported.`,
      this.#unmatched > 0 &&
        `${this.#unmatched} accepted writes have a fence that the log does not know.`,
      writes.length === 0 &&
        'No record of a sink was given, so nothing was checked that was written.',
      'Processes that do not write to the log, such as a plain lease without history, are not in it.',
    ];
    return lines.filter((line) => line !== false);
  }
}

function isMore({ ms, slackMs }: Amount): boolean {
  return ms > slackMs;
}

/**
 * By the store's clock alone: the time of both grants, and how long the first holder could act, on
 * its own monotonic clock. Null where a fence does not have the time.
 */
function overlapByStore(earlier: LoggedTenure, later: LoggedTenure, before: number): Amount | null {
  const laterMs = storeMs(later, before);
  const earlierMs = storeMs(earlier, 0);
  if (laterMs === null || earlierMs === null) return null;
  const span = (tenure: LoggedTenure, fromMs: number) => {
    return { fromMs, untilMs: fromMs + actsUntilMs(tenure) - tenure.fromMs };
  };
  const driftMs = (actsUntilMs(earlier) - earlier.fromMs) * DRIFT;
  const slackMs = earlier.tookMs + later.tookMs + SAME_CLOCK_MS + driftMs;
  return { ms: sharedMs(span(earlier, earlierMs), span(later, laterMs)), slackMs };
}

interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** How long two spans overlap; negative where one is over before the other begins. */
function sharedMs(a: Span, b: Span): number {
  return Math.min(a.untilMs, b.untilMs) - Math.max(a.fromMs, b.fromMs);
}

function actsUntilMs({ untilMs, leastUntilMs }: LoggedTenure): number {
  return untilMs ?? leastUntilMs;
}

/** An operator who revokes a lease with force lets two act. */
function permission(
  { holder }: LoggedTenure,
  lastedMs: number,
  revocations: readonly LoggedRevocation[],
): string | null {
  const revocation = revocations.find((one) => one.isForced && one.holder === holder);
  if (revocation === undefined || lastedMs > revocation.mayActForMs) return null;
  return 'the lease was revoked with force, which lets both act for that long';
}

function about({ key, leaseClass, fromMs: atMs }: LoggedTenure) {
  return { key, leaseClass, atMs };
}

function entriesOf(...of: readonly (LoggedTenure | LoggedEvent)[]): LoggedEvent[] {
  return of
    .flatMap((one) => ('position' in one ? [one] : [one.granted, ...one.reassertions, one.ended]))
    .filter((event) => event !== null)
    .sort((a, b) => a.at - b.at);
}

function cutLimits(contradictions: readonly Finding[], unclear: readonly Finding[]): string[] {
  const cut = (all: readonly Finding[], what: string) =>
    all.length > MAX_FINDINGS
      ? [
          `Of ${all.length} ${what}, the first ${MAX_FINDINGS} are listed. Narrow the time or give --key.`,
        ]
      : [];
  return [...cut(contradictions, 'contradictions'), ...cut(unclear, 'unclear findings')];
}

function counted(all: readonly unknown[], one: string, many: string): string {
  return `${all.length} ${all.length === 1 ? one : many}`;
}

function named(tenures: readonly LoggedTenure[]): string {
  const keys = [...new Set(tenures.map(({ key }) => key))];
  const rest = keys.length > MAX_NAMED ? `, and ${keys.length - MAX_NAMED} more` : '';
  return keys.slice(0, MAX_NAMED).join(', ') + rest;
}
