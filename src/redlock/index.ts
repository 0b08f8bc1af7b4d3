/** redlock 5's door, with Holdfast's leases behind it. docs/coming-from/redlock.md says what is the same and what is not. */
export type { RedlockClient } from './client.ts';
export { ExecutionError, QuorumNotOfferedError, ResourceLockedError } from './errors.ts';
export type {
  Attempts,
  ClientExecutionResult,
  ExecutionResult,
  ExecutionStats,
} from './execution.ts';
export type { RedlockAbortSignal } from './hold.ts';
export { Lock } from './lock.ts';
export {
  Redlock,
  Redlock as default,
  type RedlockUsingContext,
  type Routine,
} from './redlock.ts';
export type { Settings } from './settings.ts';
