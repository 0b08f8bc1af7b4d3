import { defineError } from '../core/errors.ts';

/** Another worker has this name, or may still have it. */
export class WorkerNameTakenError extends defineError(
  'WORKER_NAME_TAKEN',
  'invalid',
)<{
  /** The name of the worker; not `name`, which says what kind of error this is. */
  worker: string;
  why: string;
}>(
  ({ worker, why }) =>
    `a worker called '${worker}' exists already: ${why}. Give each worker a name of its own, or none; or stop the other one first.`,
) {}
