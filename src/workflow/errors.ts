/** Errors of workflow steps. `context` has their facts, under the names that go over the wire. */
import { defineError, HoldfastError, shown } from '../core/errors.ts';
import { RUN_MOST_BYTES, RUN_STEPS_MOST } from '../store/port/run-store.ts';
import type { ActionFailure } from './action.ts';

/** A step or an action came from a process that does not hold the workflow. */
export class LeaseViolationError extends defineError(
  'LEASE_VIOLATION',
  'lost',
)<{
  context: {
    readonly workflow_id: string;
    /** The lease that holds the workflow; null for none. */
    readonly expected_lease: string | null;
    readonly received_lease: string | null;
  };
}>(({ context: { workflow_id, expected_lease, received_lease } }) => {
  const is = expected_lease === null ? 'no lease holds it' : `lease ${expected_lease} holds it`;
  const got = received_lease === null ? 'no lease' : `lease ${received_lease}`;
  return `workflow '${workflow_id}' is in another tenure: ${is}, and this came with ${got}. Stop the old work, and claim the workflow again.`;
}) {}

export interface EpochFacts {
  readonly workflow_id: string;
  readonly action_epoch: number;
  readonly current_epoch: number;
}

export interface EpochContext extends EpochFacts {
  readonly recommendation: string;
}

/** The step comes too late: the workflow is at a later epoch. */
export class StaleEpochError extends HoldfastError {
  static readonly kind = 'conflict';
  readonly code = 'STALE_EPOCH';
  readonly context: EpochContext;

  constructor(facts: EpochFacts) {
    const recommendation =
      'refresh the state of the workflow and decide again; if this is a second delivery of an action, wait for its result';
    const { workflow_id, action_epoch, current_epoch } = facts;
    super(
      `epoch ${action_epoch} of workflow '${workflow_id}' is over: it is at ${current_epoch}. To do: ${recommendation}.`,
    );
    this.context = { ...facts, recommendation };
  }
}

/** The step comes too early: a step before it is missing. */
export class FutureEpochError extends HoldfastError {
  static readonly kind = 'conflict';
  readonly code = 'FUTURE_EPOCH';
  readonly context: EpochContext;

  constructor(facts: EpochFacts) {
    const recommendation = 'check for missed updates: the steps before it have to be applied first';
    const { workflow_id, action_epoch, current_epoch } = facts;
    super(
      `epoch ${action_epoch} of workflow '${workflow_id}' is still to come: it is at ${current_epoch}. To do: ${recommendation}.`,
    );
    this.context = { ...facts, recommendation };
  }
}

/** The lease of a workflow has expired here; in the store it expires a moment later. */
export class LeaseExpiredError extends HoldfastError {
  static readonly kind = 'lost';
  readonly code = 'LEASE_EXPIRED';
  readonly context: {
    readonly workflow_id: string;
    readonly lease_id: string;
    readonly acquired_at: string;
    readonly ttl_seconds: number;
  };

  constructor(facts: { workflow: string; leaseId: string; acquiredAt: Date; ttlMs: number }) {
    const { workflow, leaseId, acquiredAt, ttlMs } = facts;
    super(
      `lease ${leaseId} of workflow '${workflow}' expired after ${ttlMs / 1_000} s without a renewal. Stop, and claim the workflow again: emitted actions are kept.`,
    );
    this.context = {
      workflow_id: workflow,
      lease_id: leaseId,
      acquired_at: acquiredAt.toISOString(),
      ttl_seconds: ttlMs / 1_000,
    };
  }
}

/** No workflow is held by this lease. */
export class LeaseNotFoundError extends defineError(
  'LEASE_NOT_FOUND',
  'not-found',
)<{
  context: { readonly lease_id: string };
}>(
  ({ context: { lease_id } }) =>
    `lease ${lease_id} holds no workflow: the id is wrong, or the workflow was handed over, revoked, or claimed under another lease since. 'holdfast workflows ls' shows the current leases.`,
) {}

/** An action breaks a rule of all actions, or its own schema. */
export class ActionInvalidError extends defineError(
  'ACTION_INVALID',
  'invalid',
)<{
  field: string;
  rule: string;
  /** What was given. Absent for payloads, which may hold secrets. */
  value?: unknown;
}>(({ field, rule, value }) => {
  const given = value === undefined ? '' : ` is ${shown(value)}`;
  return `${field} of the action${given}: ${rule}`;
}) {}

/**
 * Which limit was hit: on actions without a result, or on these plus results that the orchestrator
 * has not read.
 */
export type WorkflowLimit = 'unresolved' | 'unread';

/** Nothing can be emitted before some actions have results, or before results have been read. */
export class WorkflowFullError extends defineError(
  'WORKFLOW_FULL',
  'busy',
)<{
  workflow: string;
  limit: WorkflowLimit;
  /** How many the limit allows. */
  most: number;
  /** Actions without a result. */
  unresolved: number;
  /** Results that the orchestrator has not read. */
  unread: number;
}>(({ workflow, limit, most, unresolved, unread }) => {
  const has = `workflow '${workflow}' has ${unresolved} actions without a result and ${unread} results that it has not read`;
  return limit === 'unresolved'
    ? `${has}: at most ${most} actions may be without a result. Wait for results, and check that every target has a processor.`
    : `${has}: together they may be at most ${most}. Read the results: for await (const result of workflow.results()), or result(actionId) for each action.`;
}) {}

