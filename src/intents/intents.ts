/** Accepts what clients want to have started and stopped. It never holds what a worker should hold. */

import type { SessionState } from '../store/intent-store.ts';
import type { Intent, Requester } from './intent.ts';
import type { IntentSession } from './intent-session.ts';

export interface Accepted {
  readonly session: IntentSession;
  /** A start that found the session there already; a stop that changed nothing. */
  readonly isReplay: boolean;
}

export interface SessionQuery {
  /** Null: of all tenants. */
  readonly tenant: string | null;
  readonly kind?: 'live' | 'vod';
  readonly states?: readonly SessionState[];
  readonly cursor?: string;
  /** Default 100, at most 1,000. */
  readonly most?: number;
}

export interface SessionPage {
  /** The latest made first. */
  readonly sessions: readonly IntentSession[];
  /** Absent on the last page. A page may be short, or empty, and yet not the last. */
  readonly cursor?: string;
}

export class Intents {
  /**
   * Accepts an intent. Throws `CONFIG_INVALID` where it makes no sense, `SESSION_NOT_FOUND` for a stop of what there is not,
   * `SESSION_CROWDED` where too many share it, `LEASE_HELD` where the interface takes leases and another has it, and what the
   * store throws: after `OUTCOME_UNKNOWN` it may have been accepted, and asking again is safe.
   */
  declare submit: (intent: Intent, by: Requester) => Promise<Accepted>;
  /** Null where there is none for this tenant. */
  declare session: (id: string, tenant: string | null) => Promise<IntentSession | null>;
  declare sessions: (query: SessionQuery) => Promise<SessionPage>;
  /** Looks from now on, from time to time, for what the stream of starts has lost, and forgets what ended long ago. */
  declare start: () => void;
  declare stop: () => Promise<void>;
}
