import { HoldfastError } from '../core/errors.ts';

/** Another worker has this name, or it can not be known that it has not any more. */
export class WorkerNameTakenError extends HoldfastError {
  readonly code = 'WORKER_NAME_TAKEN';
  /** The name of the worker; not `name`, which says what kind of error this is. */
  readonly worker: string;
  readonly why: string;

  constructor(facts: { worker: string; why: string }) {
    super(
      `there is a worker called '${facts.worker}' already: ${facts.why}. Give each worker a name of its own, or none; or stop the other one first.`,
    );
    this.worker = facts.worker;
    this.why = facts.why;
  }
}
