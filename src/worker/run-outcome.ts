import type { Outcome, Reason } from '../intents/intent-session.ts';
import type { PipelineDetail } from './pipelines/pipeline.ts';

/** How a run ended, and so what becomes of its session. */
export type RunOutcome = Left | Ended;

interface Left {
  /**
   * `left`: this worker stops, and another worker continues the session. `gone`: the session does
   * not belong to this worker any more, or has ended or been removed.
   */
  readonly kind: 'left' | 'gone';
  /** False: some processes of its pipeline could not be ended. */
  readonly isPipelineGone: boolean;
}

export interface Ended {
  readonly kind: 'ended';
  readonly reason: Reason;
  readonly outcome: Outcome;
  readonly detail: Partial<PipelineDetail> & { readonly why?: string | undefined };
  readonly isPipelineGone: boolean;
}

const OUTCOME_OF: Readonly<Record<Reason, Outcome>> = {
  R_STOPPED: 'STOPPED',
  R_LEASE_BUSY: 'REJECTED_BUSY',
  R_NO_TUNER: 'REJECTED_NO_TUNER',
  R_NO_SLOT: 'REJECTED_NO_SLOT',
  R_TIME_LIMIT: 'FAILED',
  R_LEASE_EXPIRED: 'FAILED',
  R_PIPELINE_ENDED: 'COMPLETED',
  R_PIPELINE_FAILED: 'FAILED',
  R_WORKER_LOST: 'FAILED',
};

export function ended(reason: Reason, detail: Ended['detail'] = {}, isPipelineGone = true): Ended {
  return { kind: 'ended', reason, outcome: OUTCOME_OF[reason], detail, isPipelineGone };
}
