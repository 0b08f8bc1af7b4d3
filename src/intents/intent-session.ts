/**
 * A session that an intent started.
 *
 * **NEW.** Waits for a worker. **STARTING.** A worker has claimed it, and acquires its leases.
 * **RUNNING.** Its pipeline runs. **STOPPING.** No client needs it any more, or it cannot continue:
 * its pipeline is asked to end. **ENDED.** Nothing of it runs, and it never changes again. Every
 * state may lead to ENDED.
 */
import { SessionUnreadableError } from '../fleet/targets/errors.ts';
import {
  SESSION_STATES,
  type SessionState,
  type StoredSession,
} from '../store/port/intent-store.ts';
import type { Wanted } from './intent.ts';
import { isKindName } from './kind.ts';

/** Why a session has ended. `docs/intents.md` has a line for each. */
export const REASONS = [
  'R_STOPPED',
  'R_LEASE_BUSY',
  'R_NO_TUNER',
  'R_NO_SLOT',
  'R_TIME_LIMIT',
  'R_LEASE_EXPIRED',
  'R_PIPELINE_ENDED',
  'R_PIPELINE_FAILED',
  'R_WORKER_LOST',
] as const;
export type Reason = (typeof REASONS)[number];

/** The result of a session. */
export const OUTCOMES = [
  'COMPLETED',
  'STOPPED',
  'REJECTED_BUSY',
  'REJECTED_NO_TUNER',
  'REJECTED_NO_SLOT',
  'FAILED',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** The states that may follow each state. */
const NEXT: Readonly<Record<SessionState, readonly SessionState[]>> = {
  NEW: ['STARTING', 'ENDED'],
  STARTING: ['RUNNING', 'STOPPING', 'ENDED'],
  RUNNING: ['STOPPING', 'ENDED'],
  STOPPING: ['ENDED'],
  ENDED: [],
};

export function mayFollow(from: SessionState, to: SessionState): boolean {
  return NEXT[from].includes(to);
}

/** The part of a session that never changes: the work that its start asked for. */
export interface SessionBody extends Wanted {
  /** With `apiLeases`: the lease that the API process acquired, and that the worker continues. */
  readonly tenure?: { readonly key: string; readonly holder: string; readonly fence: number };
}

/** The part of a session that its worker writes. */
export interface SessionStatus {
  readonly reason: Reason | null;
  readonly outcome: Outcome | null;
  /** The instance that runs the session, or ran it last. */
  readonly worker: string | null;
  /** The slot that the session has, or had last. */
  readonly slot: string | null;
  /** How often its worker was lost; absent: never. */
  readonly losses?: number;
  /** How often its pipeline failed and was started again; absent: never. */
  readonly failures?: number;
  /** The process group of its command. */
  readonly group?: { readonly group: number; readonly startedTicks: number | null };
  /** What its pipeline reports while it runs. */
  readonly progress?: unknown;
  /** Further facts: how the pipeline ended, its last lines of output. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

export const NO_STATUS: SessionStatus = { reason: null, outcome: null, worker: null, slot: null };

export interface IntentSession extends SessionBody, SessionStatus {
  readonly id: string;
  readonly tenant: string;
  readonly state: SessionState;
  readonly revision: number;
  /** How many clients need the session. */
  readonly clients: number;
  /** In milliseconds since 1970, on the store's clock. */
  readonly createdAtMs: number;
  readonly changedAtMs: number;
}

/** Throws `SESSION_UNREADABLE` if the record is no session: another program may have written it. */
export function sessionOf(stored: StoredSession): IntentSession {
  const { id, tenant, state, revision, clients, createdAtMs, changedAtMs } = stored;
  const body = parsed(stored.body);
  const status = parsed(stored.status);
  const why =
    invalidField(body, BODY_FIELDS, 'body') ??
    invalidField(status, STATUS_FIELDS, 'status') ??
    invalidKind(body as SessionBody) ??
    invalidRecord(stored);
  if (why !== null) throw new SessionUnreadableError({ session: id, why });
  // Every request passes here, and spreading the three would take more than ten times as long.
  return Object.assign(body as SessionBody, status as SessionStatus, {
    id,
    tenant,
    state,
    revision,
    clients,
    createdAtMs,
    changedAtMs,
  });
}

type Fields = Readonly<Record<string, unknown>>;
type Rule = (value: unknown) => boolean;

const isText: Rule = (value) => typeof value === 'string';
const isTextOrNull: Rule = (value) => value === null || typeof value === 'string';
const isCount: Rule = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isAbsentOr =
  (rule: Rule): Rule =>
  (value) =>
    value === undefined || rule(value);

/** The fields that code relies on. Further fields are allowed. */
const BODY_FIELDS: Readonly<Record<string, Rule>> = {
  kind: isKindName,
  type: isText,
  target: isText,
  profile: isText,
  bucket: isText,
  startMs: isAbsentOr(isCount),
  exclusive: isAbsentOr(isText),
  tenure: isAbsentOr(
    (value) => isObject(value) && isText(value.key) && isText(value.holder) && isCount(value.fence),
  ),
};
const STATUS_FIELDS: Readonly<Record<string, Rule>> = {
  reason: isTextOrNull,
  outcome: isTextOrNull,
  worker: isTextOrNull,
  slot: isTextOrNull,
  losses: isAbsentOr(isCount),
  failures: isAbsentOr(isCount),
  // Workers kill this group: 0 would be their own group, and 1 is the system's.
  group: isAbsentOr((value) => isObject(value) && isCount(value.group) && Number(value.group) > 1),
  detail: isAbsentOr(isObject),
};
/** The latest time that a Date can have. */
const MAX_DATE_MS = 8_640_000_000_000_000;

/** Undefined if the text is no JSON. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function invalidField(
  value: unknown,
  rules: Readonly<Record<string, Rule>>,
  name: string,
): string | null {
  if (!isObject(value)) return `its ${name} is no JSON object`;
  // Assigning it would change the prototype of the session.
  if (Object.hasOwn(value, '__proto__')) return `its ${name} has a field __proto__`;
  for (const field in rules)
    if (rules[field]?.(value[field]) === false)
      return `field ${field} of its ${name} is missing or invalid`;
  return null;
}

/** The lease key of a declared kind is made from `exclusive`. */
function invalidKind({ kind, exclusive }: SessionBody): string | null {
  const isBuiltIn = kind === 'live' || kind === 'vod';
  return isBuiltIn || exclusive !== undefined ? null : 'field kind of its body is invalid';
}

function invalidRecord({ state, createdAtMs, changedAtMs }: StoredSession): string | null {
  if (!SESSION_STATES.includes(state)) return 'its state is unknown';
  const isMoment = (ms: number) => Math.abs(ms) <= MAX_DATE_MS;
  return isMoment(createdAtMs) && isMoment(changedAtMs) ? null : 'its times are invalid';
}
