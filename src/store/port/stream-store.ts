/**
 * The part of the port that carries work from its sender to a consumer, at least once.
 *
 * A stream has **lanes**. Entries of one lane are given out one at a time, in the order in which
 * they were added. While a consumer has the first entry, or the entry rests before another try, the
 * others of its lane wait. They never hold back another lane. The lane whose first entry has the
 * highest priority goes first, and among equals the lane that has waited longest.
 *
 * The consumers of a stream share it: each entry is given to one of them, with a **fence** higher
 * than any that this store has given out before, and a time limit. The consumer extends that time
 * while it works. Otherwise the entry is given to the next consumer, with a new fence, and the
 * store refuses later calls of the first consumer as `gone`.
 *
 * Each new entry is announced on the topic `streamTopic(name)`.
 */
import type { Call } from './store.ts';

export interface StreamStore {
  /** Adds entries, all of them or none, each at the end of its lane. */
  append(stream: string, entries: readonly StreamEntry[], call: Call): Promise<void>;
  /**
   * Takes up to `most` entries, of as many lanes: first entries that another consumer did not
   * finish in time, and entries that have rested long enough.
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
  /** One page of the buried entries, the oldest first. */
  dead(stream: string, call: DeadCall): Promise<DeadPage>;
  /** Removes buried entries. Returns how many there were. */
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
  /** The name of the consumer, for operators. */
  readonly consumer: string;
  readonly most: number;
  readonly claimMs: number;
}

export interface ExtendCall extends Call {
  readonly claimMs: number;
}

/** An entry that a consumer has: at most one of each lane. */
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

/** `gone`: the consumer does not have the entry any more. */
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

/** The topic of hints that a stream has new entries. Each message is the stream's name. */
export function streamTopic(stream: string): string {
  return `stream:${stream}`;
}
