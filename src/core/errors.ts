import { LOSS_TEXTS, type LossReason } from './loss-reason.ts';
import { spanOf } from './time-text.ts';

export type { LossReason } from './loss-reason.ts';

/**
 * Every error that Holdfast throws on purpose has a stable `code`, its facts as fields, and a
 * message that says what happened and what to do. Here are the errors of leases and stores; every
 * subject has its own in its `errors.ts`. `docs/errors.md` has a section per code.
 */
export abstract class HoldfastError extends Error {
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * What an error means to a caller. The exit code, the HTTP status and whether a retry can help
 * follow from it.
 */
export type ErrorKind =
  /** The request itself is wrong. */
  | 'invalid'
  | 'not-found'
  /** The request does not fit the present state. */
  | 'conflict'
  /** Another holder has the key, or every slot. */
  | 'busy'
  /** The store grants nothing for a while, because it may have forgotten grants. */
  | 'quarantined'
  /** The store did not do it. */
  | 'unavailable'
  /** This Holdfast has been closed. */
  | 'closed'
  /** The store may have done it. */
  | 'unknown-outcome'
  /** The store cannot keep what leases promise. */
  | 'unsuitable'
  /** The lease that covered the work is over. */
  | 'lost'
  /** A bug, or an error of the user's own code. */
  | 'internal';

/** A class of errors as `defineError` makes it. */
export interface ErrorClass<C extends string, F extends object> {
  readonly kind: ErrorKind;
  new (facts: F, options?: ErrorOptions): HoldfastError & Readonly<F> & { readonly code: C };
}

/**
 * An error class from its code, its kind and the message that its facts make. The facts become
 * fields.
 */
export function defineError<C extends string>(code: C, kind: ErrorKind) {
  return <F extends object>(message: (facts: F) => string): ErrorClass<C, F> => {
    class DefinedError extends HoldfastError {
      static readonly kind = kind;
      readonly code = code;

      constructor(facts: F, options?: ErrorOptions) {
        super(message(facts), options);
        Object.assign(this, facts);
      }
    }
    return DefinedError as typeof DefinedError & ErrorClass<C, F>;
  };
}

export function kindOf(error: unknown): ErrorKind {
  if (!(error instanceof HoldfastError)) return 'internal';
  return (error.constructor as Partial<ErrorClass<string, object>>).kind ?? 'internal';
}

const TRANSIENT: ReadonlySet<ErrorKind> = new Set(['unavailable', 'unknown-outcome', 'unsuitable']);

/** Whether the same request may succeed later, unchanged. */
export function isTransient(error: unknown): boolean {
  return TRANSIENT.has(kindOf(error));
}

/** An option or argument breaks a rule. Thrown before any I/O. */
export class ConfigError extends defineError(
  'CONFIG_INVALID',
  'invalid',
)<{
  field: string;
  value: unknown;
  rule: string;
}>(({ field, value, rule }) => `${field} is ${shown(value)}: ${rule}`) {}

/** A bug in Holdfast: an assertion about its own state failed. */
export class InternalError extends defineError(
  'INTERNAL',
  'internal',
)<{ expected: string }>(
  ({ expected }) =>
    `Holdfast expected that ${expected}, but that was not the case. This is a bug in Holdfast: please report it with this stack.`,
) {}

/** Why a key could not be acquired. */
export type BusyReason =
  /** Another holder has it. */
  | 'held'
  /**
   * It was revoked, and its last holder may act until the tombstone expires; or it was revoked from
   * this instance.
   */
  | 'revoked'
  /**
   * The store may have forgotten grants, and makes no new ones until every forgotten one has
   * expired.
   */
  | 'quarantine'
  /** The same holder had it before, and its earlier work has not stopped yet. */
  | 'unsettled';

/** Why a key could not be acquired, where a holder stands in the way. */
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
  /** What could not be granted: a key, or a pool. */
  key: string;
  /** How long the store makes no new grants yet. */
  expiresInMs: number;
  waitedMs: number;
}

/**
 * Another holder has the lease. `acquire` returns this as a result; `withLease` and `acquireAll`
 * throw it.
 */
export class LeaseHeldError extends defineError(
  'LEASE_HELD',
  'busy',
)<HeldFacts>(
  (facts) => `could not acquire lease '${facts.key}': ${whyBusy(facts)}. ${busyAdvice(facts)}`,
) {}

function whyBusy({ reason, holder, fence, expiresInMs }: HeldFacts): string {
  const doesExpire = Number.isFinite(expiresInMs);
  const left = doesExpire ? `for ${spanOf(expiresInMs)} more` : 'until it is cleared';
  if (reason === 'revoked') return `it was revoked, and stays blocked ${left}`;
  if (reason === 'unsettled') return `${holder} has not released its earlier lease on it yet`;
  const expires = doesExpire ? `expires in ${spanOf(expiresInMs)}` : 'without expiry';
  return `${holder} holds it with fence ${fence} (${expires})`;
}