/**
 * For handlers to throw: the step has failed, and trying again would not help. It becomes the
 * action's result as it is.
 */
export class StepFailedError extends HoldfastError {
  static readonly kind = 'internal';
  readonly code = 'STEP_FAILED';
  readonly details: unknown;

  constructor(message: string, details: unknown = null) {
    super(message);
    this.details = details;
  }
}

/** A workflow's function no longer fits what the store has kept of it. */
export class StepMismatchError extends defineError(
  'STEP_MISMATCH',
  'conflict',
)<{
  workflow: string;
  step: string;
  /** What the store has kept under this name. */
  kept: string;
  /** What the function does under this name now. */
  now: string;
}>(
  ({ workflow, step, kept, now }) =>
    `step '${step}' of workflow '${workflow}' was kept as ${kept}, and the function now has ${now}. A name stands for one step: give the new one another name, or run the version of the function that began this workflow.`,
) {}

/** A step that keeps its result in a transaction of the user cannot, or did not. */
export class StepTransactionError extends defineError(
  'STEP_TRANSACTION',
  'conflict',
)<{
  workflow: string;
  step: string;
  /**
   * `kept`: the store has a result of the step, so the transaction must not commit. `uncommitted`:
   * the step returned, and its transaction has not committed.
   */
  reason: 'kept' | 'uncommitted';
}>(({ workflow, step, reason }) => {
  const which = `step '${step}' of workflow '${workflow}'`;
  return reason === 'kept'
    ? `${which} already has a result. Roll this transaction back: an earlier transaction kept the result and its rows.`
    : `${which} returned, but the transaction in which it called keep() has not committed. Await the COMMIT inside the step, and let errors of the transaction pass.`;
}) {}

/** A step or a call of a workflow's function failed as often as it may be tried. */
export class WorkflowStepError extends defineError(
  'WORKFLOW_STEP_FAILED',
  'internal',
)<{
  workflow: string;
  step: string;
  failure: ActionFailure;
  /** An action that a processor executed, not a step that ran here. */
  isCall: boolean;
  /** The action of a call is a dead letter. */
  isDead: boolean;
}>(
  ({ workflow, step, failure, isDead }) =>
    `step '${step}' of workflow '${workflow}' failed: ${failure.message}${isDead ? ". Its action is a dead letter: 'holdfast deadletters ls'" : ''}`,
) {}

/** The function of a workflow has failed for the last time. */
export class WorkflowFailedError extends defineError(
  'WORKFLOW_FAILED',
  'conflict',
)<{
  workflow: string;
  function: string;
  tries: number;
  failure: ActionFailure;
}>(
  ({ workflow, function: name, tries, failure }) =>
    `workflow '${workflow}' failed after ${tries} tries of function '${name}': ${failure.message}. Once the cause is gone, run it again: holdfast workflows restart ${workflow}`,
) {}

/** There is no such workflow, or no function runs it. */
export class WorkflowNotFoundError extends defineError(
  'WORKFLOW_NOT_FOUND',
  'not-found',
)<{
  workflow: string;
}>(
  ({ workflow }) =>
    `workflow '${workflow}' does not exist: it was never started, or was removed. 'holdfast workflows ls' shows the workflows there are.`,
) {}

/** The function of the workflow has returned. */
export class WorkflowEndedError extends defineError(
  'WORKFLOW_ENDED',
  'conflict',
)<{
  workflow: string;
}>(
  ({ workflow }) =>
    `workflow '${workflow}' has ended, so the signal was not kept. Check the id, or start another workflow.`,
) {}

/** The id belongs to a workflow of another function, or of none. */
export class WorkflowTakenError extends defineError(
  'WORKFLOW_TAKEN',
  'conflict',
)<{
  workflow: string;
  /** The function that the workflow has; null for one that was claimed. */
  found: string | null;
  wanted: string;
}>(
  ({ workflow, found, wanted }) =>
    `workflow '${workflow}' is ${found === null ? 'one that no function runs' : `a workflow of function '${found}'`}, not of '${wanted}'. Start it under another id.`,
) {}

/** A workflow has as many steps or signals as it may have. */
export class WorkflowStepsError extends defineError(
  'WORKFLOW_STEPS_FULL',
  'invalid',
)<{
  workflow: string;
  steps: number;
  signals: number;
  bytes: number;
}>(
  ({ workflow, steps, signals, bytes }) =>
    `workflow '${workflow}' has ${steps} steps and ${signals} signals of ${bytes} bytes: it may have at most ${RUN_STEPS_MOST} of each, and ${RUN_MOST_BYTES} bytes. Split the work into several workflows, and keep large values elsewhere.`,
) {}
