/**
 * What a history must show, whatever was done to the processes in it. A pure function: nothing here waits or asks anybody.
 *
 * Safety, always: two instances are never valid for one target at once; who acts, or begins to, is valid; polls of one
 * target never overlap, neither by their own word nor by that of target servers; fences of a target's grants strictly increase, and each belongs to one tenure; what the sink has
 * accepted never goes back; by the database's own order of commits, no transaction that passed `guard` with a fence
 * commits after a higher fence was granted. Liveness, as far as faults let it: no target goes without a poll for longer than the faults
 * around explain, and after the last of them each is polled again within the bound.
 *
 * A process can be stopped between its check and its act, and no lease helps against that. So a poll in which its process
 * stood still may overlap another: what it writes then is late, and the sink's matter. Nothing else is excused.
 */

import {
  isLate,
  overlaps,
  type Poll as SeenPoll,
  type Standstill,
} from '../test/support/poll-record.ts';
import type { Refusal } from '../testing/model/rules.ts';
import type { Entry } from './history.ts';
import { faultsOf, type InjectedFault, livenessViolations } from './liveness.ts';
import { contradictionsOf } from './shared-log.ts';
import {
  type Actors,
  actorsOf,
  admitsUntilMs,
  type Poll,
  type Tenure,
  validUntilMs,
} from './tenures.ts';
import { STANDSTILL_MS, TTL_MS } from './timings.ts';

export type Invariant =
  /** Two instances valid at once. */
  | 'exclusion'
  /** A write that was checked outside of the tenure it names. */
  | 'act outside tenure'
  | 'poll outside tenure'
  /** Two polls of one target at once. */
  | 'two polls'
  /** A target server saw two instances at once. */
  | 'overlap at target'
  | 'fence order'
  | 'fence shared'
  /** The sink accepted an older fence than it had. */
  | 'sink went back'
  /** A transaction that passed `guard` committed after a higher fence was granted. */
  | 'stale commit'
  /** A standby was promoted that may lack grants, and the store made grants at once. */
  | 'no quarantine'
  /** The store has every grant, and made no new ones for a while. */
  | 'needless quarantine'
  /** A step that the formal model does not allow. */
  | 'model'
  | 'gap'
  | 'no recovery'
  /** `holdfast verify` finds a contradiction in it, and the checker none. */
  | 'verify'
  /** A process ended by itself, or a promise was rejected that nobody awaited. */
  | 'crash';

export interface Violation {
  readonly invariant: Invariant;
  readonly target: string;
  readonly atMs: number;
  readonly untilMs: number;
  readonly text: string;
}

export interface Verdict {
  readonly violations: readonly Violation[];
  /** Those that a fault around them may cause, by what is promised of it. */
  readonly permitted: readonly Violation[];
}

/** How long after its end a fault may still show: the longest that two can hold after a failover. */
const AFTERMATH_MS = 2 * TTL_MS;

export function check(history: readonly Entry[], refusals: readonly Refusal[] = []): Verdict {
  const actors = actorsOf(history);
  const faults = faultsOf(history);
  const found = [
    ...exclusionViolations(actors.tenures),
    ...actViolations(actors),
    ...overlapViolations(actors),
    ...targetViolations(history, actors),
    ...grantViolations(actors.tenures),
    ...sinkViolations(history),
    ...commitViolations(history),
    ...quarantineViolations(history),
    ...livenessViolations(history, actors.polls, faults),
    ...crashViolations(history),
    ...refusals.map(modelViolation),
    ...verifyViolations(history, actors),
  ].sort((a, b) => a.atMs - b.atMs);
  const violations = found.filter((violation) => !isPermitted(violation, faults));
  const permitted = found.filter((violation) => isPermitted(violation, faults));
  // Of what the checker found too, `verify` is only the second witness.
  const first = [...violations, ...permitted].filter(({ invariant }) => invariant !== 'verify');
  const isNew = ({ invariant, target }: Violation) =>
    invariant !== 'verify' || !first.some((other) => other.target === target);
  return { violations: violations.filter(isNew), permitted: permitted.filter(isNew) };
}

function verifyViolations(history: readonly Entry[], { standstills }: Actors): Violation[] {
  return contradictionsOf(history, standstills).map(({ key: target, atMs, lastedMs, text }) => {
    return { invariant: 'verify', target, atMs, untilMs: atMs + (lastedMs ?? 0), text };
  });
}

/** Invariants that show the same as another one does. */
const WITNESSES: { readonly [name in Invariant]?: Invariant } = {
  model: 'exclusion',
  'overlap at target': 'two polls',
};

