/**
 * What runs for a session while its worker holds the leases that it needs: a function of the
 * configuration, or a command in its own process group. The worker is told when the pipeline has
 * started and when nothing of it is left, and releases no lease before that.
 */
import type { IntentSession } from '../../intents/intent-session.ts';
import type { KindContext } from '../../intents/kind.ts';
import type { CommandDeadline } from '../supervisor/command-deadline.ts';
import type { GroupRecord } from '../supervisor/host.ts';

/** What a function that runs for a session of a built-in kind is given. */
export interface PipelineContext
  extends Pick<KindContext, 'signal' | 'fence' | 'slot' | 'assertHeld' | 'guard' | 'progress'> {}

/**
 * Its result is kept with the session, if it can be JSON. It has to end when `signal` fires: no
 * lease is released before that.
 */
export type PipelineFunction = (session: IntentSession, context: PipelineContext) => unknown;

/** What a pipeline runs under. */
export interface PipelineHold extends PipelineContext {
  /** 1 for the first try of the session. */
  readonly attempt: number;
  /** Until when the pipeline may run, unless its leases are renewed. */
  deadline(): CommandDeadline;
  /** The two clocks disagree: the leases have to be confirmed at once. */
  confirm(): void;
}

export interface Pipeline {
  /** The pool that the pipeline needs a slot of; null: none. */
  readonly resource: string | null;
  /** How long one try may run; null: no limit. */
  readonly timeLimitMs: number | null;
  /** How often a session is tried; null: see `KindOptions`. */
  readonly tries: number | null;
  /** Never throws: a failure is in `ended`. */
  start(session: IntentSession, hold: PipelineHold): Running;
}

/** A pipeline that was started. */
export interface Running {
  /**
   * Resolves with the process group, which then waits for `begin`; null if there is none, or if it
   * has ended before. Never rejects.
   */
  readonly started: Promise<GroupRecord | null>;
  /**
   * The store has the process group, so that another worker could end it: the command may begin.
   */
  begin(): void;
  /** Resolves when nothing of it is left, or the rest cannot be ended. Never rejects. */
  readonly ended: Promise<PipelineEnd>;
  /** The deadline of its hold has moved. */
  extend(): void;
  /** Tells the pipeline to end. The `signal` of its hold has fired. */
  stop(): void;
}

export interface PipelineEnd {
  /** `stopped`: it was told to end, and did. */
  readonly how: 'completed' | 'failed' | 'stopped';
  /** False: some of its processes could not be ended, and may still act. */
  readonly isGone: boolean;
  /** For the record of its session; JSON. */
  readonly detail: PipelineDetail;
}

export interface PipelineDetail {
  readonly tookMs: number;
  readonly code?: number | null | undefined;
  readonly signal?: string | null | undefined;
  /** The last lines of both outputs, in the order in which they came. */
  readonly output?: readonly string[] | undefined;
  /** Why it failed, in words. */
  readonly error?: string | undefined;
  /** What a function returned. */
  readonly result?: unknown;
}
