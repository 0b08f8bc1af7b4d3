/**
 * Who could act on a target, from when to when, by its own word: put together from a history.
 *
 * A tenure is **valid** from the moment its holder learned of the grant to the earliest of: the deadline of the last
 * confirmation; its loss; its release, or, with a poll under way then, the end of that poll. The work of the holder
 * in that time does not matter: a dead or frozen one counts as well, since nobody else may rely on it being dead.
 *
 * An algorithm without deadlines believes until it is told otherwise. It is judged by what it did: its tenure lasts to the
 * end of its last poll.
 */
import type { Standstill } from '../test/support/poll-record.ts';
import type { Entry } from './history.ts';

export interface Poll {
  readonly instance: string;
  readonly target: string;
  readonly fence: number | null;
  /** Its number in its process. */
  readonly poll: number;
  readonly beganMs: number;
  /** Where it never ended, for its process died: when that process was last heard of. */
  endedMs: number;
  /** When it asked for the last time whether it may write, and was told that it may. */
  actedMs: number | null;
}

export interface Tenure {
  readonly instance: string;
  readonly target: string;
  readonly fence: number | null;
  readonly grantedMs: number;
  readonly polls: Poll[];
  /** Null: it knows of none. */
  deadlineMs: number | null;
  lostMs: number;
  releasingMs: number;
}

export interface Actors {
  readonly tenures: readonly Tenure[];
  readonly polls: readonly Poll[];
  /** Polls of those who had no tenure to poll under. */
  readonly strays: readonly Poll[];
  /** Whatever kept their processes from doing anything. */
  readonly standstills: readonly Standstill[];
}

/** Reads a history that is in order of time. */
export function actorsOf(history: readonly Entry[]): Actors {
  const reading = new Reading();
  for (const entry of history) reading.take(entry);
  reading.end();
  return reading;
}

/** Until when its holder could act. */
export function validUntilMs(tenure: Tenure): number {
  const { releasingMs, polls } = tenure;
  const underWay = polls.filter(
    ({ beganMs, endedMs }) => beganMs <= releasingMs && releasingMs <= endedMs,
  );
  return Math.min(believesUntilMs(tenure), Math.max(releasingMs, ...underWay.map(endOf)));
}

/** Until when a poll could begin. */
export function admitsUntilMs(tenure: Tenure): number {
  return Math.min(believesUntilMs(tenure), tenure.releasingMs);
}

function believesUntilMs({ deadlineMs, lostMs, grantedMs, polls }: Tenure): number {
  return Math.min(deadlineMs ?? Math.max(grantedMs, ...polls.map(endOf)), lostMs);
}

function endOf({ endedMs }: Poll): number {
  return endedMs;
}

class Reading implements Actors {
  readonly tenures: Tenure[] = [];
  readonly polls: Poll[] = [];
  readonly strays: Poll[] = [];
  readonly standstills: Standstill[] = [];
  /** By instance and target: the latest tenure. */
  readonly #latest = new Map<string, Tenure>();
  /** By instance and number: the polls that continue. */
  readonly #open = new Map<string, Poll>();
  readonly #heardMs = new Map<string, number>();

  take(entry: Entry): void {
    const { what, who, atMs } = entry;
    this.#heardMs.set(who, atMs);
    if (what === 'stood.still')
      this.standstills.push({ instance: who, fromMs: Number(entry.fromMs), toMs: atMs });
    else if (what.startsWith('lease.')) this.#takeLease(entry);
    else if (what === 'poll.began') this.#begin(entry);
    else if (what === 'poll.acted' || what === 'poll.ended') this.#goOn(entry);
  }

  /** Nothing more comes. */
  end(): void {
    for (const poll of this.#open.values()) poll.endedMs = this.#heardMs.get(poll.instance) ?? 0;
  }

  #takeLease({ what, who, atMs, target = '', fence = null, deadlineMs }: Entry): void {
    const deadline = typeof deadlineMs === 'number' ? deadlineMs : null;
    if (what === 'lease.acquired') {
      const tenure = {
        instance: who,
        target,
        fence,
        grantedMs: atMs,
        polls: [],
        deadlineMs: deadline,
        lostMs: Number.POSITIVE_INFINITY,
        releasingMs: Number.POSITIVE_INFINITY,
      };
      this.tenures.push(tenure);
      this.#latest.set(`${who} ${target}`, tenure);
      return;
    }
    const tenure = this.#tenure(who, target, fence);
    if (tenure === undefined) return;
    if (what === 'lease.extended') tenure.deadlineMs = deadline;
    if (what === 'lease.lost') tenure.lostMs = Math.min(tenure.lostMs, atMs);
    if (what === 'lease.releasing') tenure.releasingMs = Math.min(tenure.releasingMs, atMs);
  }

  #begin({ who, atMs, target = '', fence = null, poll: number }: Entry): void {
    const poll: Poll = {
      instance: who,
      target,
      fence,
      poll: Number(number),
      beganMs: atMs,
      endedMs: Number.POSITIVE_INFINITY,
      actedMs: null,
    };
    this.polls.push(poll);
    this.#open.set(`${who} ${number}`, poll);
    const tenure = this.#tenure(who, target, fence);
    if (tenure === undefined) this.strays.push(poll);
    else tenure.polls.push(poll);
  }

  #goOn({ what, who, atMs, poll: number }: Entry): void {
    const poll = this.#open.get(`${who} ${number}`);
    if (poll === undefined) return;
    if (what === 'poll.acted') {
      poll.actedMs = atMs;
    } else {
      poll.endedMs = atMs;
      this.#open.delete(`${who} ${number}`);
    }
  }

  #tenure(who: string, target: string, fence: number | null): Tenure | undefined {
    const latest = this.#latest.get(`${who} ${target}`);
    return latest?.fence === fence ? latest : undefined;
  }
}
