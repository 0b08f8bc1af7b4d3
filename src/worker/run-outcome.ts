import type { Outcome, Reason } from '../intents/intent-session.ts';
import type { PipelineDetail } from './pipelines/pipeline.ts';

/** What has come of a session in the hands of a worker. */
export type RunOutcome =
  /** `left`: this worker stops, and others are to go on with it. `gone`: it is not this worker's (any more). */
  Left | Ended;

interface Left {
  readonly kind: 'left' | 'gone';
  /** False: some of its pipeline could not be ended. */
  readonly isGone: boolean;
}

export interface Ended {
  readonly kind: 'ended';
  readonly reason: Reason;
  readonly outcome: Outcome;
  readonly detail: Partial<PipelineDetail> & { readonly why?: string };
  readonly isGone: boolean;
}

const OUTCOME_OF: Readonly<Record<Reason, Outcome>> = {
  R_STOPPED: 'STOPPED',
  R_LEASE_BUSY: 'REJECTED_BUSY',
  R_NO_TUNER: 'REJECTED_NO_TUNER',
  R_LEASE_EXPIRED: 'FAILED',
  R_PIPELINE_ENDED: 'COMPLETED',
  R_PIPELINE_FAILED: 'FAILED',
  R_WORKER_LOST: 'FAILED',
};

export function ended(reason: Reason, detail: Ended['detail'] = {}, isGone = true): Ended {
  return { kind: 'ended', reason, outcome: OUTCOME_OF[reason], detail, isGone };
}
