/**
 * Every error Holdfast throws on purpose has a stable `code`, the facts as fields, and a message that says what happened and
 * what to do. Here are those of leases and stores; what is built on these has its own in the files `…-errors.ts` beside this one.
 * `docs/errors.md` has a section per code.
 */
export abstract class HoldfastError extends Error {
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** An option or argument breaks a rule. Thrown before any I/O. */
export class ConfigError extends HoldfastError {
  readonly code = 'CONFIG_INVALID';
  readonly field: string;
  readonly value: unknown;
  readonly rule: string;

  constructor(facts: { field: string; value: unknown; rule: string }) {
    super(`${facts.field} is ${shown(facts.value)}: ${facts.rule}`);
    this.field = facts.field;
    this.value = facts.value;
    this.rule = facts.rule;
  }
}

/** A bug in Holdfast: an assertion about its own state failed. */
export class InternalError extends HoldfastError {
  readonly code = 'INTERNAL';
  readonly expected: string;

  constructor(facts: { expected: string }) {
    super(
      `Holdfast expected that ${facts.expected}, and it is not so. This is a bug in Holdfast: please report it with this stack.`,
    );
    this.expected = facts.expected;
  }
}

/** Why a key could not be had. */
export type BusyReason =
  /** Another holder has it. */
  | 'held'
  /** It was revoked, and its last holder may act until the tombstone expires; or it was revoked from this instance. */
  | 'revoked'
  /** The store may have forgotten grants and makes no new ones until every forgotten one has run out. */
  | 'quarantine'
  /** This very holder had it before, and has not said yet that its work has stopped. */
  | 'unsettled';

/** Why a key could not be had, where a holder stands in the way. */
export type HeldReason = Exclude<BusyReason, 'quarantine'>;

export interface HeldFacts {
  key: string;
  holder: string;
  fence: number;
  expiresInMs: number;
  reason: HeldReason;
  waitedMs: number;
}

/** A store in quarantine names no holder: it may have forgotten that there is one. */
export interface QuarantineFacts {
  key: string;
  /** How long the store makes no new grants yet. */
  expiresInMs: number;
  waitedMs: number;
}

/** The lease is not to be had now. `acquire` returns this as a result; `withLease` and `acquireAll` throw it. */
export class LeaseHeldError extends HoldfastError {
  readonly code = 'LEASE_HELD';
  readonly key: string;
  readonly holder: string;
  readonly fence: number;
  readonly expiresInMs: number;
  readonly reason: HeldReason;
  readonly waitedMs: number;

  constructor(facts: HeldFacts) {
    super(`lease '${facts.key}' is not to be had: ${whyBusy(facts)}. ${busyAdvice(facts)}`);
    this.key = facts.key;
    this.holder = facts.holder;
    this.fence = facts.fence;
    this.expiresInMs = facts.expiresInMs;
    this.reason = facts.reason;
    this.waitedMs = facts.waitedMs;
  }
}

function whyBusy(facts: HeldFacts): string {
  const left = Number.isFinite(facts.expiresInMs)
    ? `for ${Math.ceil(facts.expiresInMs)} ms more`
    : 'without expiry';
  if (facts.reason === 'revoked') return `it was revoked, and is not granted here ${left}`;
  if (facts.reason === 'unsettled')
    return `${facts.holder} has not released its earlier tenure of it yet`;
  return `held by ${facts.holder} with fence ${facts.fence}, ${left}`;
}

function busyAdvice(facts: HeldFacts): string {
  if (facts.reason === 'unsettled')
    return 'Call release() on the earlier lease once its work has stopped.';
  const waited = facts.waitedMs > 0 ? `Waited ${Math.round(facts.waitedMs)} ms. ` : '';
  return `${waited}Pass a longer wait to be woken when it is free.`;
}

/** The store may have forgotten leases that are still held, and grants nothing new until the last of them has expired. */
export class StoreQuarantinedError extends HoldfastError {
  readonly code = 'STORE_QUARANTINED';
  /** What could not be granted: a key, or a pool. */
  readonly key: string;
  readonly expiresInMs: number;
  readonly waitedMs: number;