function isPermitted({ invariant, atMs }: Violation, faults: readonly InjectedFault[]): boolean {
  return faults.some(
    ({ mayBreak, beganMs, endedMs }) =>
      mayBreak.includes(WITNESSES[invariant] ?? invariant) &&
      beganMs <= atMs &&
      atMs <= endedMs + AFTERMATH_MS,
  );
}

function modelViolation({ key: target, atMs, rule, text }: Refusal): Violation {
  return { invariant: 'model', target, atMs, untilMs: atMs, text: `rule '${rule}': ${text}` };
}

function exclusionViolations(tenures: readonly Tenure[]): Violation[] {
  const found: Violation[] = [];
  for (const [target, own] of byTarget(tenures)) {
    let open: { readonly tenure: Tenure; readonly endMs: number }[] = [];
    for (const tenure of own) {
      const { grantedMs: atMs, instance } = tenure;
      const endMs = validUntilMs(tenure);
      open = open.filter((earlier) => earlier.endMs > atMs);
      for (const earlier of open) {
        if (earlier.tenure.instance === instance || endMs <= atMs) continue;
        const untilMs = Math.min(earlier.endMs, endMs);
        const text = `${named(tenure)} was valid while ${named(earlier.tenure)} was, for ${ms(untilMs - atMs)}`;
        found.push({ invariant: 'exclusion', target, atMs, untilMs, text });
      }
      open.push({ tenure, endMs });
    }
  }
  return found;
}

function actViolations({ tenures, strays, standstills }: Actors): Violation[] {
  const found: Violation[] = [];
  const note = (invariant: Invariant, poll: Poll, atMs: number, how: string) => {
    const { target } = poll;
    found.push({ invariant, target, atMs, untilMs: atMs, text: `${named(poll)} ${how}` });
  };
  for (const poll of strays)
    note('poll outside tenure', poll, poll.beganMs, 'polled without having been granted it');
  for (const tenure of tenures) {
    const admits = admitsUntilMs(tenure);
    const valid = validUntilMs(tenure);
    for (const poll of tenure.polls) {
      const { beganMs, actedMs } = poll;
      const isLate = beganMs > admits + STANDSTILL_MS;
      if (isLate && !stoodStill(standstills, poll.instance, admits, beganMs))
        note('poll outside tenure', poll, beganMs, `began ${ms(beganMs - admits)} too late`);
      if (actedMs !== null && actedMs > valid)
        note('act outside tenure', poll, actedMs, `acted ${ms(actedMs - valid)} too late`);
    }
  }
  return found;
}

function overlapViolations({ polls, standstills }: Actors): Violation[] {
  const found: Violation[] = [];
  const isExcused = ({ instance, beganMs, endedMs }: Poll) =>
    stoodStill(standstills, instance, beganMs, endedMs);
  for (const [target, own] of byTarget(polls)) {
    let open: Poll[] = [];
    for (const second of own) {
      const { beganMs: atMs } = second;
      open = open.filter(({ endedMs }) => endedMs > atMs);
      for (const first of open) {
        const untilMs = Math.min(first.endedMs, second.endedMs);
        const isSame = first.instance === second.instance;
        if (!isSame && (isExcused(first) || isExcused(second))) continue;
        const text = `${named(second)} polled while ${named(first)} still did, for ${ms(untilMs - atMs)}`;
        found.push({ invariant: 'two polls', target, atMs, untilMs, text });
      }
      open.push(second);
    }
  }
  return found;
}

/** By the record of the target servers. A poll that its process slept through is late, and shows that by its fence. */
function targetViolations(history: readonly Entry[], { standstills }: Actors): Violation[] {
  const seen = history.filter(({ what }) => what === 'target.polled') as unknown as SeenPoll[];
  return overlaps(seen)
    .filter(({ first, second }) => !isLate(first, standstills) && !isLate(second, standstills))
    .map(({ target, first, second, forMs }) => {
      const text = `${named(second)} polled it while ${named(first)} still did, for ${ms(forMs)}`;
      const { startMs: atMs } = second;
      return { invariant: 'overlap at target', target, atMs, untilMs: atMs + forMs, text };
    });
}

