/** What can be wrong with a step of a workflow. The facts of each stand in `context`, under the names that go over the wire. */
import { HoldfastError } from '../core/errors.ts';

/** An action, or a step, of somebody who does not hold the workflow. */
export class LeaseViolationError extends HoldfastError {
  readonly code = 'LEASE_VIOLATION';
  readonly context: {
    readonly workflow_id: string;
    /** Whose tenure it is; null for nobody's. */
    readonly expected_lease: string | null;
    readonly received_lease: string | null;
  };

  constructor(workflow: string, expected: string | null, received: string | null) {
    const is = expected === null ? 'nobody’s' : `that of lease ${expected}`;
    const got = received === null ? 'no lease' : `lease ${received}`;
    super(
      `workflow '${workflow}' is in another tenure: it is ${is}, and this came with ${got}. Stop the work of the old tenure; who is to go on claims the workflow anew.`,
    );
    this.context = { workflow_id: workflow, expected_lease: expected, received_lease: received };
  }
}

interface EpochContext {
  readonly workflow_id: string;
  readonly action_epoch: number;
  readonly current_epoch: number;
  readonly recommendation: string;
}

/** It comes too late: what it is about has gone on. */
export class StaleEpochError extends HoldfastError {
  readonly code = 'STALE_EPOCH';
  readonly context: EpochContext;

  constructor(facts: Omit<EpochContext, 'recommendation'>) {
    const recommendation =
      'refresh the state of the workflow, and decide anew; if it is a second delivery of an action, wait for its result';
    const { workflow_id, action_epoch, current_epoch } = facts;
    super(
      `epoch ${action_epoch} of workflow '${workflow_id}' is over: it is at ${current_epoch}. To do: ${recommendation}.`,
    );
    this.context = { ...facts, recommendation };
  }
}

/** It comes too early: something before it is missing. */
export class FutureEpochError extends HoldfastError {
  readonly code = 'FUTURE_EPOCH';
  readonly context: EpochContext;

  constructor(facts: Omit<EpochContext, 'recommendation'>) {
    const recommendation = 'check for missed updates: what comes before it has to be applied first';
    const { workflow_id, action_epoch, current_epoch } = facts;
    super(
      `epoch ${action_epoch} of workflow '${workflow_id}' is still to come: it is at ${current_epoch}. To do: ${recommendation}.`,
    );
    this.context = { ...facts, recommendation };
  }
}

/** The lease of a workflow has run out here; in the store it does a moment later. */
export class LeaseExpiredError extends HoldfastError {
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
      `lease ${leaseId} of workflow '${workflow}' has run out after ${ttlMs / 1_000} s without a renewal. Stop, and claim the workflow anew: what was emitted is kept.`,
    );
    this.context = {
      ...{ workflow_id: workflow, lease_id: leaseId },
      ...{ acquired_at: acquiredAt.toISOString(), ttl_seconds: ttlMs / 1_000 },
    };
  }
}

/** No workflow is in the tenure of such a lease. */
export class LeaseNotFoundError extends HoldfastError {
  readonly code = 'LEASE_NOT_FOUND';
  readonly context: { readonly lease_id: string };

  constructor(leaseId: string) {
    super(
      `no workflow is in the tenure of lease ${leaseId}: it was never claimed, or has been handed over, revoked or claimed anew since. 'holdfast workflows ls' shows the leases there are.`,
    );
    this.context = { lease_id: leaseId };
  }
}

/** An action that is not as actions are, or not as its schema says. */
export class ActionInvalidError extends HoldfastError {
  readonly code = 'ACTION_INVALID';
  readonly field: string;
  readonly rule: string;

  constructor(field: string, rule: string) {
    super(`${field} of the action: ${rule}`);
    this.field = field;
    this.rule = rule;
  }
}

/** Nothing can be emitted before something has been done. */
export class WorkflowFullError extends HoldfastError {
  readonly code = 'WORKFLOW_FULL';
  readonly workflow: string;
  readonly unresolved: number;

  constructor(workflow: string, unresolved: number) {
    super(
      `workflow '${workflow}' has ${unresolved} actions without a result, and may not have more. Wait for results; is there a processor for each target?`,
    );
    this.workflow = workflow;
    this.unresolved = unresolved;
  }
}

/** For handlers to throw: the step has failed, and trying again would not help. It becomes the action's result as it is. */
export class StepFailedError extends HoldfastError {
  readonly code = 'STEP_FAILED';
  readonly details: unknown;

  constructor(message: string, details: unknown = null) {
    super(message);
    this.details = details;
  }
}
