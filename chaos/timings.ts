/** How long things last in a run. Leases are short, so that a minute holds many of their lives. */
export const TTL_MS = 3_000;
export const EVERY_MS = 250;
/** A read takes this long at least and at most: a poll has a length, and faults find it under way. */
export const READ_MS = [20, 80] as const;

export const INSTANCES = 4;
export const TARGETS = 8;

/** After the store may have forgotten, it grants nothing for this long. */
const QUARANTINE_MS = TTL_MS + 1_000;
/** What a dead instance polled is polled by another: SC-002. */
const TAKEOVER_MS = TTL_MS + 1_000;
/** For finding the store again, the poll itself, and a machine that has other things to do. */
const MARGIN_MS = 3_000;

/** How long after a fault a target may yet go without a poll. */
export const RECOVERY_MS = {
  /** Exactly what is promised, from the death to the next poll. */
  kill: TAKEOVER_MS + EVERY_MS,
  /** It has handed over what it had before it ended. */
  stop: 1_000 + EVERY_MS,
  /** The store has forgotten nothing: a lease expires, and another instance takes it. */
  plain: TAKEOVER_MS + MARGIN_MS,
  /** It may have: quarantine comes first. */
  forgotten: QUARANTINE_MS + TAKEOVER_MS + MARGIN_MS,
} as const;

/** Longest time without a poll where nothing happens: the interval, its jitter, a move, and a busy machine. */
export const CALM_MS = 2_000;

/** A process that does nothing for this long stood still, whatever kept it. Less is within what the guard pays for. */
export const STANDSTILL_MS = 100;
