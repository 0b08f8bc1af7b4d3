/**
 * A session that came from an intent, as its worker, its clients and those who look see it.
 *
 * `NEW` it waits for a worker. `STARTING`: a worker has it, and takes what it needs. `RUNNING`: its pipeline runs. `STOPPING`: nobody needs it
 * any more, or it can not go on; its pipeline is told to end. `ENDED`: nothing of it runs, and it never changes again. From every state it may end.
 */
import { SessionUnreadableError } from '../fleet/targets/errors.ts';
import {
  SESSION_STATES,
  type SessionState,
  type StoredSession,
} from '../store/port/intent-store.ts';
import type { Wanted } from './intent.ts';

/** Why a session has ended. `docs/intents.md` has a line for each. */
export const REASONS = [
  ...(['R_STOPPED', 'R_LEASE_BUSY', 'R_NO_TUNER', 'R_LEASE_EXPIRED'] as const),
  ...(['R_PIPELINE_ENDED', 'R_PIPELINE_FAILED', 'R_WORKER_LOST'] as const),
] as const;
export type Reason = (typeof REASONS)[number];

/** What came of it, in a word. */
export const OUTCOMES = [
  'COMPLETED',
  'STOPPED',
  'REJECTED_BUSY',
  'REJECTED_NO_TUNER',
  'FAILED',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** What may come next. */
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

/** What never changes of a session: what was asked for. */
export interface SessionBody extends Wanted {
  /** The tenure under which the interface has taken the lease of the channel, where it does that; the worker goes on with it. */
  readonly tenure?: { readonly key: string; readonly holder: string; readonly fence: number };
}

/** What its worker says of it. */
export interface SessionStatus {
  readonly reason: Reason | null;
  readonly outcome: Outcome | null;
  /** The instance that runs it, or ran it last. */
  readonly worker: string | null;
  /** The slot it has, or had last. */
  readonly slot: string | null;
  /** How often a worker was lost with it; absent: never. */
  readonly losses?: number;
  /** The process group that runs for it, or ran last. */
  readonly group?: { readonly group: number; readonly startedTicks: number | null };
  /** What its pipeline says of itself while it runs. */
  readonly progress?: unknown;
  /** What else there is to know: how a pipeline ended, its last lines. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

export const NO_STATUS: SessionStatus = { reason: null, outcome: null, worker: null, slot: null };

export interface IntentSession extends SessionBody, SessionStatus {
  readonly id: string;
  readonly tenant: string;
  readonly state: SessionState;
  readonly revision: number;
  /** How many clients need it. */
  readonly clients: number;
  /** In milliseconds since 1970, on the store's clock. */
  readonly createdAtMs: number;
  readonly changedAtMs: number;
}

/** Throws `SESSION_UNREADABLE` for what is no session: another program may have written it. */
export function sessionOf(stored: StoredSession): IntentSession {
  const { id, tenant, state, revision, clients, createdAtMs, changedAtMs } = stored;
  const body = parsed(stored.body);
  const status = parsed(stored.status);
  const why =
    flawOf(body, BODY_FIELDS, 'body') ?? flawOf(status, STATUS_FIELDS, 'status') ?? flawIn(stored);
  if (why !== null) throw new SessionUnreadableError({ session: id, why });
  // On the way of every request: spread together, the three take more than ten times as long.
  return Object.assign(body as SessionBody, status as SessionStatus, {
    ...{ id, tenant, state, revision, clients, createdAtMs, changedAtMs },
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

/** What code relies on; whatever else is there is nobody's harm. */
const BODY_FIELDS: Readonly<Record<string, Rule>> = {
  kind: (value) => value === 'live' || value === 'vod',
  ...{ type: isText, target: isText, profile: isText, bucket: isText },
  startMs: isAbsentOr(isCount),
  tenure: isAbsentOr(
    (value) => isObject(value) && isText(value.key) && isText(value.holder) && isCount(value.fence),
  ),
};
const STATUS_FIELDS: Readonly<Record<string, Rule>> = {
  ...{ reason: isTextOrNull, outcome: isTextOrNull, worker: isTextOrNull, slot: isTextOrNull },
  losses: isAbsentOr(isCount),
  // It is killed by this number: 0 would be the caller's own group, and 1 is the system's.
  group: isAbsentOr((value) => isObject(value) && isCount(value.group) && Number(value.group) > 1),
  detail: isAbsentOr(isObject),
};
/** The latest that a date can say. */
const LATEST_MS = 8_640_000_000_000_000;

/** Undefined for what is no JSON. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function flawOf(
  value: unknown,
  rules: Readonly<Record<string, Rule>>,
  name: string,
): string | null {
  if (!isObject(value)) return `its ${name} is no JSON object`;
  // Assigned, it would change what the session inherits.
  if (Object.hasOwn(value, '__proto__')) return `its ${name} has a field __proto__`;
  for (const field in rules)
    if (rules[field]?.(value[field]) === false) return `its ${name} has no sensible ${field}`;
  return null;
}

function flawIn({ state, createdAtMs, changedAtMs }: StoredSession): string | null {
  if (!SESSION_STATES.includes(state)) return 'it is in no known state';
  const isMoment = (ms: number) => Math.abs(ms) <= LATEST_MS;
  return isMoment(createdAtMs) && isMoment(changedAtMs) ? null : 'its times are no times';
}