function busyAdvice({ reason, waitedMs }: HeldFacts): string {
  if (reason === 'unsettled')
    return 'Call release() on the earlier lease once its work has stopped.';
  const waited = waitedMs > 0 ? `Waited ${spanOf(waitedMs)}. ` : '';
  return `${waited}Pass ${waitedMs > 0 ? 'a longer wait' : '{ wait }'} to wait for it.`;
}

/**
 * The store may have forgotten leases that are still held, and grants nothing new until the last of
 * them has expired.
 */
export class StoreQuarantinedError extends defineError(
  'STORE_QUARANTINED',
  'quarantined',
)<QuarantineFacts>(({ key, expiresInMs, waitedMs }) => {
  const waited = waitedMs > 0 ? ` Waited ${spanOf(waitedMs)}.` : '';
  return (
    `could not acquire '${key}': the store is in quarantine for ${spanOf(expiresInMs)} more. ` +
    'It was just started, or has lost data, and may have forgotten leases that are still held.' +
    `${waited} Pass a longer wait, or try again after that time.`
  );
}) {}

export interface LossFacts {
  key: string;
  holder: string;
  fence: number;
  reason: LossReason | 'released';
  heldForMs: number;
}

/** The lease is over. Also the `reason` of the lease's `signal`. */
export class LeaseLostError extends defineError(
  'LEASE_LOST',
  'lost',
)<LossFacts>(
  ({ key, fence, reason, heldForMs }) =>
    `lease '${key}' (fence ${fence}) is over after ${spanOf(heldForMs)}: ${LOSS_TEXTS[reason]}. ` +
    'Stop the work it covered, and acquire it again. Writes still in flight carry the old fence.',
) {}

/**
 * A request over HTTP names a holder and a fence that the store does not, or no longer, name.
 * `current` has the key now; null if it is free or blocked.
 */
export class LeaseNotHeldError extends defineError(
  'LEASE_NOT_HELD',
  'lost',
)<{
  key: string;
  holder: string;
  fence: number;
  current: string | null;
  currentFence: number;
}>(
  ({ key, holder, fence, current, currentFence }) =>
    `'${holder}' does not hold lease '${key}' with fence ${fence}: ` +
    `${current === null ? 'it is free or blocked' : `'${current}' holds it`}, ` +
    `and its last fence is ${currentFence}. Stop the work under it, and acquire it again.`,
) {}

/**
 * The wall clock jumped past the deadline: the host may have slept through it. A renewal has been
 * sent.
 */
export class LeaseUncertainError extends defineError(
  'LEASE_UNCERTAIN',
  'busy',
)<{
  key: string;
  fence: number;
  jumpMs: number;
}>(
  ({ key, fence, jumpMs }) =>
    `lease '${key}' (fence ${fence}) is uncertain: the wall clock jumped by ${spanOf(jumpMs)} ` +
    'since the last renewal. A renewal has been sent; try again in a moment.',
) {}

/** A write came with an older fence than the resource has seen. */
export class FenceStaleError extends defineError(
  'FENCE_STALE',
  'conflict',
)<{
  resource: string;
  fence: number;
  seen: number;
  /** Of `guard`: who holds the lease now; null if it is free. Absent for other resources. */
  holder?: string | null;
}>(({ resource, fence, seen, holder }) => {
  if (holder !== undefined) {
    const now = holder === null ? 'no holder has it now' : `${holder} holds it now`;
    return (
      `transaction guarded by lease '${resource}' with fence ${fence} refused: the last fence granted is ${seen}, and ${now}. ` +
      'Roll back and stop. To continue, acquire the lease again.'
    );
  }
  return (
    `write to '${resource}' with fence ${fence} refused: it has seen fence ${seen}. ` +
    'A later holder is at work: stop. To write again, acquire with fenceFloor set to the fence seen.'
  );
}) {}

/** The store cannot guard a transaction: it is not in the database that has the user's rows. */
export class GuardNotOfferedError extends defineError(
  'GUARD_NOT_OFFERED',
  'invalid',
)<{
  store: string;
  key: string;
}>(
  ({ store, key }) =>
    `store ${store} cannot guard a transaction with lease '${key}': only PostgreSQL has the lease and your rows in one database. ` +
    "Write with the lease's fence instead (fenceSql, FENCE_GUARD_LUA, FenceGate), or open('postgres://…').",
) {}

/** A write was meant for another revision of the record than the one that is there. */
export class RevisionConflictError extends defineError(
  'REVISION_CONFLICT',
  'conflict',
)<{
  resource: string;
  expected: number;
  found: number;
}>(({ resource, expected, found }) => {
  const wanted = expected === 0 ? 'no record' : `revision ${expected}`;
  const current = found === 0 ? 'is none' : `is revision ${found}`;
  return (
    `write to '${resource}' refused: it expects ${wanted}, but there ${current}. ` +
    'Read it again, and write what follows from that.'
  );
}) {}

