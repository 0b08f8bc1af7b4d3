import {
  type HeldFacts,
  LeaseHeldError,
  type QuarantineFacts,
  StoreQuarantinedError,
} from '../core/errors.ts';

/** The error for a refused acquire, for callers that throw. */
export function refusalError(
  refusal: HeldFacts | (QuarantineFacts & { reason: 'quarantine' }),
): LeaseHeldError | StoreQuarantinedError {
  return refusal.reason === 'quarantine'
    ? new StoreQuarantinedError(refusal)
    : new LeaseHeldError(refusal);
}
