import {
  type HeldFacts,
  LeaseHeldError,
  type QuarantineFacts,
  StoreQuarantinedError,
} from '../core/errors.ts';

/** The error that a refused acquire is, for callers that throw it. */
export function refusalError(
  refusal: HeldFacts | (QuarantineFacts & { reason: 'quarantine' }),
): LeaseHeldError | StoreQuarantinedError {
  return refusal.reason === 'quarantine'
    ? new StoreQuarantinedError(refusal)
    : new LeaseHeldError(refusal);
}