/** The store could not be asked: nothing was sent, so nothing happened there. */
const CHECK_THE_ADDRESS = 'Check that it runs and that the address is right';

export class StoreUnreachableError extends defineError(
  'STORE_UNREACHABLE',
  'unavailable',
)<{
  store: string;
  operation: string;
  why: string;
  /** What to do, where it is not to check the server and its address. */
  advice?: string;
}>(({ store, operation, why, advice = CHECK_THE_ADDRESS }) => {
  // An open Holdfast reconnects; an `open` that failed does not try again.
  const next =
    operation === 'connect' ? '.' : '; a Holdfast that is open keeps trying automatically.';
  return `store ${store} is unreachable (${operation}): ${why}. ${advice}${next}`;
}) {}

/** The request was sent and no answer came in time: it may have happened, or may happen yet. */
export class OutcomeUnknownError extends defineError(
  'OUTCOME_UNKNOWN',
  'unknown-outcome',
)<{
  store: string;
  operation: string;
  afterMs: number;
  why: string;
}>(
  ({ store, operation, afterMs, why }) =>
    `${operation} on ${store}: no answer after ${spanOf(afterMs)} (${why}). ` +
    'It counts as not held. If the store granted it, Holdfast releases it as soon as the store answers.',
) {}

/** The store answered with a refusal of its own: nothing happened. */
export class StoreRefusedError extends defineError(
  'STORE_REFUSED',
  'unavailable',
)<{
  store: string;
  operation: string;
  reply: string;
  advice: string;
}>(({ store, operation, reply, advice }) => `${store} refused ${operation}: ${reply}. ${advice}`) {}

/** A non-Holdfast program has written under a key that Holdfast needs. */
export class KeyForeignError extends defineError(
  'KEY_FOREIGN',
  'conflict',
)<{
  key: string;
  found: string;
}>(
  ({ key, found }) =>
    `key '${key}' in the store was not written by Holdfast: ${found}. ` +
    'Nothing was changed. Remove it, or give Holdfast a prefix of its own.',
) {}

/** A value has more bytes than its kind may have. Thrown before any I/O. */
export class ValueTooLargeError extends defineError(
  'VALUE_TOO_LARGE',
  'invalid',
)<{
  /** The kind of the value: a record, a heartbeat, an action. */
  kind: string;
  /** Which one. */
  id: string;
  bytes: number;
  mostBytes: number;
}>(
  ({ kind, id, bytes, mostBytes }) =>
    `${kind} '${id}' has ${bytes} bytes as JSON; a ${kind} may have at most ${mostBytes}. ` +
    'Nothing was sent. Store the bulk of it elsewhere, and a reference to it here.',
) {}

/** The store works, but cannot keep the promises that leases need. */
export class StoreUnsuitableError extends HoldfastError {
  static readonly kind: ErrorKind = 'unsuitable';
  readonly code = 'STORE_UNSUITABLE';
  readonly store: string;
  readonly problems: readonly string[];
  /**
   * Another process may be granted what this one holds: its leases end at once, not at their
   * deadlines.
   */
  readonly voidsLeases: boolean;

  constructor(facts: { store: string; problems: readonly string[]; voidsLeases?: boolean }) {
    super(`store ${facts.store} is not fit for leases: ${facts.problems.join(' ')}`);
    this.store = facts.store;
    this.problems = facts.problems;
    this.voidsLeases = facts.voidsLeases ?? false;
  }
}

/** The store offers leases, members and signals alone, and the caller needs more. */
export class StoreLacksWorkError extends defineError(
  'STORE_LACKS_WORK',
  'invalid',
)<{
  store: string;
  /** The verb of the port that the store does not offer, as `part.verb`. */
  verb: string;
}>(
  ({ store, verb }) =>
    `the store '${store}' that was passed to open() keeps leases, members and signals only: ${verb} is not available. ` +
    'For records, the log, streams, workflows and intents open PostgreSQL, Redis, SQLite or memory.',
) {}

/** The Holdfast, or the store under it, has been closed. */
export class ClosedError extends defineError(
  'CLOSED',
  'closed',
)<{ operation: string }>(
  ({ operation }) => `${operation}: this Holdfast has been closed. Open another one.`,
) {}

/** More requests wait for the store than the limit allows. */
export class OverloadedError extends defineError(
  'OVERLOADED',
  'busy',
)<{ limit: number }>(
  ({ limit }) =>
    `this process asked for more than ${limit} leases in one turn of the event loop: this request was not sent. Ask in smaller groups, and await each.`,
) {}

/** A value as an error message may show it: short, on one line, and of a recognisable type. */
export function shown(value: unknown): string {
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
