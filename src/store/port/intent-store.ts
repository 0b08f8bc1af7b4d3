/**
 * The part of the port that keeps sessions: from the moment an intent is accepted until some time
 * after the session has ended. Each verb is one atomic step. A verb about several sessions is one
 * atomic step for each of them.
 *
 * A **session** is in a state: `NEW` when it is made, `ENDED` at last. Its worker sets the states
 * between. It has a **revision**, which grows by one with every change of state or status. A change
 * names the revision that its caller has seen.
 *
 * It has **keys**, made from the intent. While a session has not ended, each of its keys leads to
 * it, so that a repeated request finds it. The step that ends the session also ends its keys. There
 * may be several keys, because secrets are changed: a request has one key for each secret that its
 * sender knows, the current secret first.
 *
 * It has **clients**, which want the session. Each is listed once, however often it asks.
 *
 * It has a **kind** and a **label**, by which sessions are listed. Several sessions may have the
 * same label, of the same kind and of others.
 *
 * A session to start has an entry in the stream of its kind, `startStream(kind)`, in a lane of its
 * own, named by the session's id. So a worker reads no starts of kinds that it does not take. The
 * value is `{ session: id }`. Each change of state sends the session's id to the topic
 * `SESSION_CHANGES_TOPIC`.
 */
import type { Call } from './store.ts';

export interface IntentStore {
  /**
   * Finds the session that one of the keys leads to, the first key first; then all of the keys lead
   * to it, and the client is among its clients. Otherwise it makes one: `NEW`, with these keys and
   * this client, and its entry in the stream of starts.
   */
  start(request: StartRequest, call: Call): Promise<StartReply>;
  /**
   * Takes a client off a session; with `force`, all of them. Where none is left it is to stop: a
   * `NEW` one has `ENDED` by this very step, with `ending` as its status; any other is `STOPPING`
   * from now on. One that is stopping or has ended stays as it is.
   */
  stop(request: StopRequest, call: Call): Promise<StopReply>;
  /** Changes state and status, if the session still has this revision, and has not ended. */
  advance(id: string, change: Advance, call: Call): Promise<AdvanceReply>;
  /**
   * Puts those sessions into the stream of their kind that are `NEW` and not in it, neither waiting
   * nor taken by a worker: the stream has lost them. Returns their ids.
   */
  republish(ids: readonly string[], call: Call): Promise<string[]>;
  read(ids: readonly string[], call: Call): Promise<(StoredSession | null)[]>;
  /** One page, the latest made first. */
  list(call: SessionListCall): Promise<StoredSessionPage>;
  /**
   * Forgets up to `most` sessions that ended before a time, on the store's wall clock; says how
   * many. Their entries in the stream of starts go with them: a session that ended while it was
   * `NEW` still has one, if no worker has taken it.
   */
  prune(call: PruneCall): Promise<number>;
}

export interface StartRequest {
  /** What a new session is called. No two ever have the same. */
  readonly id: string;
  readonly tenant: string;
  /** Letters, digits, `-` and `_`. */
  readonly kind: string;
  readonly label: string;
  /** At least one. The key of the current secret comes first. */
  readonly keys: readonly string[];
  readonly client: string;
  /** What never changes of it, as JSON; the store does not look into it. */
  readonly body: string;
  /** The first status, as JSON. Later its worker sets the status. */
  readonly status: string;
  readonly priority: number;
}

export type StartReply =
  | { readonly kind: 'created' | 'replayed'; readonly session: StoredSession }
  /** There would be more than `CLIENTS_MOST`. */
  | { readonly kind: 'crowded'; readonly session: StoredSession };

export interface StopRequest {
  readonly id: string;
  /** A session of another tenant is `absent`. Null for a caller that may stop any session. */
  readonly tenant: string | null;
  readonly client: string;
  readonly force: boolean;
  /** The status of a session that ends by this step. */
  readonly ending: string;
}

export type StopReply =
  /** `changed`: its state is another now. */
  { readonly kind: 'found'; readonly session: StoredSession; readonly changed: boolean } | Absent;

export interface Advance {
  readonly ifRevision: number;
  /**
   * When that revision was written. A store that has lost its last changes gives their revisions
   * out again, at another time. Absent: any time.
   */
  readonly ifChangedAtMs?: number;
  readonly state: SessionState;
  readonly status: string;
}

export type AdvanceReply =
  | { readonly kind: 'advanced'; readonly session: StoredSession }
  /** The session has another revision, or has ended. */
  | { readonly kind: 'conflict'; readonly session: StoredSession }
  | Absent;

export interface Absent {
  readonly kind: 'absent';
}

export const SESSION_STATES = ['NEW', 'STARTING', 'RUNNING', 'STOPPING', 'ENDED'] as const;
export type SessionState = (typeof SESSION_STATES)[number];

export interface StoredSession {
  readonly id: string;
  readonly tenant: string;
  readonly kind: string;
  readonly label: string;
  readonly state: SessionState;
  readonly revision: number;
  readonly body: string;
  readonly status: string;
  /** How many. */
  readonly clients: number;
  /** On the store's wall clock. */
  readonly createdAtMs: number;
  /** When the state or the status was last changed. */
  readonly changedAtMs: number;
}

export interface SessionListCall extends Call {
  /** Only of this tenant; absent: of all. */
  readonly tenant?: string | undefined;
  /** Only of this kind; absent: of all. */
  readonly kind?: string | undefined;
  /** Only with this label; needs `kind`. */
  readonly label?: string | undefined;
  /** Only sessions that have not ended. */
  readonly isOpen?: boolean;
  /** The `cursor` of the page before. An invalid cursor begins at the beginning. */
  readonly cursor?: string | undefined;
  /** Default and limit `SESSIONS_PAGE`. */
  readonly most?: number;
}

export interface StoredSessionPage {
  readonly sessions: readonly StoredSession[];
  /**
   * Ids under which something else lies than a session; it is left out. Absent: there is none on
   * this page.
   */
  readonly foreign?: readonly string[];
  /**
   * Absent on the last page. A page with a cursor may be short, or empty: the store has read many
   * sessions that are not wanted.
   */
  readonly cursor?: string;
}

export interface PruneCall extends Call {
  readonly endedBeforeMs: number;
  readonly most: number;
}

/** Clients that one session may have. */
export const CLIENTS_MOST = 10_000;
export const SESSIONS_PAGE = 1_000;

/** The stream of starts of one kind. */
export function startStream(kind: string): string {
  return `intent:start:${kind}`;
}

export const SESSION_CHANGES_TOPIC = 'intent:sessions';
