/**
 * What goes over the wire, as a client writes and reads it. The server's schemas say the same, and `test/client/portability.test.ts` that
 * they do: here they are written out, because a client must not need what a server is made of.
 */

export type SessionState = 'NEW' | 'STARTING' | 'RUNNING' | 'STOPPING' | 'ENDED';

export interface StartRequest {
  /** What is to be run: a channel, as whoever names channels calls it. */
  readonly serviceRef: string;
  /** How it is to be run; default `default`. */
  readonly profile?: string | undefined;
  /** Who wants it; default the token's own id. A session is stopped when the last one who wanted it does not any more. */
  readonly clientId?: string | undefined;
}

export interface StartVodRequest {
  readonly recordingId: string;
  readonly profile?: string | undefined;
  /** Where in the recording; default 0. Starts within the same second share a session. */
  readonly startMs?: number | undefined;
  readonly clientId?: string | undefined;
}

export interface StopRequest {
  readonly clientId?: string | undefined;
  /** Stops it whoever else needs it. Needs the scope `v3:admin`. */
  readonly force?: boolean | undefined;
}

/** What the server answers to an intent: it is accepted, and safe. What comes of it, the session shows. */
export interface AcceptedIntent {
  readonly sessionId: string;
  readonly kind: 'live' | 'vod';
  readonly state: SessionState;
  /** Nothing has changed by it: the session had been started, or stopped, before. */
  readonly replayed: boolean;
  /** How many need the session. */
  readonly clients: number;
  readonly links: { readonly self: string };
}

/** What there is to know of a session that came from an intent. */
interface RunFacts {
  readonly id: string;
  readonly tenant: string;
  readonly profile: string;
  readonly state: SessionState;
  /** Why it has ended. */
  readonly reason: string | null;
  readonly outcome: string | null;
  readonly worker: string | null;
  readonly slot: string | null;
  readonly clients: number;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly changedAt: string;
  readonly revision: number;
  /** How often a worker was lost with it. */
  readonly losses: number;
  /** What its pipeline says while it runs. */
  readonly progress?: unknown;
  /** How its pipeline ended: exit code, how long it ran, its last lines. */
  readonly detail?: Readonly<Record<string, unknown>> | undefined;
}

export interface LiveSession extends RunFacts {
  readonly kind: 'live';
  readonly serviceRef: string;
}

export interface VodSession extends RunFacts {
  readonly kind: 'vod';
  readonly recordingId: string;
  readonly startMs: number;
}

export type RunSession = LiveSession | VodSession;

/** Something that is polled. */
export interface PollSession {
  readonly id: string;
  readonly kind: 'poll';
  readonly url?: string | undefined;
  readonly everyMs?: number | undefined;
  readonly isPaused: boolean;
  readonly revision: number;
}

export type ApiSession = RunSession | PollSession;

export interface SessionsQuery {
  readonly kind?: ApiSession['kind'] | undefined;
  /** Only sessions in one of these states. */
  readonly state?: SessionState | readonly SessionState[] | undefined;
  /** How many are asked for at once, 1 to 1,000; default 100. */
  readonly limit?: number | undefined;
}

export interface SessionsPage {
  readonly sessions: readonly ApiSession[];
  /** Absent on the last page. */
  readonly cursor?: string | undefined;
}

/** Something that happened, with its facts as further fields; fences as text. */
export interface ApiEvent {
  /** Opaque, and the way to go on from here (`after`). */
  readonly position: string;
  /** In milliseconds since 1970, by the clock of the instance. */
  readonly at: number;
  /** Who wrote it down. */
  readonly instance: string;
  readonly event: string;
  readonly [fact: string]: unknown;
}

export interface EventsQuery {
  /** Where to go on: the `position` of the last event that was seen. */
  readonly after?: string | undefined;
  /** Without `after`: everything that is still known, or what happens from now on, which is the default. */
  readonly from?: 'oldest' | 'now' | undefined;
  /** Only these: `session.advanced`, or `session` for all that begin so. */
  readonly event?: string | readonly string[] | undefined;
  /** Only what is about this session. */
  readonly session?: string | undefined;
  /** Only what is about this instance. */
  readonly member?: string | undefined;
  /** Ends it. */
  readonly signal?: AbortSignal | undefined;
  /** Told when the stream is connected, and when it is cut off. It is connected again either way. */
  readonly onConnection?: ((state: 'connected' | 'lost') => void) | undefined;
}

export type FollowedEvent =
  | { readonly kind: 'event'; readonly event: ApiEvent }
  /** Something is missing here: it was dropped from the log before it could be sent. */
  | { readonly kind: 'gap' };

/** What is wrong with a field of a request. */
export interface FieldError {
  readonly field: string;
  readonly rule: string;
}
