/**
 * A session that came from an intent, as its worker, its clients and those who look see it.
 *
 * `NEW` it waits for a worker. `STARTING`: a worker has it, and takes what it needs. `RUNNING`: its pipeline runs. `STOPPING`: nobody needs it
 * any more, or it can not go on; its pipeline is told to end. `ENDED`: nothing of it runs, and it never changes again. From every state it may end.
 */
import type { SessionState, StoredSession } from '../store/intent-store.ts';
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

export function sessionOf(stored: StoredSession): IntentSession {
  const { id, tenant, state, revision, clients, createdAtMs, changedAtMs } = stored;
  // On the way of every request: spread together, the three take more than ten times as long.
  return Object.assign(
    JSON.parse(stored.body) as SessionBody,
    JSON.parse(stored.status) as SessionStatus,
    { id, tenant, state, revision, clients, createdAtMs, changedAtMs },
  );
}
