/**
 * What runs for a session while its worker holds the leases that it needs: a function of the configuration, or a command in a process
 * group of its own. Whoever starts one is told when it has begun and when nothing of it is left; and no lease of its is let go of before that.
 */
import type { IntentSession } from '../../intents/intent-session.ts';
import type { CommandDeadline } from '../supervisor/command-validity.ts';
import type { GroupRecord } from '../supervisor/host.ts';

/** What a function that runs for a session is given. */
export interface PipelineContext {
  /** Fires when it is to end: the session is stopped, a lease is lost, or the worker stops. */
  readonly signal: AbortSignal;
  /** Of the slot it has, or of the session's own lease where it needs none: for whatever refuses what is older. */
  readonly fence: number;
  /** The name of its slot; null where it needs none. */
  readonly slot: string | null;
  /** Throws if it may not go on: ask before every step that matters. */
  assertHeld(): void;
  /** Says how far it is: whatever can be JSON, and is short. The last one counts; they are written down once a second at most. */
  progress(value: unknown): void;
}

/** What it returns is kept with the session, if it can be JSON. It has to end when `signal` fires: nothing is let go of before that. */
export type PipelineFunction = (session: IntentSession, context: PipelineContext) => unknown;

/** What a pipeline is given to run under. */
export interface PipelineHold extends PipelineContext {
  /** Until when it may run, unless it is told of a later moment. */
  deadline(): CommandDeadline;
  /** The clocks disagree: its leases are to be confirmed at once. */
  confirm(): void;
}

export interface Pipeline {
  /** The pool that it needs a slot of; null: none. */
  readonly resource: string | null;
  /** Never throws: what goes wrong is how it ended. */
  start(session: IntentSession, hold: PipelineHold): Running;
}

/** One that runs. */
export interface Running {
  /** Resolves with its process group, which then waits for `begin`; null where it has none, or has ended before that. Never rejects. */
  readonly started: Promise<GroupRecord | null>;
  /** The store has its process group on record: whoever comes after us could end it, so it may begin. */
  begin(): void;
  /** Resolves when nothing of it is left, or nothing more can be done about that. Never rejects. */
  readonly ended: Promise<PipelineEnd>;
  /** The deadline has moved. */
  extend(): void;
  /** It is to end. `signal` of its hold has fired. */
  stop(): void;
}

export interface PipelineEnd {
  /** `stopped`: it was told to end, and did. */
  readonly how: 'completed' | 'failed' | 'stopped';
  /** False: some of it may still act, and could not be ended. */
  readonly isGone: boolean;
  /** For the record of its session: exit code, duration, last lines, what it returned or threw. JSON. */
  readonly detail: PipelineDetail;
}

export interface PipelineDetail {
  readonly tookMs: number;
  readonly code?: number | null;
  readonly signal?: string | null;
  /** Its last lines, both outputs together, as they came. */
  readonly output?: readonly string[];
  /** Why it failed, in words. */
  readonly error?: string;
  /** What a function returned. */
  readonly result?: unknown;
}