  constructor(facts: QuarantineFacts) {
    const waited = facts.waitedMs > 0 ? ` Waited ${Math.round(facts.waitedMs)} ms.` : '';
    super(
      `could not acquire '${facts.key}': the store is in quarantine for ${Math.ceil(facts.expiresInMs)} ms more. ` +
        'It was just started, or has lost data, and may have forgotten leases that are still held.' +
        `${waited} Pass a longer wait, or try again after that time.`,
    );
    this.key = facts.key;
    this.expiresInMs = facts.expiresInMs;
    this.waitedMs = facts.waitedMs;
  }
}

/** Why a lease ended against its holder's will. */
export type LossReason =
  /** No renewal was confirmed before the local deadline. */
  | 'expired'
  /** The store names another holder or fence. */
  | 'taken_over'
  /** An operator revoked it. */
  | 'revoked'
  /** The store can not tell any more who holds it: a `STORE_UNSUITABLE` says why. */
  | 'unsuitable';

export interface LossFacts {
  key: string;
  holder: string;
  fence: number;
  reason: LossReason | 'released';
  heldForMs: number;
}

/** The lease is over. Also the `reason` of the lease's `signal`. */
export class LeaseLostError extends HoldfastError {
  readonly code = 'LEASE_LOST';
  readonly key: string;
  readonly holder: string;
  readonly fence: number;
  readonly reason: LossReason | 'released';
  readonly heldForMs: number;

  constructor(facts: LossFacts, options?: ErrorOptions) {
    super(
      `lease '${facts.key}' (fence ${facts.fence}) is over: ${facts.reason} after ${Math.round(facts.heldForMs)} ms. ` +
        'Stop the work it covered and acquire again; whatever is still on its way carries the old fence.',
      options,
    );
    this.key = facts.key;
    this.holder = facts.holder;
    this.fence = facts.fence;
    this.reason = facts.reason;
    this.heldForMs = facts.heldForMs;
  }
}

/** The wall clock jumped past the deadline: the host may have slept through it. A renewal is on its way. */
export class LeaseUncertainError extends HoldfastError {
  readonly code = 'LEASE_UNCERTAIN';
  readonly key: string;
  readonly fence: number;
  readonly jumpMs: number;

  constructor(facts: { key: string; fence: number; jumpMs: number }) {
    super(
      `lease '${facts.key}' (fence ${facts.fence}) can not be vouched for: the wall clock jumped by ` +
        `${Math.round(facts.jumpMs)} ms since it was last confirmed. A renewal has been sent; try again in a moment.`,
    );
    this.key = facts.key;
    this.fence = facts.fence;
    this.jumpMs = facts.jumpMs;
  }
}

/** A write came with an older fence than the resource has seen. */
export class FenceStaleError extends HoldfastError {
  readonly code = 'FENCE_STALE';
  readonly resource: string;
  readonly fence: number;
  readonly seen: number;

  constructor(facts: { resource: string; fence: number; seen: number }) {
    super(
      `write to '${facts.resource}' with fence ${facts.fence} refused: it has seen fence ${facts.seen}. ` +
        'A later holder is at work; stop. To write again, acquire with fenceFloor set to the fence seen.',
    );
    this.resource = facts.resource;
    this.fence = facts.fence;
    this.seen = facts.seen;
  }
}

/** A write was meant for another revision of the record than the one that is there. */
export class RevisionConflictError extends HoldfastError {
  readonly code = 'REVISION_CONFLICT';
  readonly resource: string;
  readonly expected: number;
  readonly found: number;

  constructor(facts: { resource: string; expected: number; found: number }) {
    const expected = facts.expected === 0 ? 'no record' : `revision ${facts.expected}`;
    const found = facts.found === 0 ? 'is none' : `is revision ${facts.found}`;
    super(
      `write to '${facts.resource}' refused: it expects ${expected}, but there ${found}. ` +
        'Read it again, and write what follows from that.',
    );
    this.resource = facts.resource;
    this.expected = facts.expected;
    this.found = facts.found;
  }
}

/** The store could not be asked: nothing was sent, so nothing happened there. */
export class StoreUnreachableError extends HoldfastError {
  readonly code = 'STORE_UNREACHABLE';
  readonly store: string;
  readonly operation: string;

  constructor(facts: { store: string; operation: string; why: string }, options?: ErrorOptions) {
    // Once it has been opened, connections are made anew by themselves; an `open` that failed is over.
    const next =
      facts.operation === 'connect' ? '.' : '; a Holdfast that is open goes on trying by itself.';
    super(
      `store ${facts.store} is unreachable (${facts.operation}): ${facts.why}. ` +
        `Check that it runs and that the address is right${next}`,
      options,
    );
    this.store = facts.store;
    this.operation = facts.operation;
  }
}

/** The request was sent and no answer came in time: it may have happened, or may happen yet. */
export class OutcomeUnknownError extends HoldfastError {
  readonly code = 'OUTCOME_UNKNOWN';
  readonly store: string;
  readonly operation: string;
  readonly afterMs: number;

