/**
 * One tenure of a workflow: the lease from its claim to its end, and what this process may still do
 * under it. The store checks every step again; these checks only fail earlier.
 */
import type { Batcher } from '../core/batcher.ts';
import type { Lease } from '../lease/lease.ts';
import type { Timings } from '../lease/timings.ts';
import type { WorkflowSnapshot } from '../store/port/workflow-store.ts';
import { LeaseExpiredError, LeaseViolationError } from './errors.ts';

/** Reads workflows. A process that holds many reads them together. */
export type WorkflowReader = Batcher<string, WorkflowSnapshot | null>;

export class WorkflowTenure {
  readonly lease: Lease;
  /** By the clocks at that time: setting a clock does not change it. */
  readonly acquiredAt: Date;
  readonly #timings: Pick<Timings, 'ttlMs' | 'operationTimeoutMs'>;
  readonly #reader: WorkflowReader;
  /** The lease id of the next tenure, after a handoff. */
  #successor: string | null = null;

  constructor(
    lease: Lease,
    timings: Pick<Timings, 'ttlMs' | 'operationTimeoutMs'>,
    reader: WorkflowReader,
  ) {
    this.lease = lease;
    this.acquiredAt = lease.acquiredAt;
    this.#timings = timings;
    this.#reader = reader;
  }

  get workflow(): string {
    return this.lease.key;
  }

  get leaseId(): string {
    return this.lease.holder;
  }

  /** Fires when the tenure is over. */
  get signal(): AbortSignal {
    return this.lease.signal;
  }

  /** How long one request may take. */
  get timeoutMs(): number {
    return this.#timings.operationTimeoutMs;
  }

  get isExpired(): boolean {
    return this.lease.remainingMs() <= 0;
  }

  /** The workflow as the store has it; null if it was removed. */
  read(): Promise<WorkflowSnapshot | null> {
    return this.#reader.submit(this.workflow);
  }

  /** Throws if no step may be taken under this tenure any more, as far as this process knows. */
  check(): void {
    if (!this.isExpired) return;
    const { lease, workflow, leaseId, acquiredAt } = this;
    const wasLetGo = lease.state === 'releasing' || lease.state === 'released';
    const hasExpired = lease.lossReason === 'expired' || lease.state !== 'lost';
    if (this.#successor === null && !wasLetGo && hasExpired) {
      const { ttlMs } = this.#timings;
      throw new LeaseExpiredError({ workflow, leaseId, acquiredAt, ttlMs });
    }
    throw this.violation(this.#successor);
  }

  /** The store says that another lease has the workflow: `expected`, or none. */
  violation(expected: string | null): LeaseViolationError {
    return new LeaseViolationError({
      context: {
        workflow_id: this.workflow,
        expected_lease: expected,
        received_lease: this.leaseId,
      },
    });
  }

  /**
   * The store refused a step of this tenure. Usually the lease is over, and a renewal shows it. If
   * the lease is still good, the store has lost its record of the tenure: the lease is released,
   * because it only keeps others from the workflow.
   */
  async verify(): Promise<void> {
    if (await this.lease.renew()) await this.lease.release();
  }

  /** The store has given the workflow to `successor`. */
  concede(successor: string): void {
    this.#successor = successor;
    this.lease.concede(successor);
  }
}
