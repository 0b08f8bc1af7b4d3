import type { Message } from './child.ts';
import {
  byTarget,
  fenceRegressions,
  gaps,
  isLate,
  overlaps,
  type Poll,
  type Standstill,
} from './poll-record.ts';

/** A stretch of a scenario, from its beginning to that of the next, and how long a target may go without a poll in it. */
export interface Phase {
  readonly name: string;
  readonly fromMs: number;
  readonly gapMs: number;
}

/** From when to when a target is to be polled. */
export interface Wanted {
  readonly target: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Chronicle {
  readonly polls: readonly Poll[];
  readonly phases: readonly Phase[];
  readonly wanted: readonly Wanted[];
  readonly standstills: readonly Standstill[];
  /** What the processes have told, by the id of each. */
  readonly told: ReadonlyMap<string, readonly Message[]>;
  readonly endMs: number;
}

interface Finding {
  readonly target: string;
  readonly atMs: number;
  readonly toMs: number;
  readonly what: string;
}

/** More would not make a failure clearer. */
const MAX_SHOWN = 5;
const TIMELINE_BEFORE_MS = 1_000;
const TIMELINE_AFTER_MS = 1_000;

/** What is wrong with a whole run, in words, with what happened around the first finding; '' if nothing is. */
export function faultsOf(chronicle: Chronicle): string {
  const { polls, standstills, phases } = chronicle;
  const acts = polls.filter((poll) => !isLate(poll, standstills));
  const startMs = phases[0]?.fromMs ?? 0;
  const kinds = [overlapFindings(acts), fenceFindings(acts), gapFindings(chronicle)];
  const findings = kinds.flat();
  const [first] = findings;
  if (first === undefined) return '';
  return [
    `${findings.length} findings:`,
    // Of each kind: however much there is of one, it does not hide that there is another.
    ...kinds
      .flatMap((kind) => kind.slice(0, MAX_SHOWN))
      .map(({ what, atMs }) => `${seconds(atMs - startMs)} ${what}`),
    `around '${first.target}':`,
    ...timeline(chronicle, first, startMs),
  ].join('\n');
}

function overlapFindings(polls: readonly Poll[]): Finding[] {
  return overlaps(polls).map(({ target, first, second, forMs }) => ({
    target,
    atMs: second.startMs,
    toMs: second.startMs + Math.min(forMs, TIMELINE_AFTER_MS),
    what:
      `'${target}' polled by ${second.instance} (fence ${second.fence}) while ${first.instance} ` +
      `(fence ${first.fence}) still did, for ${Math.round(forMs)} ms`,
  }));
}

function fenceFindings(polls: readonly Poll[]): Finding[] {
  return fenceRegressions(polls).map(({ target, seen, poll }) => ({
    target,
    atMs: poll.arrivedMs,
    toMs: poll.arrivedMs,
    what: `'${target}' polled by ${poll.instance} with fence ${poll.fence} after ${seen}`,
  }));
}

function gapFindings({ polls, phases, wanted, endMs }: Chronicle): Finding[] {
  const known = byTarget(polls);
  return phases.flatMap(({ name, fromMs, gapMs }, i) => {
    const untilMs = phases[i + 1]?.fromMs ?? endMs;
    return wanted.flatMap((want) => {
      const found = gaps(known.get(want.target) ?? [], {
        fromMs: Math.max(fromMs, want.fromMs),
        toMs: Math.min(untilMs, want.toMs),
        targets: [want.target],
        boundMs: gapMs,
      });
      return found.map(({ target, fromMs: atMs, lastedMs }) => ({
        target,
        atMs,
        toMs: atMs + lastedMs,
        what: `'${target}' not polled for ${Math.round(lastedMs)} ms (${name}: at most ${gapMs} ms)`,
      }));
    });
  });
}

/** Polls, and what the processes told of the target or of themselves, in order. */
function timeline(chronicle: Chronicle, finding: Finding, startMs: number): string[] {
  const { target } = finding;
  const fromMs = finding.atMs - TIMELINE_BEFORE_MS;
  const toMs = finding.toMs + TIMELINE_AFTER_MS;
  const isNear = (moment: number) => moment >= fromMs && moment <= toMs;
  const polls = chronicle.polls
    .filter((poll) => poll.target === target && isNear(poll.startMs))
    .map((poll) => ({
      atMs: poll.startMs,
      text: `${poll.instance} polls (fence ${poll.fence}) until ${seconds(poll.endMs - startMs)}`,
    }));
  const told = [...chronicle.told].flatMap(([id, messages]) =>
    messages
      .filter((message) => isNear(Number(message.atMs)) && concerns(message, target))
      .map(({ event, atMs: moment, ...facts }) => ({
        atMs: Number(moment),
        text: `${id} ${event} ${JSON.stringify(facts)}`,
      })),
  );
  return [...polls, ...told]
    .sort((a, b) => a.atMs - b.atMs)
    .map((line) => `${seconds(line.atMs - startMs)}  ${line.text}`);
}

function concerns(message: Message, target: string): boolean {
  const subject = message.key ?? message.target ?? message.session;
  return subject === undefined || subject === target;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(3)} s`;
}
