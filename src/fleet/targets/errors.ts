import { defineError } from '../../core/errors.ts';
import { spanOf } from '../../core/time-text.ts';

/** A target of this id exists. */
export class SessionExistsError extends defineError(
  'SESSION_EXISTS',
  'conflict',
)<{
  session: string;
}>(
  ({ session }) =>
    `'${session}' exists already; nothing was changed. Remove it first, or choose another id.`,
) {}

/** No target or session of this id exists. */
export class SessionNotFoundError extends defineError(
  'SESSION_NOT_FOUND',
  'not-found',
)<{
  session: string;
}>(({ session }) => `'${session}' does not exist. Check the id; \`ls\` shows all there are.`) {}

/** The record of a target cannot be read as one. */
export class SessionUnreadableError extends defineError(
  'SESSION_UNREADABLE',
  'conflict',
)<{
  session: string;
  why: string;
}>(
  ({ session, why }) =>
    `target '${session}' cannot be read: ${why}. ` +
    'Nothing was changed. Correct it in the program that wrote it, or remove it.',
) {}

/** A poll over HTTP got no answer. An answer of any status is a result, not an error. */
export class PollFailedError extends defineError(
  'POLL_FAILED',
  'unavailable',
)<{
  /** Scheme and host; the rest of a URL may hold secrets. */
  url: string;
  why: string;
}>(({ url, why }) => `poll of ${url} failed: ${why}`) {}

/** A URL leads to an address that must not be polled. */
export class AddressRefusedError extends defineError(
  'ADDRESS_REFUSED',
  'invalid',
)<{
  host: string;
  kind: string;
  advice: string;
}>(
  ({ host, kind, advice }) =>
    `'${host}' leads to a ${kind} address: its target is not polled. ${advice}`,
) {}

/** A task was told to stop. The `reason` of its `signal`, unless its lease is lost. */
export class TaskStoppedError extends defineError(
  'TASK_STOPPED',
  'lost',
)<{
  target: string;
  /**
   * `released`: the target moves, is paused or removed, or the instance stops. `changed`: its
   * record has changed. `silent`: the task has made no progress for `silentForMs`.
   */
  why: 'released' | 'changed' | 'silent';
  silentForMs?: number;
}>(({ target, why, silentForMs = 0 }) => {
  const reason = {
    released:
      'its target moves to another instance, was paused or removed, or this instance stops. End the task when its signal fires',
    changed: 'the target has changed. End the task; it is started again with the new one',
    silent: `it has made no progress for ${spanOf(silentForMs)}. End the task; it is started again`,
  }[why];
  return `the task of '${target}' was told to stop: ${reason}.`;
}) {}

/** A poll took longer than it may. The `reason` of its `signal`. */
export class PollTimeoutError extends defineError(
  'POLL_TIMEOUT',
  'unavailable',
)<{
  target: string;
  timeoutMs: number;
}>(
  ({ target, timeoutMs }) =>
    `the poll of '${target}' took longer than ${spanOf(timeoutMs)}, and its signal was aborted. ` +
    'Give polls more time (timeout), or make them end sooner.',
) {}
