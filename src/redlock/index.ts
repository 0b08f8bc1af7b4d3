/** The API of redlock 5 on Holdfast’s leases; docs/coming-from/redlock.md lists the differences. */
export type { RedlockClient } from './client.ts';
export { ExecutionError, QuorumNotOfferedError, ResourceLockedError } from './errors.ts';
export type {
  Attempts,
  ClientExecutionResult,
  ExecutionResult,
  ExecutionStats,
} from './execution.ts';
export { Lock } from './lock.ts';
export type { RedlockAbortSignal } from './lock-tenure.ts';
export {
  Redlock,
  Redlock as default,
  type RedlockUsingContext,
  type Routine,
} from './redlock.ts';
export type { Settings } from './settings.ts';
