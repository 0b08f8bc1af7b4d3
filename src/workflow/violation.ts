import type { HoldfastError } from '../core/errors.ts';
import type { Violation } from '../core/events.ts';
import {
  FutureEpochError,
  LeaseExpiredError,
  LeaseViolationError,
  StaleEpochError,
} from './errors.ts';

/**
 * The facts of `workflow.violation` from an error about a lease or an epoch; null for any other
 * error.
 */
export function violation(error: HoldfastError, action: string | null): Violation | null {
  const none = {
    expectedLease: null,
    receivedLease: null,
    actionEpoch: null,
    currentEpoch: null,
  };
  if (error instanceof LeaseViolationError) {
    const { workflow_id, expected_lease, received_lease } = error.context;
    const leases = { expectedLease: expected_lease, receivedLease: received_lease };
    return { ...none, code: error.code, workflow: workflow_id, action, ...leases };
  }
  if (error instanceof StaleEpochError || error instanceof FutureEpochError) {
    const { workflow_id, action_epoch, current_epoch } = error.context;
    const epochs = { actionEpoch: action_epoch, currentEpoch: current_epoch };
    return { ...none, code: error.code, workflow: workflow_id, action, ...epochs };
  }
  if (!(error instanceof LeaseExpiredError)) return null;
  const { workflow_id, lease_id } = error.context;
  return { ...none, code: error.code, workflow: workflow_id, action, receivedLease: lease_id };
}
