/** The errors of redlock, under the names its users catch, and refusals of Holdfast's own. */
import { ConfigError, defineError, HoldfastError } from '../core/errors.ts';
import type { Attempts } from './execution.ts';

/** Another lock has one of the resources, or this lock has lost it. */
export class ResourceLockedError extends HoldfastError {
  readonly code = 'RESOURCE_LOCKED';
}

/** Could not acquire, extend or release a lock. `cause` says why; `attempts` has the votes. */
export class ExecutionError extends HoldfastError {
  readonly code = 'EXECUTION_FAILED';
  readonly attempts: Attempts;

  constructor(message: string, attempts: Attempts, options?: ErrorOptions) {
    super(message, options);
    this.attempts = attempts;
  }
}

/** Of redlock 4: could not lock, extend or unlock. `cause` says why. */
export class LockError extends HoldfastError {
  readonly code = 'LOCK_FAILED';
  readonly attempts: number;

  constructor(message: string, attempts: number, options?: ErrorOptions) {
    super(message, options);
    this.attempts = attempts;
  }
}

/** A call of redlock 4 that is not there. */
export class CallNotOfferedError extends defineError(
  'CALL_NOT_OFFERED',
  'invalid',
)<{ call: string; instead: string }>(
  ({ call, instead }) => `${call} of redlock 4 is not offered: ${instead}.`,
) {}

/** An invalid argument. The message is redlock's own sentence: programs compare with it. */
export function invalidArgument(field: string, value: unknown, sentence: string): ConfigError {
  const error = new ConfigError({ field, value, rule: sentence });
  error.message = sentence;
  return error;
}

/** Several clients were given: a majority of independent servers is not offered. */
export class QuorumNotOfferedError extends defineError(
  'QUORUM_NOT_OFFERED',
  'invalid',
)<{
  clients: number;
}>(
  ({ clients }) =>
    `Redlock was given ${clients} clients, and takes one: locks by a majority of servers that know nothing of each other ` +
    'are not offered. Such servers have no common order to mint a fence from, and without a fence a holder that paused is ' +
    'not stopped, however many servers there are. Pass the one client (or address) whose server is to decide. To survive ' +
    'the loss of a server, let it be a primary behind sentinels, or a Cluster, with min-replicas-to-write 1.',
) {}
