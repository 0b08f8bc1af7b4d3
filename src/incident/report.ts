/**
 * What happened in a time, from the shared log: who held what, who was uncertain or stood still,
 * gaps, acts of operators, trouble of the store, and whether the log contradicts itself. The page
 * and `--json` show this.
 */
import type { EventName } from '../core/events.ts';
import { type Gap, readGap, STANDSTILL_MS } from '../core/gap.ts';
import { targetOf } from '../telemetry/about.ts';
import type { LoggedEvent } from '../telemetry/event-log.ts';
import { LEVELS } from '../telemetry/levels.ts';
import {
  type Doubt,
  type LoggedKey,
  type LoggedTenures,
  readTenures,
  type TenureEnd,
} from './logged-tenures.ts';
import { DEFAULT_TOLERANCE_MS, type Verification, verifyTenures } from './verify.ts';

export interface ReportOptions {
  readonly fromMs: number;
  readonly toMs: number;
  readonly key?: string | undefined;
  readonly isTrimmed: boolean;
}

export interface IncidentReport {
  readonly fromMs: number;
  readonly toMs: number;
  readonly key: string | null;
  readonly verification: Verification;
  readonly keys: readonly ReportKey[];
  readonly gaps: readonly ReportGap[];
  readonly handovers: { readonly count: number; readonly longestMs: number };
  readonly doubts: readonly ReportDoubt[];
  readonly standstills: readonly Standstill[];
  readonly acts: readonly LoggedEvent[];
  readonly trouble: readonly LoggedEvent[];
  readonly events: readonly LoggedEvent[];
  /** How many of each list are not in it. */
  readonly leftOut: Readonly<Record<ReportList, number>>;
}

export type ReportList =
  | 'keys'
  | 'tenures'
  | 'gaps'
  | 'doubts'
  | 'standstills'
  | 'acts'
  | 'trouble'
  | 'events';

export interface ReportKey {
  readonly key: string;
  readonly leaseClass: string;
  readonly tenures: readonly ReportTenure[];
}

export interface ReportTenure {
  readonly holder: string;
  readonly instance: string;
  readonly fence: number;
  readonly fromMs: number;
  readonly untilMs: number;
  /** The log has no end of it: `untilMs` is when the next holder or the report says it was over. */
  readonly isOpen: boolean;
  readonly how: TenureEnd | null;
  readonly reason: string | null;
  readonly doubts: readonly Doubt[];
}

interface ReportGap extends Gap {
  readonly atMs: number;
  readonly target: string;
  readonly from: string | null;
  readonly to: string;
}

/** Leases of one instance that were in doubt for the same reason, at about the same time. */
interface ReportDoubt {
  readonly instance: string;
  readonly reason: string;
  readonly fromMs: number;
  readonly untilMs: number | null;
  readonly keys: readonly string[];
}

/** A process that did not run. `lost`: how many leases expired meanwhile. */
interface Standstill {
  readonly instance: string;
  readonly atMs: number;
  readonly lastedMs: number;
  readonly lost: number;
}

/** Lists have at most this many, the most telling ones. */
export const MAX_KEYS = 60;
const MAX_TENURES = 200;
const MAX_ROWS = 200;
const MAX_EVENTS = 1_000;
/** Doubts and standstills this close to each other have one cause. */
const SAME_MS = 2_000;

const ACTS = new Set(['operator.acted', 'lease.revoked', 'workflow.revoked']);
const TROUBLE = new Set([
  'store.forgot',
  'store.quarantined',
  'fleet.stalled',
  'fleet.resumed',
  'worker.stalled',
  'worker.resumed',
  'lease.reasserted',
  'log.dropped',
]);