  constructor(
    facts: { store: string; operation: string; afterMs: number; why: string },
    options?: ErrorOptions,
  ) {
    super(
      `${facts.operation} on ${facts.store}: no answer after ${Math.round(facts.afterMs)} ms (${facts.why}). ` +
        'It counts as not held; what the store may have granted is given back as soon as it answers.',
      options,
    );
    this.store = facts.store;
    this.operation = facts.operation;
    this.afterMs = facts.afterMs;
  }
}

/** The store answered with a refusal of its own: nothing happened. */
export class StoreRefusedError extends HoldfastError {
  readonly code = 'STORE_REFUSED';
  readonly store: string;
  readonly operation: string;
  readonly reply: string;

  constructor(facts: { store: string; operation: string; reply: string; advice: string }) {
    super(`${facts.store} refused ${facts.operation}: ${facts.reply}. ${facts.advice}`);
    this.store = facts.store;
    this.operation = facts.operation;
    this.reply = facts.reply;
  }
}

/** Something that is not Holdfast's lies under a key Holdfast needs. */
export class KeyForeignError extends HoldfastError {
  readonly code = 'KEY_FOREIGN';
  readonly key: string;
  readonly found: string;

  constructor(facts: { key: string; found: string }) {
    super(
      `under '${facts.key}' the store has something that is not Holdfast's: ${facts.found}. ` +
        'Nothing was changed. Remove it, or give Holdfast a prefix of its own.',
    );
    this.key = facts.key;
    this.found = facts.found;
  }
}

/** A value has more bytes than its kind may have. Thrown before any I/O. */
export class ValueTooLargeError extends HoldfastError {
  readonly code = 'VALUE_TOO_LARGE';
  /** What it is: a record, a heartbeat, an action. */
  readonly kind: string;
  /** Which one. */
  readonly id: string;
  readonly bytes: number;
  readonly mostBytes: number;

  constructor(facts: { kind: string; id: string; bytes: number; mostBytes: number }) {
    super(
      `${facts.kind} '${facts.id}' has ${facts.bytes} bytes as JSON, and a ${facts.kind} has ${facts.mostBytes} at most. ` +
        'Nothing was sent. Keep the bulk of it elsewhere, and a reference to it here.',
    );
    this.kind = facts.kind;
    this.id = facts.id;
    this.bytes = facts.bytes;
    this.mostBytes = facts.mostBytes;
  }
}

/** The store works but can not keep the promises leases need. */
export class StoreUnsuitableError extends HoldfastError {
  readonly code = 'STORE_UNSUITABLE';
  readonly store: string;
  readonly problems: readonly string[];
  /** Another process may be granted what this one holds: its leases end at once, not at their deadlines. */
  readonly voidsLeases: boolean;

  constructor(facts: { store: string; problems: readonly string[]; voidsLeases?: boolean }) {
    super(`store ${facts.store} is not fit for leases: ${facts.problems.join(' ')}`);
    this.store = facts.store;
    this.problems = facts.problems;
    this.voidsLeases = facts.voidsLeases ?? false;
  }
}

/** The Holdfast, or the store under it, has been closed. */
export class ClosedError extends HoldfastError {
  readonly code = 'CLOSED';

  constructor(operation: string) {
    super(`${operation}: this Holdfast has been closed. Open another one.`);
  }
}

/** More requests wait for the store than the limit allows. */
export class OverloadedError extends HoldfastError {
  readonly code = 'OVERLOADED';
  readonly limit: number;

  constructor(limit: number) {
    super(
      `more than ${limit} lease requests are waiting to be sent in one turn. Spread them out, or use acquireAll.`,
    );
    this.limit = limit;
  }
}

/** A value as an error message may show it: short, on one line, and of a recognisable type. */
function shown(value: unknown): string {
  if (typeof value === 'string') {
    const short = value.length > 40 ? `${value.slice(0, 40)}…` : value;
    return value.length > 40
      ? `${JSON.stringify(short)} (${value.length} characters)`
      : JSON.stringify(short);
  }
  if (value instanceof Promise) return 'a promise';
  if (typeof value === 'object' && value !== null)
    return Array.isArray(value) ? 'an array' : 'an object';
  return typeof value === 'function' ? 'a function' : String(value);
}
