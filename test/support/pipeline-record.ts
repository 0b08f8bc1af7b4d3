/**
 * What pipelines have written down of themselves, and what it says about the workers that ran them. Pure functions over the record: nothing
 * here waits or asks anybody. Times are in ms on the host's wall clock, on which stores mint fences, too: so a fence says when it was granted.
 */
export interface Mark {
  readonly atMs: number;
  /** `begin`, `beat`, `end`, or the name of a signal that it got. */
  readonly what: string;
  readonly pid: number;
  /** The process that was started for the session; the same as `pid` unless that has forked. */
  readonly leader: number;
  readonly session: string;
  /** What no two of may run at once: a channel; of a recording also profile and bucket. */
  readonly channel: string;
  /** Null where it needs none. */
  readonly slot: string | null;
  /** Of the slot, or of the channel where there is none. */
  readonly fence: number;
}

/** One pipeline, from its first mark to its last. */
export interface PipelineRun {
  readonly session: string;
  readonly channel: string;
  readonly slot: string | null;
  readonly fence: number;
  readonly leader: number;
  readonly beginMs: number;
  readonly lastMs: number;
  /** The longest time without a mark of any of its processes. */
  readonly longestGapMs: number;
  /** It says that it has ended by itself. */
  readonly isEnded: boolean;
  readonly signals: readonly string[];
  readonly pids: readonly number[];
}

/** A store may count in whole milliseconds, rounded down. */
const ROUNDING_MS = 1;
/** More would not make a failure clearer. */
const MAX_SHOWN = 5;

/** A line that is not whole yet is left out. */
export function marksOf(text: string): Mark[] {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Mark);
}

/** In the order in which they began. */
export function runsOf(marks: readonly Mark[]): PipelineRun[] {
  const byRun = new Map<string, Mark[]>();
  for (const mark of marks) {
    const name = `${mark.leader} ${mark.session} ${mark.slot} ${mark.fence}`;
    const own = byRun.get(name);
    if (own === undefined) byRun.set(name, [mark]);
    else own.push(mark);
  }
  return [...byRun.values()].map(runOf).sort((a, b) => a.beginMs - b.beginMs);
}

function runOf(marks: readonly Mark[]): PipelineRun {
  const times = marks.map(({ atMs }) => atMs).sort((a, b) => a - b);
  const [first] = marks;
  if (first === undefined) throw new Error('a run without a mark');
  const { session, channel, slot, fence, leader } = first;
  return {
    ...{ session, channel, slot, fence, leader },
    beginMs: times[0] ?? 0,
    lastMs: times.at(-1) ?? 0,
    longestGapMs: Math.max(0, ...times.map((atMs, i) => atMs - (times[i - 1] ?? atMs))),
    isEnded: marks.some(({ what }) => what === 'end'),
    signals: marks.map(({ what }) => what).filter((what) => what.startsWith('SIG')),
    pids: [...new Set(marks.map(({ pid }) => pid))],
  };
}

/** What must never be, in words; '' if nothing of it was. */
export function faultsIn(runs: readonly PipelineRun[]): string {
  const findings = [
    ...overlaps(runs, 'slot'),
    ...overlaps(runs, 'session'),
    ...overlaps(runs, 'channel'),
    ...earlyGrants(runs),
    ...fencesAmiss(runs),
  ];
  if (findings.length === 0) return '';
  return [`${findings.length} findings:`, ...findings.slice(0, MAX_SHOWN)].join('\n');
}

/** Two at once on what is for one at a time. */
function overlaps(runs: readonly PipelineRun[], of: 'slot' | 'session' | 'channel'): string[] {
  const found: string[] = [];
  for (const [name, own] of groups(runs, of)) {
    let before: PipelineRun | null = null;
    for (const run of own) {
      if (before !== null && run.beginMs <= before.lastMs) {
        const forMs = Math.min(before.lastMs, run.lastMs) - run.beginMs;
        const how = `for ${forMs.toFixed(1)} ms: ${told(before)}, ${told(run)}`;
        found.push(`two at once with ${of} ${name} ${how}`);
      }
      if (before === null || run.lastMs > before.lastMs) before = run;
    }
  }
  return found;
}

/** The fence was minted, that is, the slot was granted, while an earlier one still went on with it. */
function earlyGrants(runs: readonly PipelineRun[]): string[] {
  const found: string[] = [];
  for (const [slot, own] of groups(runs, 'slot'))
    for (const [i, run] of own.entries())
      for (const before of own.slice(0, i)) {
        const aheadMs = before.lastMs - (run.fence / 1_000 + ROUNDING_MS);
        if (before.fence !== run.fence && aheadMs > 0)
          found.push(
            `slot ${slot} granted ${aheadMs.toFixed(1)} ms before the last sign of ${told(before)}, to ${told(run)}`,
          );
      }
  return found;
}

function fencesAmiss(runs: readonly PipelineRun[]): string[] {
  const found: string[] = [];
  for (const [slot, own] of groups(runs, 'slot')) {
    let highest = 0;
    for (const run of own) {
      if (run.fence <= highest)
        found.push(`slot ${slot} with a fence that is not above ${highest}: ${told(run)}`);
      highest = Math.max(highest, run.fence);
    }
  }
  return found;
}

function groups(
  runs: readonly PipelineRun[],
  of: 'slot' | 'session' | 'channel',
): Map<string, PipelineRun[]> {
  const found = new Map<string, PipelineRun[]>();
  for (const run of [...runs].sort((a, b) => a.beginMs - b.beginMs)) {
    const name = run[of];
    if (name === null) continue;
    const own = found.get(name);
    if (own === undefined) found.set(name, [run]);
    else own.push(run);
  }
  return found;
}

function told({ session, leader, slot, fence, beginMs, lastMs }: PipelineRun): string {
  const lasted = `${beginMs.toFixed(1)} to ${lastMs.toFixed(1)}`;
  return `process ${leader} of session ${session} (slot ${slot}, fence ${fence}, ${lasted})`;
}
