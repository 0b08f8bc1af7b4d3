/** Whether targets were polled as soon as the faults of a run let them be. */
import { type Gap, gaps } from '../test/support/poll-record.ts';
import type { Invariant, Violation } from './checker.ts';
import type { Entry } from './history.ts';
import type { Poll } from './tenures.ts';
import { CALM_MS, RECOVERY_MS } from './timings.ts';

/** One that was injected, as the history tells of it. */
export interface InjectedFault {
  readonly number: number;
  readonly kind: string;
  readonly victim: string;
  readonly beganMs: number;
  /** Infinity while it lasts. */
  readonly endedMs: number;
  /** How long after its end a target may go without a poll because of it. */
  readonly recoveryMs: number;
  readonly mayBreak: readonly Invariant[];
}

export function faultsOf(history: readonly Entry[]): InjectedFault[] {
  const endedMs = new Map<unknown, number>();
  for (const { what, fault, atMs } of history) if (what === 'fault.ended') endedMs.set(fault, atMs);
  return history
    .filter(({ what }) => what === 'fault.began')
    .map(({ fault, kind, victim, atMs, recoveryMs, mayBreak }) => ({
      number: Number(fault),
      kind: String(kind),
      victim: String(victim),
      beganMs: atMs,
      endedMs: endedMs.get(fault) ?? Number.POSITIVE_INFINITY,
      recoveryMs: Number(recoveryMs),
      mayBreak: (mayBreak ?? []) as Invariant[],
    }));
}

/** Where a target had no poll for longer than in calm, from when all were polled first to the end of the run. */
export function gapsOf(history: readonly Entry[], polls: readonly Poll[]): Gap[] {
  const fromMs = timeOf(history, 'run.began');
  const toMs = timeOf(history, 'run.ended') ?? history.at(-1)?.atMs;
  if (fromMs === undefined || toMs === undefined) return [];
  const recorded = polls.map(({ beganMs, endedMs, ...poll }) => {
    return { ...poll, startMs: beganMs, arrivedMs: beganMs, endMs: endedMs };
  });
  return gaps(recorded, { fromMs, toMs, targets: targetsOf(history), boundMs: CALM_MS });
}

export function livenessViolations(
  history: readonly Entry[],
  polls: readonly Poll[],
  faults: readonly InjectedFault[],
): Violation[] {
  const explanations = [...faults, ...hostStalls(history)];
  const unexplained = gapsOf(history, polls)
    .filter((gap) => !explanations.some((fault) => explains(fault, gap)))
    .map(({ target, fromMs, lastedMs }): Violation => {
      const text = `not polled for ${Math.round(lastedMs)} ms, and no fault explains it`;
      return { invariant: 'gap', target, atMs: fromMs, untilMs: fromMs + lastedMs, text };
    });
  return [...unexplained, ...recoveryViolations(history, polls)];
}

/** It had begun, and its aftermath was not over, when the gap ended. */
function explains(fault: InjectedFault, { fromMs, lastedMs }: Gap): boolean {
  const { beganMs, endedMs, recoveryMs } = fault;
  const toMs = fromMs + lastedMs;
  return beganMs <= toMs && toMs <= endedMs + recoveryMs;
}

/** The harness itself was not given a processor: late instances are not to blame. */
function hostStalls(history: readonly Entry[]): InjectedFault[] {
  return history
    .filter(({ who, what }) => who === 'harness' && what === 'stood.still')
    .map(({ atMs, fromMs }) => ({
      number: 0,
      kind: 'busy machine',
      victim: 'everybody',
      mayBreak: [],
      beganMs: Number(fromMs),
      endedMs: atMs,
      recoveryMs: RECOVERY_MS.plain,
    }));
}

function recoveryViolations(history: readonly Entry[], polls: readonly Poll[]): Violation[] {
  const rest = history.find(({ what }) => what === 'nemesis.rested');
  const endMs = timeOf(history, 'run.ended');
  if (rest === undefined || endMs === undefined) return [];
  const { atMs } = rest;
  const untilMs = atMs + RECOVERY_MS.forgotten;
  // A run that ended before the bound was interrupted, or has seen them all.
  if (endMs < untilMs) return [];
  return targetsOf(history)
    .filter((target) => {
      const isPolled = ({ target: other, beganMs }: Poll) =>
        other === target && beganMs > atMs && beganMs <= untilMs;
      return !polls.some(isPolled);
    })
    .map((target) => {
      const text = `not polled within ${RECOVERY_MS.forgotten} ms of the last fault's end`;
      return { invariant: 'no recovery', target, atMs, untilMs, text };
    });
}

function targetsOf(history: readonly Entry[]): string[] {
  return (history.find(({ what }) => what === 'run.began')?.targets ?? []) as string[];
}

function timeOf(history: readonly Entry[], what: string): number | undefined {
  return history.find((entry) => entry.what === what)?.atMs;
}
