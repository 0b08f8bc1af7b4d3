import type { About, Order, Report } from './orders.ts';
import { Supervision, type SupervisionParts } from './supervision.ts';

export interface SupervisionsParts extends Pick<SupervisionParts, 'clock' | 'spawn'> {
  report(report: About<Report>): void;
  /** Nobody gives orders any more, and nothing runs. */
  leave(): void;
}

/**
 * What one supervisor process does: a supervision for each command that it is ordered to run, until there is nobody to give orders and nothing
 * runs. One that is told to end runs nothing any more, but stays to say so for as long as there are orders.
 */
export class Supervisions {
  readonly #parts: SupervisionsParts;
  readonly #byId = new Map<number, Supervision>();
  #isOrphaned = false;
  #isTerminated = false;

  constructor(parts: SupervisionsParts) {
    this.#parts = parts;
  }

  hear({ id, ...order }: About<Order>): void {
    if (order.do === 'start' && !this.#byId.has(id)) this.#add(id);
    // What has ended by now has no use for orders.
    this.#byId.get(id)?.hear(order);
  }

  /** Whoever gave the orders is no more. */
  orphan(): void {
    this.#isOrphaned = true;
    for (const supervision of this.#byId.values()) supervision.orphan();
    this.#leaveIfDone();
  }

  /** The supervisor itself is told to end. */
  terminate(): void {
    this.#isTerminated = true;
    for (const supervision of this.#byId.values()) supervision.terminate();
  }

  #add(id: number): void {
    const { clock, spawn } = this.#parts;
    const supervision = new Supervision({
      clock,
      spawn,
      report: (report) => this.#report(id, report),
    });
    this.#byId.set(id, supervision);
    if (this.#isTerminated) supervision.terminate();
  }

  #report(id: number, report: Report): void {
    this.#parts.report({ id, ...report });
    if (report.event !== 'ended' && report.event !== 'failed') return;
    this.#byId.delete(id);
    this.#leaveIfDone();
  }

  #leaveIfDone(): void {
    if (this.#isOrphaned && this.#byId.size === 0) this.#parts.leave();
  }
}
