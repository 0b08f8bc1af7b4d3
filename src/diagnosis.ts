/**
 * Examines a store and the fleet on it: what works, what to know, and what prevents work. For the
 * command `doctor`, and for the server.
 */
import type { Clock } from './core/clock.ts';
import { StoreRefusedError } from './core/errors.ts';
import { fleetFindings, type Margin, marginsOf } from './fleet/watch/findings.ts';
import type { Holdfast } from './holdfast.ts';
import type { ClockOffset, Finding } from './store/port/examination.ts';

/** How many reads measure the round trip, unless they take longer than `MEASURE_MS`. */
const READS = 100;
const MEASURE_MS = 2_000;
/** The key of the probe: no program is likely to use it. */
const PROBE = 'holdfast-doctor';
/** How many log entries are searched for the moment at which a member was told to drain. */
const LOG_ENTRIES = 1_000;

export interface DiagnosisFinding {
  readonly level: Finding['level'];
  /** The subject of the finding: `persistence`, `clock`, `renewals`, `event loop` … */
  readonly subject: string;
  readonly fact: string;
  readonly advice?: string | undefined;
}

export interface Diagnosis {
  readonly store: string;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly findings: readonly DiagnosisFinding[];
  /** From here to the store; null where it could not be measured. */
  readonly roundTrip: RoundTrip | null;
  /** How far the store's clock is from ours; null where they are the same. */
  readonly clock: ClockOffset | null;
  readonly members: readonly Margin[];
}

interface RoundTrip {
  readonly reads: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface DiagnosisOptions {
  /** Whether to acquire a lease and write a record, which leaves a trace. */
  readonly tryOut: boolean;
}

type Patient = Pick<
  Holdfast,
  'examine' | 'inspect' | 'fleet' | 'log' | 'acquire' | 'records' | 'instanceId'
>;

export async function diagnose(
  holdfast: Patient,
  clock: Clock,
  { tryOut }: DiagnosisOptions,
): Promise<Diagnosis> {
  const { store, findings } = await holdfast.examine();
  const tried = tryOut ? [await triedOut(holdfast)] : [];
  const roundTrip = await measured(holdfast, clock);
  const { members, targets } = await holdfast.fleet.view();
  const drainingMs = members.some(({ isDraining }) => isDraining)
    ? await drainTimes(holdfast, clock)
    : new Map<string, number>();
  const ofFleet = fleetFindings({ members, targets, p99Ms: roundTrip.p99Ms, drainingMs });
  return {
    store,
    at: Math.round(clock.wallMs()),
    roundTrip,
    findings: [...findings.map(({ clock: _, ...finding }) => finding), ...tried, ...ofFleet],
    clock: furthest(findings),
    members: marginsOf(members),
  };
}

async function measured(holdfast: Patient, clock: Clock): Promise<RoundTrip> {
  const took: number[] = [];
  const untilMs = clock.monotonicMs() + MEASURE_MS;
  do {
    const sentMs = clock.monotonicMs();
    await holdfast.inspect(PROBE);
    took.push(clock.monotonicMs() - sentMs);
  } while (took.length < READS && clock.monotonicMs() < untilMs);
  took.sort((a, b) => a - b);
  const reads = took.length;
  const at = (share: number) => Math.round((took[Math.ceil(reads * share) - 1] ?? 0) * 100) / 100;
  return { reads, p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** On a Cluster there is one for each server: the one that is off the most. */
function furthest(findings: readonly Finding[]): ClockOffset | null {
  const offsets = findings.flatMap(({ clock }) => clock ?? []);
  offsets.sort((a, b) => Math.abs(b.offsetMs) - Math.abs(a.offsetMs));
  return offsets[0] ?? null;
}

/** For how long members have been told to drain, as far as the latest part of the log tells. */
async function drainTimes(holdfast: Patient, clock: Clock): Promise<ReadonlyMap<string, number>> {
  const { entries } = await holdfast.log.recall({ most: LOG_ENTRIES });
  const told = entries.filter(({ event }) => event === 'member.draining').reverse();
  return new Map(told.map(({ member, at }) => [String(member), clock.wallMs() - at]));
}

/**
 * Does once what a Holdfast does, under a key of its own: a right that this user lacks shows here,
 * and nowhere else.
 */
async function triedOut(holdfast: Patient): Promise<Finding> {
  const subject = 'rights';
  const key = `${PROBE}-${holdfast.instanceId}`;
  try {
    const result = await holdfast.acquire(key, { ttl: '5s' });
    if (!result.ok) {
      const forMs = Math.ceil(result.expiresInMs);
      const fact = `No lease is granted for ${forMs} ms yet: the store is new, or may have forgotten some.`;
      const advice =
        'This ends by itself; run it again then, to see whether this user may do everything.';
      return { level: 'warn', subject, fact, advice };
    }
    // Waiting for a held key needs the right to use signals.
    await holdfast.acquire(key, { ttl: '5s', wait: 10 });
    await holdfast.records.put(key, { probe: true }, { fence: result.lease.fence });
    await holdfast.records.remove(key);
    const { released } = await result.lease.release();
    if (released)
      return { level: 'ok', subject, fact: 'A lease was had, waited for, used and released.' };
    return {
      level: 'warn',
      subject,
      fact: 'A lease was had, but could not be released in time.',
      advice: 'Try again.',
    };
  } catch (error) {
    if (!(error instanceof StoreRefusedError)) throw error;
    return { level: 'refuse', subject, fact: error.message };
  }
}
