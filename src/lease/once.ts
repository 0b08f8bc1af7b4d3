/**
 * Runs a job once in each period, in whichever process comes first. The lease of the key keeps two
 * processes from running it at once; a record in the store, written under the fence of the lease,
 * keeps a later one from running it again.
 *
 * The store's clock decides. A fence is the store's time at its grant, in microseconds, and at
 * least one more than the fence before it: so the time of a key never goes back, and a host whose
 * own clock is wrong cannot run a job twice.
 *
 * Order matters. The start is on record before the work begins, and the lease is still held after
 * that. The end is on record before the lease is released.
 */
import {
  FenceStaleError,
  KeyForeignError,
  StoreQuarantinedError,
  StoreUnsuitableError,
} from '../core/errors.ts';
import { checkKey } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import { retryStore } from '../core/retry.ts';
import type { Runtime } from '../store/runtime.ts';
import type { Lease } from './lease.ts';
import type { AcquireResult, HeldContext, Leases } from './leases.ts';
import type { AcquireOptions } from './options.ts';
import {
  nextPeriodAtMs,
  type PeriodOptions,
  type PeriodRules,
  periodToRun,
  type RunRecord,
  readPeriod,
} from './period.ts';
import { checkWork, heldContext } from './with-lease.ts';

/** Timings of the lease, `wait` and `signal` are those of `acquire`. */
export interface OnceOptions
  extends PeriodOptions,
    Omit<AcquireOptions, 'holder' | 'fence' | 'fenceFloor' | 'untilReleased' | 'class'> {}

export type OnceResult<T> =
  | {
      readonly ok: true;
      readonly value: T;
      readonly fence: number;
      readonly startedAt: Date;
      /** From when on the next call runs the job again. */
      readonly nextAt: Date;
    }
  | NotRun;

/** Why a call did not run the job. All dates are by the store's clock. */
export type NotRun =
  | {
      readonly ok: false;
      /** This period has had its run. */
      readonly reason: 'done';
      readonly key: string;
      /** The holder that ran it. */
      readonly holder: string;
      readonly startedAt: Date;
      /** Null after a crash. */
      readonly endedAt: Date | null;
      readonly nextAt: Date;
    }
  | {
      readonly ok: false;
      /** Another holder has the lease. */
      readonly reason: 'running';
      readonly key: string;
      readonly holder: string;
      /** Null if that holder has not begun a run. */
      readonly startedAt: Date | null;
      /** When its lease expires unless it is renewed; 0 if that is not known. */
      readonly expiresInMs: number;
    }
  | {
      readonly ok: false;
      /** The store may have lost leases and records, and grants nothing for `expiresInMs`. */
      readonly reason: 'quarantine';
      readonly key: string;
      readonly expiresInMs: number;
    };

interface Job {
  readonly key: string;
  readonly rules: PeriodRules;
  readonly acquire: AcquireOptions;
}

type StoredRun = RunRecord & { readonly fence: number };
type Refusal = Extract<AcquireResult, { ok: false }>;

const COLLECTION = 'once';
const CALL = { timeoutMs: 5_000 };
const KNOWN = new Set([
  'per',
  'tolerance',
  'onCrash',
  'ttl',
  'renewEvery',
  'stop',
  'guard',
  'operationTimeout',
  'wait',
  'signal',
]);

export async function once<T>(
  rt: Runtime,
  leases: Pick<Leases, 'acquire'>,
  { key, options }: { key: string; options: OnceOptions },
  work: (held: HeldContext) => Promise<T> | T,
): Promise<OnceResult<T>> {
  const job = readJob(key, options);
  checkWork(work);
  const result = await leases.acquire(key, job.acquire);
  if (!result.ok) return refused(rt, job, result);
  const { lease } = result;
  try {
    const last = await readRun(rt, key);
    const nowMs = storeMs(lease.fence);
    const periodAtMs = periodToRun(last, nowMs, job.rules);
    if (periodAtMs === null) return done(rt, job, last as StoredRun);
    const run: RunRecord = {
      periodAtMs,
      startedAtMs: nowMs,
      endedAtMs: null,
      holder: lease.holder,
    };
    const later = await recordStart(rt, job, lease, run);
    if (later !== null) return later;
    const value = await runUntilRecorded(rt, lease, run, work);
    const nextAt = new Date(nextPeriodAtMs(run, job.rules));
    return { ok: true, value, fence: lease.fence, startedAt: new Date(nowMs), nextAt };
  } finally {
    await lease.release();
  }
}

/**
 * Writes that the work begins. A process that stood still after its grant may be too late: then a
 * later holder has written, and the result says what that holder does.
 */
async function recordStart(
  rt: Runtime,
  job: Job,
  lease: Lease,
  run: RunRecord,
): Promise<NotRun | null> {
  try {
    await retryStore(rt, lease.signal, () => writeRun(rt, lease, run));
    return null;
  } catch (error) {
    const last = error instanceof FenceStaleError ? await readRun(rt, job.key) : null;
    if (last === null) throw error;
    if (last.endedAtMs !== null) return done(rt, job, last);
    const { holder, startedAtMs } = last;
    const startedAt = new Date(startedAtMs);
    return { ok: false, reason: 'running', key: job.key, holder, startedAt, expiresInMs: 0 };
  }
}

