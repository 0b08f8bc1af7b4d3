/**
 * Requests and responses of the API. The server's schemas are the same, which
 * `test/client/portability.test.ts` checks. They are written out here because a client must not
 * import the server.
 */

export type SessionState = 'NEW' | 'STARTING' | 'RUNNING' | 'STOPPING' | 'ENDED';

export interface StartRequest {
  /** The channel to run, by your name for it. */
  readonly serviceRef: string;
  /** The worker profile that runs it; default `default`. */
  readonly profile?: string | undefined;
  /** The client that needs it; default the token's id. A session stops when no client needs it. */
  readonly clientId?: string | undefined;
}

export interface StartVodRequest {
  readonly recordingId: string;
  readonly profile?: string | undefined;
  /** Position in the recording; default 0. Starts within the same second share a session. */
  readonly startMs?: number | undefined;
  readonly clientId?: string | undefined;
}

/** A start of a declared kind. */
export interface StartKindRequest {
  readonly kind: string;
  /** Your name for the work. Default: what the kind makes of the params, or a new id. */
  readonly key?: string | undefined;
  /** What the work is to do. The kind has a schema for it. */
  readonly params?: Readonly<Record<string, unknown>> | undefined;
  readonly clientId?: string | undefined;
}

export interface StopRequest {
  readonly clientId?: string | undefined;
  /** Stops it even if other clients need it. Needs the scope `v3:admin`. */
  readonly force?: boolean | undefined;
}

/** The response to an intent: it is stored. The session shows the outcome. */
export interface AcceptedIntent {
  readonly sessionId: string;
  /** `live`, `vod`, or a declared kind. */
  readonly kind: string;
  /** The key of the session: its channel or recording, or what its start names. */
  readonly key: string;
  readonly state: SessionState;
  /** The session existed already (start), or its state did not change (stop). */
  readonly replayed: boolean;
  /** How many clients need the session. */
  readonly clients: number;
  readonly links: { readonly self: string };
}

/** The response to a stop by key. */
export interface StoppedKey {
  readonly kind: string;
  readonly key: string;
  readonly sessions: readonly AcceptedIntent[];
}

/** The answer to one start of a batch. */
export type BatchResult =
  | { readonly status: 202; readonly accepted: AcceptedIntent }
  | { readonly status: number; readonly problem: Readonly<Record<string, unknown>> };

/** A session that an intent started. */
export interface RunFacts {
  readonly id: string;
  readonly tenant: string;
  readonly key: string;
  readonly state: SessionState;
  /** Why it ended. */
  readonly reason: string | null;
  readonly outcome: string | null;
  readonly worker: string | null;
  readonly slot: string | null;
  readonly clients: number;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly changedAt: string;
  readonly revision: number;
  /** How often its worker was lost. */
  readonly losses: number;
  /** How often it failed and was tried again. */
  readonly failures: number;
  /** What its pipeline reports while it runs. */
  readonly progress?: unknown;
  /** How its pipeline ended: exit code, running time, last lines. */
  readonly detail?: Readonly<Record<string, unknown>> | undefined;
}

export interface LiveSession extends RunFacts {
  readonly kind: 'live';
  readonly serviceRef: string;
  readonly profile: string;
}

export interface VodSession extends RunFacts {
  readonly kind: 'vod';
  readonly recordingId: string;
  readonly startMs: number;
  readonly profile: string;
}

/** A session of a declared kind: one with `params`. */
export interface DeclaredSession extends RunFacts {
  readonly kind: string;
  readonly params: unknown;
}

export type RunSession = LiveSession | VodSession | DeclaredSession;

/** A target as `GET /api/v3/targets` lists it. */
export interface Target {
  readonly id: string;
  readonly url?: string | undefined;
  readonly everyMs?: number | undefined;
  /** How long one poll may take; default the poller's. */
  readonly timeoutMs?: number | undefined;
  /** The name of its command; default the runner's. */
  readonly command?: string | undefined;
  readonly isPaused: boolean;
  readonly revision: number;
}

/** A target, in the form of `/api/v3/sessions`. */
export interface PollSession extends Target {
  readonly kind: 'poll';
}

export type ApiSession = RunSession | PollSession;

export interface SessionsQuery {
  readonly kind?: string | undefined;
  /** Only sessions with this key; needs `kind`. */
  readonly key?: string | undefined;
  /** Only sessions in one of these states. */
  readonly state?: SessionState | readonly SessionState[] | undefined;
  /** Sessions per page, 1 to 1,000; default 100. */
  readonly limit?: number | undefined;
}

export interface SessionsPage {
  readonly sessions: readonly ApiSession[];
  /** Absent on the last page. */
  readonly cursor?: string | undefined;
}

/** An event, with its facts as further fields; fences as text. */
export interface ApiEvent {
  /** Opaque; pass it as `after` to continue from here. */
  readonly position: string;
  /** Milliseconds since 1970, by the instance's clock. */
  readonly at: number;
  /** The instance that recorded it. */
  readonly instance: string;
  readonly event: string;
  readonly [fact: string]: unknown;
}

export interface EventsQuery {
  /** Continues after this event: the `position` of the last one that you handled. */
  readonly after?: string | undefined;
  /** Without `after`: from the oldest event in the log, or from now on; default now. */
  readonly from?: 'oldest' | 'now' | undefined;
  /** Only these events: `session.advanced`, or `session` for all whose name begins so. */
  readonly event?: string | readonly string[] | undefined;
  /** Only events about this session or target. */
  readonly session?: string | undefined;
  /** Only events of or about this instance. */
  readonly member?: string | undefined;
  /** Ends the stream. */
  readonly signal?: AbortSignal | undefined;
  /** Called when the stream connects, and when it is lost. The client reconnects automatically. */
  readonly onConnection?: ((state: 'connected' | 'lost') => void) | undefined;
}

export type FollowedEvent =
  | { readonly kind: 'event'; readonly event: ApiEvent }
  /** Events are missing here: the log dropped them before they could be sent. */
  | { readonly kind: 'gap' };

/** A wrong field of a request, and the rule that it breaks. */
export interface FieldError {
  readonly field: string;
  readonly rule: string;
}
