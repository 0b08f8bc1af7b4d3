/**
 * Work that waits to be done: the part of the port that carries it from who wants it done to who
 * does it, at least once.
 *
 * A stream has **lanes**. Entries of one lane are given out one at a time, in the order in which
 * they were added: while the first is in somebody's hands, or rests before another try, the others
 * wait behind it; they never hold back another lane. Of the lanes whose turn it is, those go first
 * whose first entry has the higher priority, and among equals the one that has waited longest.
 *
 * All who consume a stream share it: each entry is given to one of them. With it goes a **fence**,
 * higher than any this store has given out before, and a time within which the consumer must say
 * that it is still at it. If it does not, the entry is given to the next who asks, with a new
 * fence; whatever the first one still says about it is refused as `gone`.
 *
 * What is added to a stream is told on the signal topic `streamTopic(name)`.
 */
import type { Call } from './store.ts';

export interface StreamStore {
  /** Adds entries, all of them or none, each at the end of its lane. */
  append(stream: string, entries: readonly StreamEntry[], call: Call): Promise<void>;
  /**
   * Takes up to `most` entries, of as many lanes: first what others had and did not finish in time,
   * or what has rested enough.
   */
  consume(stream: string, call: ConsumeCall): Promise<Delivery[]>;
  /** Says that the consumer is still at it: it has `claimMs` from now. */
  extend(stream: string, held: readonly Held[], call: ExtendCall): Promise<HeldReply[]>;
  /** It is done: the lane's next has its turn. */
  ack(stream: string, held: readonly Held[], call: Call): Promise<HeldReply[]>;
  /** It is to be tried again, in a while; nothing of its lane is given out before that. */
  retry(stream: string, held: readonly RetryLater[], call: Call): Promise<HeldReply[]>;
  /** It is not to be tried again: it is put aside, and the lane's next has its turn. */
  bury(stream: string, held: readonly Burial[], call: Call): Promise<HeldReply[]>;
  /** One page of what was put aside, the oldest first. */
  dead(stream: string, call: DeadCall): Promise<DeadPage>;
  /** Throws away what was put aside; says how many of these there were. */
  drop(stream: string, ids: readonly string[], call: Call): Promise<number>;
  /** The names of all streams that anything was ever added to, in order. */
  names(call: Call): Promise<string[]>;
}

export interface StreamEntry {
  readonly lane: string;
  /** 1 to 10; the highest goes first. */
  readonly priority: number;
  readonly value: unknown;
}

export interface ConsumeCall extends Call {
  /** Who takes them, for those who look. */
  readonly consumer: string;
  readonly most: number;
  readonly claimMs: number;
}

export interface ExtendCall extends Call {
  readonly claimMs: number;
}

/** One entry in somebody's hands: a lane has one at most. */
export interface Held {
  readonly lane: string;
  readonly fence: number;
}

export interface Delivery extends Held {
  readonly value: unknown;
  /** The how many-th time it is given out: 1 for the first. */
  readonly tries: number;
}

export interface RetryLater extends Held {
  readonly afterMs: number;
}

export interface Burial extends Held {
  readonly reason: string;
}

/** `gone`: it is not in these hands any more. */
export type HeldReply = 'done' | 'gone';

export interface DeadCall extends Call {
  /** The `id` of the last entry of the page before. */
  readonly after?: string | undefined;
  /** Default and limit `DEAD_PAGE`. */
  readonly most?: number;
}

export interface DeadEntry {
  /** Opaque. */
  readonly id: string;
  readonly lane: string;
  readonly value: unknown;
  readonly tries: number;
  readonly reason: string;
  /** On the store's wall clock. */
  readonly atMs: number;
}

export interface DeadPage {
  readonly entries: readonly DeadEntry[];
  readonly more: boolean;
}

export const DEAD_PAGE = 100;

export const LOWEST_PRIORITY = 1;
export const HIGHEST_PRIORITY = 10;

/** Where it is said that a stream has something to give out; what is said is the stream's name. */
export function streamTopic(stream: string): string {
  return `stream:${stream}`;
}
