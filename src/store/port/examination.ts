/** A store and its surroundings, for people who want to trust it with leases. */

export interface Examination {
  readonly store: string;
  readonly findings: readonly Finding[];
}

export interface Finding {
  /**
   * `refuse`: leases cannot be trusted here. `warn`: they can, within what the advice says. `ok`:
   * looked at, fine.
   */
  readonly level: 'ok' | 'warn' | 'refuse';
  readonly subject:
    | 'version'
    | 'role'
    | 'eviction'
    | 'persistence'
    | 'replication'
    | 'clock'
    | 'topology'
    | 'rights'
    | 'bloat'
    | 'format'
    | 'file system';
  readonly fact: string;
  readonly advice?: string;
  /** For those about a clock that is not ours. */
  readonly clock?: ClockOffset;
}

/** How far another clock is ahead of ours, and how exactly that is known. */
export interface ClockOffset {
  readonly offsetMs: number;
  readonly uncertaintyMs: number;
}
