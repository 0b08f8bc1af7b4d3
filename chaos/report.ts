/** What a run came to, in words. */
import type { Violation } from './checker.ts';
import type { Entry } from './history.ts';
import { faultsOf, type InjectedFault } from './liveness.ts';
import type { Progress, RunReport } from './run.ts';

/** More would not make a failure clearer. */
const MAX_SHOWN = 5;
const MAX_LINES = 60;
const BEFORE_MS = 2_000;
const AFTER_MS = 500;
/** Faults this long before a violation may have led to it. */
const FAULTS_BEFORE_MS = 12_000;
/** A shorter run need not come to every kind. */
const WHOLE_DECK_S = 60;

export function progressLine(progress: Progress, seconds: number): string {
  const { stage, elapsedMs, instances, accepted, refused, begun, underWay } = progress;
  const elapsed = `${Math.floor(elapsedMs / 1_000)} s`;
  const when = stage === 'faults' ? `${elapsed} of ${seconds} s` : `${stage} for ${elapsed}`;
  const now = underWay.length === 0 ? '' : ` · now: ${underWay.join(', ')}`;
  return `${when} · ${instances} instances · ${accepted} writes, ${refused} fenced off · ${begun} faults${now}`;
}

export function summary(report: RunReport): string {
  const { counts, verdict } = report;
  const rows = [
    ...section('faults', Object.entries(counts.faults)),
    ...section('came to', Object.entries(counts.states)),
    ...section('in all', [
      ['polls', counts.polls],
      ['writes accepted', counts.writes],
      ['gaps, all explained unless said below', counts.gaps],
      ['longest gap, ms', Math.round(counts.longestGapMs)],
    ]),
  ];
  return [heading(report), '', ...rows, '', ...remarks(report), verdictLine(report)]
    .concat(verdict.violations.length > 0 ? ['', ...failure(report)] : [])
    .join('\n');
}

/** For machines: everything but the history itself. */
export function asJson({ history, ...report }: RunReport, path: string | null): string {
  return JSON.stringify({ ...report, historyEntries: history.length, historyPath: path });
}

function heading({ variant, topology, seed, seconds, commit }: RunReport): string {
  const who = variant === 'naive' ? 'the naive variant' : 'Holdfast';
  return `${who} on ${topology}, ${seconds} s of faults, seed ${seed}, commit ${commit}`;
}

function section(title: string, facts: readonly (readonly [string, number])[]): string[] {
  const width = Math.max(...facts.map(([name]) => name.length));
  return [
    `  ${title}`,
    ...facts.map(([name, count]) => `    ${name.padEnd(width)}  ${String(count).padStart(8)}`),
  ];
}

function remarks({ counts, seconds, isInterrupted, verdict, history }: RunReport): string[] {
  const never = Object.entries(counts.faults)
    .filter(([, count]) => count === 0)
    .map(([name]) => name);
  const { length: permitted } = verdict.permitted;
  const failed = history.find(({ what }) => what === 'fault.failed');
  return [
    ...(isInterrupted ? ['Interrupted: the history up to that moment was checked.'] : []),
    ...(never.length > 0 && seconds >= WHOLE_DECK_S && !isInterrupted
      ? [`Never came: ${never.join(', ')}.`]
      : []),
    ...(failed === undefined
      ? []
      : [`${counts.failedFaults} faults did not go as planned; ${failed.kind}: ${failed.error}`]),
    ...(permitted > 0 ? [`${permitted} violations are permitted by the faults around them.`] : []),
  ];
}

function verdictLine({ variant, verdict, tookMs }: RunReport): string {
  const { length } = verdict.violations;
  const isNaive = variant === 'naive';
  if (length === 0) return isNaive ? 'NOT found out: this harness is blind.' : 'No violation.';
  return isNaive
    ? `Found out, as it has to be: ${length} violations within ${(tookMs / 1_000).toFixed(1)} s.`
    : `${length} VIOLATIONS`;
}

/** The first violations, the faults before them, and what happened around the very first. */
function failure({ verdict, history }: RunReport): string[] {
  const originMs = history.find(({ what }) => what === 'run.began')?.atMs ?? 0;
  const at = (ms: number) => `${((ms - originMs) / 1_000).toFixed(3).padStart(9)} s`;
  const [first] = verdict.violations;
  if (first === undefined) return [];
  const faults = faultsOf(history).filter((fault) => isNear(fault, first));
  return [
    ...verdict.violations
      .slice(0, MAX_SHOWN)
      .map(({ atMs, invariant, target, text }) => `${at(atMs)}  ${invariant}: ${target} ${text}`),
    '',
    'Faults around the first:',
    ...faults.map(({ kind, victim, beganMs, endedMs }) => {
      const end = endedMs === Number.POSITIVE_INFINITY ? 'lasting' : `to ${at(endedMs).trim()}`;
      return `${at(beganMs)}  ${kind}, ${victim}, ${end}`;
    }),
    '',
    'What happened around the first:',
    ...excerpt(history, first).map((entry) => `${at(entry.atMs)}  ${told(entry)}`),
  ];
}

function isNear({ beganMs, endedMs }: InjectedFault, { atMs }: Violation): boolean {
  return beganMs <= atMs && endedMs >= atMs - FAULTS_BEFORE_MS;
}

/** Of its target, and of what is nobody's in particular. */
function excerpt(history: readonly Entry[], { target, atMs }: Violation): Entry[] {
  const near = history.filter((entry) => {
    const isAbout = entry.target === undefined || entry.target === target;
    return isAbout && entry.atMs >= atMs - BEFORE_MS && entry.atMs <= atMs + AFTER_MS;
  });
  const from = Math.max(0, near.findIndex((entry) => entry.atMs >= atMs) - MAX_LINES / 2);
  return near.slice(from, from + MAX_LINES);
}

function told({ who, what, atMs: _, target: __, mayBreak: ___, ...facts }: Entry): string {
  return `${who}  ${what}  ${JSON.stringify(facts)}`;
}
