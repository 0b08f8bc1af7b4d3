/**
 * What is promised of leases beyond that a key has one holder, in a mixed world:
 *
 * - **periods**: with `skip`, two runs of a job of `once` are never close. With `retry`, a run may
 *   start over late in its period, so the next one may be close; but no period that the store knows
 *   begins again once its end is on record;
 * - **holds**: no client believes in a lease for longer than its `maxHold`.
 *
 * A period is not promised after a loss of data, nor where the store's clock was set, nor while two
 * servers answer.
 */
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import { PHASE, type Timeline } from './timeline.ts';

export interface WorkAuditParts {
  readonly timeline: Timeline;
  readonly counters: Counters;
  /** Two runs of a job are never closer. */
  readonly leastDistanceMs: number;
  /** What a record of the store says now; null where there is none. */
  peek(record: string): string | null;
  report(invariant: 'periods' | 'holds', subject: string, text: string): void;
}

interface Run {
  readonly beganMs: number;
  /** By the record that the run has written. */
  readonly period: string;
  isOnRecord: boolean;
}

/** A timer may be late by so much. */
const LATE_MS = 5;

export class WorkAudit {
  readonly #parts: WorkAuditParts;
  /** Two servers answer, each with records of its own: no period is promised. */
  isSplit = false;
  readonly #runs = new Map<string, Run>();

  constructor(parts: WorkAuditParts) {
    this.#parts = parts;
  }

  /** The store may have lost records, or its clock was set. */
  excuse(): void {
    this.#runs.clear();
  }

  /** A job begins. */
  began(record: string, process: SimProcess, onCrash: 'skip' | 'retry'): void {
    const { timeline, leastDistanceMs, counters } = this.#parts;
    const { trueMs } = process;
    const last = this.#runs.get(record);
    const distanceMs = last === undefined ? Number.POSITIVE_INFINITY : trueMs - last.beganMs;
    const period = periodOf(this.#parts.peek(record));
    const isSame = last !== undefined && period !== '' && period === last.period;
    const after = `${Math.round(distanceMs)} ms after the last run`;
    counters.add('once: began');
    if (this.isSplit) return;
    if (isSame) counters.add('once: started over');
    if (onCrash === 'skip' && (isSame || distanceMs < leastDistanceMs))
      this.#broken(record, `${process.name} begins ${after}`);
    if (onCrash === 'retry' && isSame && last.isOnRecord)
      this.#broken(record, `${process.name} begins ${after}, whose end is on record`);
    this.#runs.set(record, { beganMs: timeline.nowMs, period, isOnRecord: false });
  }

  /** A call has said that it ran the job to its end. */
  ran(record: string): void {
    const run = this.#runs.get(record);
    const found = this.#parts.peek(record);
    // A process that lost its lease may end its job after another has begun: its end is refused.
    if (run === undefined || found === null || periodOf(found) !== run.period) return;
    run.isOnRecord = !found.includes('"endedAtMs":null');
  }

  /** A lease was granted just now, with a `maxHold`. */
  endsBy(
    storeKey: string,
    process: SimProcess,
    { maxHoldMs, isBelieved }: { maxHoldMs: number; isBelieved(): boolean },
  ): void {
    const { timeline, report } = this.#parts;
    const { host } = process;
    // By the clock that its code has: it may drift, and stands still while the machine sleeps.
    const overMs = host.monotonicMs(timeline.nowMs) + maxHoldMs + LATE_MS;
    const check = () => {
      if (process.isDead || !isBelieved()) return;
      if (host.monotonicMs(timeline.nowMs) < overMs || process.isFrozen) checkLater();
      else
        report(
          'holds',
          storeKey,
          `${process.name} believes in it after ${maxHoldMs} ms of maxHold`,
        );
    };
    const checkLater = () => {
      const atMs = Math.max(host.trueMs(overMs), timeline.nowMs + LATE_MS);
      timeline.at(atMs, check, PHASE.observer);
    };
    checkLater();
  }

  #broken(record: string, text: string): void {
    this.#parts.report('periods', record, text);
  }
}

/** Which period a record of the store is about. */
function periodOf(record: string | null): string {
  return /"periodAtMs":(\d+)/.exec(record ?? '')?.[1] ?? '';
}