/** Runs the work, and writes that it has ended, well or badly, unless it was interrupted. */
async function runUntilRecorded<T>(
  rt: Runtime,
  lease: Lease,
  run: RunRecord,
  work: (held: HeldContext) => Promise<T> | T,
): Promise<T> {
  const { clock } = rt;
  // The lease may have been lost while the record was written: another process may run it now.
  lease.assertHeld();
  const beganMs = clock.monotonicMs();
  let hasEnded = false;
  try {
    const value = await work(heldContext(lease));
    hasEnded = true;
    return value;
  } catch (error) {
    // Work that failed has run. Work that was stopped because its lease is over has crashed.
    hasEnded = !lease.signal.aborted;
    throw error;
  } finally {
    const endedAtMs = run.startedAtMs + Math.round(clock.monotonicMs() - beganMs);
    if (hasEnded) await recordEnd(rt, lease, { ...run, endedAtMs });
  }
}

/**
 * Tries until the store has the end, or the lease is over; then once more. A run without an end
 * counts as crashed, so with `retry` another process may start over.
 */
async function recordEnd(rt: Runtime, lease: Lease, run: RunRecord): Promise<void> {
  const write = () => writeRun(rt, lease, run);
  await retryStore(rt, lease.signal, write)
    .catch(write)
    .catch(() => {});
}

/** The error of a quarantine, for callers that throw. */
export function quarantineError({
  key,
  expiresInMs,
}: Extract<NotRun, { reason: 'quarantine' }>): StoreQuarantinedError {
  return new StoreQuarantinedError({ key, expiresInMs, waitedMs: 0 });
}

/** Refuses a key or options that every call of `once` would refuse. */
export function checkOnceOptions(key: string, options: OnceOptions): void {
  readJob(key, options);
}

function readJob(key: string, options: OnceOptions): Job {
  checkKey(key);
  checkKnown(options, KNOWN);
  const { per, tolerance, onCrash, ...acquire } = options;
  const rules = readPeriod({ per, tolerance, onCrash });
  return { key, rules, acquire: { ...acquire, untilReleased: true } };
}

/** Another holder has the lease, or the store grants none. */
async function refused(rt: Runtime, job: Job, refusal: Refusal): Promise<NotRun> {
  const { key, expiresInMs } = refusal;
  if (refusal.reason === 'quarantine') return { ok: false, reason: 'quarantine', key, expiresInMs };
  const { holder, fence } = refusal;
  const last = await readRun(rt, key);
  // That holder may have found out, just now, that this period has had its run.
  const isDone = last !== null && last.endedAtMs !== null;
  if (isDone && periodToRun(last, storeMs(fence), job.rules) === null) return done(rt, job, last);
  const startedAt = last?.fence === fence ? new Date(last.startedAtMs) : null;
  return { ok: false, reason: 'running', key, holder, startedAt, expiresInMs };
}

/**
 * This period has had its run. A period that began more than one period ahead of this host's clock
 * would block the job for that long, so it is an error: the store's clock was ahead once, or this
 * host's is behind.
 */
function done({ clock, store }: Runtime, { key, rules }: Job, last: StoredRun): NotRun {
  const { holder, startedAtMs, endedAtMs, periodAtMs } = last;
  if (periodAtMs - clock.wallMs() > rules.perMs) {
    const problem =
      `'${key}' ran at ${new Date(startedAtMs).toISOString()} by the store's clock, and this host's clock says ` +
      `${new Date(clock.wallMs()).toISOString()}. If this host is right, the store's clock was ahead: ` +
      'use another key for the job. If it is not, set its clock';
    throw new StoreUnsuitableError({ store: store.name, problems: [problem] });
  }
  return {
    ok: false,
    reason: 'done',
    key,
    holder,
    startedAt: new Date(startedAtMs),
    endedAt: endedAtMs === null ? null : new Date(endedAtMs),
    nextAt: new Date(nextPeriodAtMs(last, rules)),
  };
}

/** The store's time when it minted a fence. */
function storeMs(fence: number): number {
  return Math.floor(fence / 1_000);
}

async function readRun({ store }: Runtime, key: string): Promise<StoredRun | null> {
  const [reply] = await store.records.get(COLLECTION, [key], CALL);
  if (reply?.kind === 'failed') throw reply.error;
  if (reply?.kind !== 'found') return null;
  if (!isRun(reply.value))
    throw new KeyForeignError({ key: `${COLLECTION}:${key}`, found: 'no run' });
  return { ...reply.value, fence: reply.fence };
}

/** Other programs can write records. */
function isRun(value: unknown): value is RunRecord {
  const { periodAtMs, startedAtMs, endedAtMs, holder } = (value ?? {}) as Partial<RunRecord>;
  const times = [periodAtMs, startedAtMs, endedAtMs ?? 0];
  return times.every(Number.isFinite) && typeof holder === 'string';
}

/** Refused with `FENCE_STALE` if a later holder of the lease has written. */
async function writeRun(
  { store }: Runtime,
  { key, fence }: Lease,
  value: RunRecord,
): Promise<void> {
  const [reply] = await store.records.put(COLLECTION, [{ id: key, value, fence }], CALL);
  if (reply?.kind === 'failed') throw reply.error;
  if (reply?.kind === 'stale')
    throw new FenceStaleError({ resource: key, fence, seen: reply.seen });
}