/** In the order in which the holders learned of them. */
function grantViolations(tenures: readonly Tenure[]): Violation[] {
  const found: Violation[] = [];
  for (const [target, own] of byTarget(tenures)) {
    let highest: Tenure | null = null;
    const holders = new Map<number, Tenure>();
    for (const tenure of own) {
      const { fence, grantedMs: atMs } = tenure;
      if (fence === null) continue;
      const before = holders.get(fence);
      const about = { target, atMs, untilMs: atMs };
      if (before !== undefined) {
        const text = `${named(tenure)} was granted the fence of ${named(before)}`;
        found.push({ ...about, invariant: 'fence shared', text });
      } else if (highest !== null && fence < (highest.fence ?? 0)) {
        const text = `${named(tenure)} was granted after ${named(highest)}`;
        found.push({ ...about, invariant: 'fence order', text });
      }
      holders.set(fence, tenure);
      if (highest === null || fence > (highest.fence ?? 0)) highest = tenure;
    }
  }
  return found;
}

function sinkViolations(history: readonly Entry[]): Violation[] {
  const found: Violation[] = [];
  const highest = new Map<string, { fence: number; by: string }>();
  for (const { what, target = '', fence, by, atMs } of history) {
    if (what !== 'sink.accepted' || typeof fence !== 'number') continue;
    const seen = highest.get(target);
    const about = { target, atMs, untilMs: atMs };
    if (seen !== undefined && fence < seen.fence) {
      const text = `the sink accepted fence ${fence} of ${by} after ${seen.fence} of ${seen.by}`;
      found.push({ ...about, invariant: 'sink went back', text });
    } else if (seen !== undefined && fence === seen.fence && by !== seen.by) {
      const text = `the sink accepted fence ${fence} of ${by} and of ${seen.by}`;
      found.push({ ...about, invariant: 'fence shared', text });
    } else {
      highest.set(target, { fence, by: String(by) });
    }
  }
  return found;
}

/** In the order in which the database committed them. */
function commitViolations(history: readonly Entry[]): Violation[] {
  const found: Violation[] = [];
  const highest = new Map<string, number>();
  const commits = history.filter(({ what }) => what.startsWith('commit.'));
  commits.sort((a, b) => Number(a.order) - Number(b.order));
  for (const { what, target = '', fence, by, atMs } of commits) {
    if (typeof fence !== 'number') continue;
    const granted = highest.get(target) ?? 0;
    if (what === 'commit.grant') {
      highest.set(target, Math.max(granted, fence));
    } else if (fence < granted) {
      const text = `${by} committed with fence ${fence} after ${granted} had been granted`;
      found.push({ invariant: 'stale commit', target, atMs, untilMs: atMs, text });
    }
  }
  return found;
}

/** A store goes into quarantine, by a new era, exactly where it may have lost grants. */
function quarantineViolations(history: readonly Entry[]): Violation[] {
  const note = (invariant: Invariant, { atMs, who }: Entry, text: string): Violation => {
    return { invariant, target: '', atMs, untilMs: atMs, text: `${who}: ${text}` };
  };
  const run = history.find(({ what }) => what === 'run.began');
  const changed = history.filter(({ what }) => what === 'timeline.changed');
  const missing = changed.filter(({ mustQuarantine, isNewEra }) => mustQuarantine && !isNewEra);
  const needless = history.filter(({ what }) => what === 'store.forgot' && run?.neverForgets);
  return [
    ...missing.map((entry) =>
      note('no quarantine', entry, `timeline ${entry.from} became ${entry.to}`),
    ),
    ...needless.map((entry) => note('needless quarantine', entry, String(entry.why))),
  ];
}

function crashViolations(history: readonly Entry[]): Violation[] {
  return history
    .filter(({ what }) => what === 'unhandled' || what === 'instance.crashed')
    .map(({ atMs, who, what, error, instance = who }) => {
      const text = `${instance} ${what === 'unhandled' ? 'left a rejection unhandled' : 'ended by itself'}: ${error}`;
      return { invariant: 'crash', target: '', atMs, untilMs: atMs, text };
    });
}

function stoodStill(
  standstills: readonly Standstill[],
  who: string,
  fromMs: number,
  toMs: number,
): boolean {
  return standstills.some(
    (still) => still.instance === who && still.fromMs < toMs && still.toMs > fromMs,
  );
}

function byTarget<T extends { readonly target: string }>(all: readonly T[]): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const one of all) {
    const own = found.get(one.target);
    if (own === undefined) found.set(one.target, [one]);
    else own.push(one);
  }
  return found;
}

function named({ instance, fence }: { instance: string; fence: number | null }): string {
  return `${instance} (fence ${fence ?? 'none'})`;
}

function ms(duration: number): string {
  return `${Math.round(duration)} ms`;
}
