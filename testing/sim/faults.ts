/**
 * What can go wrong in a world, what each of it may break, and when it does. A plan is made from
 * the seed before anything runs; so a plan with some of its faults left out is a plan too, and a
 * failure can be narrowed down.
 *
 * Each world has only some of the kinds, chosen by its seed: many of them together hide what a few
 * would show.
 */
import type { Random } from '../../src/core/random.ts';

/** What can happen, each with how likely it is beside the others. */
export const KINDS = {
  /** The process is killed, and started again. */
  crash: 4,
  /** It is killed at a named point of its code. */
  'crash at': 3,
  /** It is told to stop, and does so as it should; it is started again. */
  stop: 3,
  /** It is frozen past the end of its leases, and told to stop as soon as it thaws. */
  'late stop': 2,
  /** It gets nothing done for a while. */
  freeze: 4,
  /** The same from a named point of its code on. */
  'freeze at': 6,
  /** Its machine sleeps: the monotonic clock stands still. */
  sleep: 2,
  /** Its wall clock is set. */
  'set clock': 2,
  /** Its wall clock is set while nothing gets to the store or back. */
  'set clock while cut': 2,
  /** Nothing gets to the store or back. */
  cut: 4,
  /** Nothing gets there. */
  'cut out': 2,
  /** Everything gets there, and nothing back. */
  'cut back': 4,
  /** Answers come late, and then nothing more: what counts from an answer counts too long. */
  'late answers': 3,
  slow: 2,
  reset: 2,
  /** The store does nothing for a while, and then all that has arrived meanwhile. */
  'store freezes': 3,
  'store restarts empty': 2,
  'store restarts': 2,
  /**
   * What it had written in the last moments is gone: an append-only file that is synced every
   * second.
   */
  'store restarts with a loss': 2,
  /** A replica that lagged behind takes over. */
  failover: 3,
  flush: 1,
  'scripts are forgotten': 1,
  'out of memory': 2,
  /** An operator deletes some of the keys. */
  'keys are deleted': 1,
  'store clock is set': 1,
  /** An operator takes leases away. */
  revoke: 1,
  /** An operator moves a target by hand, or takes that back. */
  transfer: 2,
  /** An operator pauses a target, and resumes it after a while. */
  pause: 3,
  /**
   * The same while the owner of the target cannot reach the store: it has seen the pause, and no
   * round of it succeeds.
   */
  'pause while cut': 5,
  /** An operator deletes entries of the stream of starts. */
  'starts are lost': 4,
  /** The process is killed, and started again at once. */
  restart: 4,
  /**
   * A worker is told to stop, with little time for that, and its process continues with another
   * one.
   */
  'worker is replaced': 4,
} as const;

export type FaultKind = keyof typeof KINDS;
/** The shortest an episode can be. */
export function shortestEpisodeMs(ttlMs: number): number {
  return ttlMs * EPISODE_TTLS;
}

export const FAULT_KINDS = Object.keys(KINDS) as FaultKind[];

/** Where a process can be caught: between what it has just checked and what it is about to do. */
export const POINTS = [
  'clock',
  'act',
  'lease/acquire',
  'lease/renew',
  'lease/release',
  'lease/transfer',
  'lease/reassert',
  'record/put',
  'member/beat',
  'lease/read',
  'server/examine',
  'PUBLISH',
];

/** There alone where there are intents. */
const INTENT_KINDS: ReadonlySet<FaultKind> = new Set([
  'starts are lost',
  'restart',
  'worker is replaced',
]);
/** There alone where targets are sessions. */
const SESSION_KINDS: ReadonlySet<FaultKind> = new Set(['pause', 'pause while cut']);
/**
 * The same, and twice as likely: a session passes each of them once or twice, and leases all the
 * time.
 */
export const INTENT_POINTS = [
  'intent/start',
  'intent/stop',
  'answer',
  'intent/republish',
  'stream/consume',
  'intent/read',
  'intent/advance',
  'stream/extend',
  'stream/ack',
];

export interface Fault<K extends string = FaultKind> {
  readonly kind: K;
  /** From the beginning of its episode. */
  readonly atMs: number;
  readonly forMs: number;
  /** Which instance, where it happens to one. */
  readonly seat: number;
  /** How much, where that matters: from 0 to 1. */
  readonly size: number;
  /** Where, in the code. */
  readonly point: string;
}

/** For a while things go wrong; then they are let heal. */
export interface Episode<K extends string = FaultKind> {
  readonly lastsMs: number;
  readonly faults: readonly Fault<K>[];
}

export interface PlanParts {
  readonly random: Random;
  readonly seats: number;
  readonly ttlMs: number;
  readonly episodes: number;
  readonly hasIntents: boolean;
  readonly hasSessions: boolean;
}

/** An episode lasts from this many TTLs to twice as many. */
const EPISODE_TTLS = 8;
const POINTS_WITH_INTENTS = [...POINTS, ...INTENT_POINTS, ...INTENT_POINTS];
/** How many kinds of fault a world has. */
const FEWEST_KINDS = 3;
const MOST_KINDS = 10;
/** The mean time between two faults, in TTLs: one of these. */
const GAPS_TTLS = [0.2, 0.7, 3];

export function plan(parts: PlanParts): Episode[] {
  const { random, ttlMs } = parts;
  const kinds = chooseKinds(parts);
  const gapMs = ttlMs * (pick(random, GAPS_TTLS) ?? 1);
  return Array.from({ length: parts.episodes }, () => {
    const lastsMs = ttlMs * EPISODE_TTLS * (1 + random.next());
    const faults: Fault[] = [];
    for (let atMs = between(random, gapMs); atMs < lastsMs; atMs += between(random, gapMs))
      faults.push(fault(parts, kinds, atMs));
    return { lastsMs, faults };
  });
}

/** How long until the next of things that happen independently of each other. */
function between(random: Random, meanMs: number): number {
  return -meanMs * Math.log(1 - random.next());
}

function fault(
  { random, seats, ttlMs, hasIntents }: PlanParts,
  kinds: readonly FaultKind[],
  atMs: number,
): Fault {
  return {
    kind: pick(random, kinds) ?? 'crash',
    atMs,
    forMs: lasting(random, ttlMs),
    seat: Math.floor(random.next() * seats),
    size: random.next(),
    point: pick(random, hasIntents ? POINTS_WITH_INTENTS : POINTS) ?? 'clock',
  };
}

/** Mostly short, some about as long as a lease, some longer than two. */
function lasting(random: Random, ttlMs: number): number {
  const share = random.next();
  if (share < 0.4) return random.next() * 0.1 * ttlMs;
  if (share < 0.8) return random.next() * 1.2 * ttlMs;
  return random.next() * 2.5 * ttlMs;
}

/** Some kinds, each as often as it is likely. */
function chooseKinds({ random, hasIntents, hasSessions }: PlanParts): FaultKind[] {
  const possible = FAULT_KINDS.filter(
    (kind) => (hasIntents || !INTENT_KINDS.has(kind)) && (hasSessions || !SESSION_KINDS.has(kind)),
  );
  const all = possible.flatMap((kind) => new Array<FaultKind>(KINDS[kind]).fill(kind));
  const count = FEWEST_KINDS + Math.floor(random.next() * (MOST_KINDS - FEWEST_KINDS + 1));
  return Array.from({ length: count }, () => pick(random, all) ?? 'crash');
}

function pick<T>(random: Random, from: readonly T[]): T | undefined {
  return from[Math.floor(random.next() * from.length)];
}
