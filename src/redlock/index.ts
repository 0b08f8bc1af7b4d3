/** The API of redlock 5 on Holdfast’s leases; docs/coming-from/redlock.md lists the differences. */
import {
  CallNotOfferedError,
  ExecutionError,
  QuorumNotOfferedError,
  ResourceLockedError,
} from './errors.ts';
import { Lock } from './lock.ts';
import { Redlock } from './redlock.ts';

export type { RedlockClient } from './client.ts';
export type {
  Attempts,
  ClientExecutionResult,
  ExecutionResult,
  ExecutionStats,
} from './execution.ts';
export type { RedlockAbortSignal } from './lock-tenure.ts';
export type { RedlockUsingContext, Routine } from './redlock.ts';
export type { Settings } from './settings.ts';

const errors = { CallNotOfferedError, ExecutionError, QuorumNotOfferedError, ResourceLockedError };
/** What `require` returns: the class, and all else as its fields. */
const required = Object.assign(Redlock, { default: Redlock, Redlock, Lock, ...errors });

export {
  CallNotOfferedError,
  ExecutionError,
  Lock,
  QuorumNotOfferedError,
  Redlock,
  Redlock as default,
  ResourceLockedError,
  required as 'module.exports',
};