/** `events` in the order of the log, the oldest first, with those before the time. */
export function incidentReport(
  events: readonly LoggedEvent[],
  { fromMs, toMs, key, isTrimmed }: ReportOptions,
): IncidentReport {
  const toleranceMs = DEFAULT_TOLERANCE_MS;
  const read = readTenures(events);
  const verification = verifyTenures(read, { fromMs, toMs, key, isTrimmed, toleranceMs });
  const isWanted = (event: LoggedEvent) => key === undefined || isAbout(event, key);
  const own = events.filter(({ at }) => fromMs <= at && at <= toMs).filter(isWanted);
  own.sort((a, b) => a.at - b.at);
  const isOf = (names: ReadonlySet<string>) => own.filter(({ event }) => names.has(event));
  const { keys, tenures } = keysOf(
    { events, read },
    { fromMs, toMs, key, isTrimmed },
    verification,
  );
  const taken = own.filter(({ event }) => event === 'target.taken');
  const lists = {
    gaps: cut(gapsOf(taken), MAX_ROWS),
    doubts: cut(doubtsOf(keys), MAX_ROWS),
    standstills: cut(standstillsOf(own), MAX_ROWS),
    acts: cut(isOf(ACTS), MAX_ROWS),
    trouble: cut(isOf(TROUBLE), MAX_ROWS),
  };
  const listed = cut(byWeight(own), MAX_EVENTS);
  const shown = cut(keys, MAX_KEYS);
  return {
    fromMs,
    toMs,
    key: key ?? null,
    verification,
    keys: shown.kept,
    gaps: lists.gaps.kept,
    handovers: handoversOf(taken),
    doubts: lists.doubts.kept,
    standstills: lists.standstills.kept,
    acts: lists.acts.kept,
    trouble: lists.trouble.kept,
    events: [...listed.kept].sort((a, b) => a.at - b.at),
    leftOut: {
      keys: shown.leftOut,
      tenures,
      gaps: lists.gaps.leftOut,
      doubts: lists.doubts.leftOut,
      standstills: lists.standstills.leftOut,
      acts: lists.acts.leftOut,
      trouble: lists.trouble.leftOut,
      events: listed.leftOut,
    },
  };
}

function isAbout(event: LoggedEvent, key: string): boolean {
  return event.key === key || targetOf(event) === key || event.workflow === key;
}

function cut<T>(all: readonly T[], most: number): { kept: readonly T[]; leftOut: number } {
  return { kept: all.slice(0, most), leftOut: Math.max(0, all.length - most) };
}

/** Keys with a tenure in this time, those first where something went wrong. */
function keysOf(
  { events, read }: { events: readonly LoggedEvent[]; read: LoggedTenures },
  options: ReportOptions,
  { contradictions, unclear }: Verification,
): { keys: ReportKey[]; tenures: number } {
  const gone = lastSeenGone(events);
  const taken = new Map<string, number>();
  for (const { event, target, fence, gapMs } of events)
    if (event === 'target.taken') taken.set(`${target} ${fence}`, Number(gapMs));
  let leftOut = 0;
  const weighed = read.keys
    .filter(({ key }) => options.key === undefined || key === options.key)
    .map((key) => {
      const tenures = barsOf(key, { options, gone, taken });
      leftOut += Math.max(0, tenures.length - MAX_TENURES);
      const found = [...contradictions, ...unclear].filter((one) => one.key === key.key).length;
      const lost = tenures.filter(({ how }) => how === 'lost' || how === 'abandoned').length;
      const doubts = tenures.filter((one) => one.doubts.length > 0).length;
      const weight = found * 1e9 + lost * 1e6 + doubts * 1e3 + tenures.length;
      return {
        key: key.key,
        leaseClass: key.leaseClass,
        tenures: tenures.slice(-MAX_TENURES),
        weight,
      };
    })
    .filter(({ tenures }) => tenures.length > 0);
  weighed.sort((a, b) => b.weight - a.weight || collator.compare(a.key, b.key));
  return { keys: weighed.map(({ weight: _, ...key }) => key), tenures: leftOut };
}

const collator = new Intl.Collator('en', { numeric: true });

/** When an instance was found to be gone. */
function lastSeenGone(events: readonly LoggedEvent[]): Map<string, number> {
  const gone = new Map<string, number>();
  for (const { event, member, predecessor, at } of events) {
    const who =
      event === 'member.left' ? member : event === 'worker.reclaimed' ? predecessor : null;
    if (typeof who === 'string' && !gone.has(who)) gone.set(who, at);
  }
  return gone;
}

interface Around {
  readonly options: ReportOptions;
  readonly gone: ReadonlyMap<string, number>;
  /** The gap before a tenure, by its target and fence. */
  readonly taken: ReadonlyMap<string, number>;
}

function barsOf({ tenures }: LoggedKey, { options, gone, taken }: Around): ReportTenure[] {
  const { fromMs, toMs } = options;
  const ordered = [...tenures].sort((a, b) => a.fence - b.fence);
  return ordered.flatMap((tenure, index): ReportTenure[] => {
    const { holder, instance, fence, fromMs: beganMs, how, doubts } = tenure;
    const next = ordered[index + 1];
    const gapMs = next === undefined ? 0 : (taken.get(`${next.key} ${next.fence}`) ?? 0);
    const ends = [toMs, gone.get(instance), next && next.fromMs - gapMs];
    const known = ends.filter((end) => end !== undefined && end >= beganMs) as number[];
    // An API process that is gone says nothing about a holder that used it.
    const latest = tenure.isElsewhere ? [toMs, next?.fromMs ?? toMs] : [...known, toMs];
    const untilMs = tenure.untilMs ?? Math.min(...latest);
    if (beganMs > toMs || untilMs < fromMs) return [];
    const reason = typeof tenure.ended?.reason === 'string' ? tenure.ended.reason : null;
    const isOpen = tenure.untilMs === null;
    return [{ holder, instance, fence, fromMs: beganMs, untilMs, isOpen, how, reason, doubts }];
  });
}

/** The gaps after a failure, the longest first. */
function gapsOf(taken: readonly LoggedEvent[]): ReportGap[] {
  return taken
    .filter(({ how }) => how === 'failover')
    .map((event) => {
      const { at: atMs, target, from, instance: to } = event;
      const from_ = typeof from === 'string' ? from : null;
      return { ...readGap(event), atMs, target: String(target), from: from_, to };
    })
    .sort((a, b) => b.gapMs - a.gapMs);
}

function handoversOf(taken: readonly LoggedEvent[]): { count: number; longestMs: number } {
  const gaps = taken.filter(({ how }) => how === 'handover').map((event) => readGap(event).gapMs);
  return { count: gaps.length, longestMs: gaps.reduce((most, ms) => Math.max(most, ms), 0) };
}

function doubtsOf(keys: readonly ReportKey[]): ReportDoubt[] {
  const all = keys.flatMap(({ key, tenures }) =>
    tenures.flatMap(({ instance, doubts }) => doubts.map((doubt) => ({ key, instance, doubt }))),
  );
  all.sort((a, b) => a.doubt.fromMs - b.doubt.fromMs);
  const found: (ReportDoubt & { keys: string[]; untilMs: number | null })[] = [];
  for (const { key, instance, doubt } of all) {
    const { fromMs, untilMs, reason } = doubt;
    const same = found.find(
      (one) => one.instance === instance && one.reason === reason && fromMs - one.fromMs <= SAME_MS,
    );
    if (same === undefined) {
      found.push({ instance, reason, fromMs, untilMs, keys: [key] });
      continue;
    }
    same.keys.push(key);
    same.untilMs =
      same.untilMs === null || untilMs === null ? null : Math.max(same.untilMs, untilMs);
  }
  return found;
}

function standstillsOf(events: readonly LoggedEvent[]): Standstill[] {
  const found: (Standstill & { atMs: number; lastedMs: number; lost: number })[] = [];
  for (const { event, instance, at, lateMs } of events) {
    const isLoss = event === 'lease.lost';
    if (typeof lateMs !== 'number' || !(event === 'loop.delayed' || isLoss)) continue;
    if (isLoss && lateMs < STANDSTILL_MS) continue;
    const same = found.find((one) => one.instance === instance && at - one.atMs <= SAME_MS);
    if (same === undefined) {
      found.push({ instance, atMs: at, lastedMs: lateMs, lost: isLoss ? 1 : 0 });
    } else {
      same.lastedMs = Math.max(same.lastedMs, lateMs);
      same.lost += isLoss ? 1 : 0;
    }
  }
  return found;
}

/** Warnings and errors first: they stay where there are too many. */
function byWeight(events: readonly LoggedEvent[]): LoggedEvent[] {
  const isGrave = ({ event }: LoggedEvent) => {
    const level = LEVELS[event as EventName] ?? 'info';
    return level === 'warn' || level === 'error' || ACTS.has(event) || TROUBLE.has(event);
  };
  return [...events.filter(isGrave), ...events.filter((event) => !isGrave(event))];
}
