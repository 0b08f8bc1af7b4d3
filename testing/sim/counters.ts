import { NON_PROMISES } from './believers.ts';
import { FAULT_KINDS, INTENT_POINTS, POINTS } from './faults.ts';
import { MIXED_KINDS } from './mixed-faults.ts';

/** What a long run has to have come to, each at least once. */
export const INTERESTING_STATES: readonly string[] = [
  ...FAULT_KINDS.map((kind) => `fault: ${kind}`),
  ...[...POINTS, ...INTENT_POINTS].map((point) => `caught at: ${point}`),
  // What became of leases.
  'lease.lost: expired',
  'lease.lost: taken_over',
  'lease.lost: revoked',
  'lease.uncertain: renewal_failed',
  'lease.uncertain: clock_jump',
  'lease.confirmed',
  'lease.reasserted',
  'lease.returned',
  'lease.abandoned',
  'lease.transferred',
  'transfer claimed',
  'transfer never claimed',
  'claimed in a quarantine',
  'lease.refused: held',
  'lease.refused: revoked',
  'lease.refused: quarantine',
  'store.quarantined',
  'store.forgot',
  // What became of commands and writes.
  'carried out late',
  'answer lost',
  'answered: NOSCRIPT',
  'answered: OOM',
  'write accepted',
  'write fenced off',
  'result.refused',
  // What became of workflows, of their steps, and of what they want done.
  'emit refused: not held',
  'emit refused: epoch',
  'emit found taken',
  'result heard',
  'handoff claimed',
  'handoff never claimed',
  'revoked',
  'revoked while cut off',
  'actions emitted anew',
  'actions dropped',
  'parked actions emitted anew',
  'redelivered',
  'tried again',
  'settle refused: gone',
  'take refused: lease',
  'dead letter',
  'dead letter revived',
  // What became of intents, and of the sessions that they have started.
  'intent accepted',
  'replayed',
  'replayed under another secret',
  'republished',
  'accepted after an unknown outcome',
  'replayed after an unknown outcome',
  'stopped while NEW',
  'stopped while STARTING',
  'stopped while RUNNING',
  'stopped for one of several',
  'change refused: revision',
  'session ended',
  'session lost with the store',
  'sessions forgotten',
  // What became of what workers run for them.
  'delivered again',
  'session recovered',
  'STOPPING session recovered',
  'session handed over',
  'session gone on with',
  'freed after a death',
  'stopped before it ran',
  'worker refused',
  'hint lost',
  'pipeline left behind',
  'start read when its client had gone',
  'pipeline begun again',
  'pipeline threw',
  'pipeline failed',
  'pipeline ended by itself',
  'pipeline stopped',
  'pipeline stopped too late',
  'ended: R_STOPPED',
  'ended: R_LEASE_BUSY',
  'ended: R_NO_TUNER',
  'ended: R_LEASE_EXPIRED',
  'ended: R_WORKER_LOST',
  'ended: R_PIPELINE_ENDED',
  'ended: R_PIPELINE_FAILED',
  // What became of processes.
  'moved by hand',
  'paused',
  'released by its own poll',
  'stopped gracefully',
  'stopped late',
  'loop.delayed',
  'poll.stuck',
  'task begun',
  'run.exited',
  'run.silent',
  'run.stuck',
  'run.settled',
  'healed',
];

/** The same of mixed worlds. */
export const MIXED_STATES: readonly string[] = [
  ...MIXED_KINDS.map((kind) => `fault: ${kind}`),
  ...NON_PROMISES.map((name) => `not promised: ${name}`),
  'examined',
  'lease.reasserted',
  'lease.refused: quarantine',
  'store.forgot',
  'lost while a client was cut off',
  'carried out late',
  'answer lost',
  // What leases were for.
  'granted for: leases',
  'granted for: pools',
  'granted for: elections',
  'granted for: once',
  'granted for: transfers',
  'granted to a named holder',
  'led no longer: expired',
  'once: began',
  'once: started over',
  'transfer claimed',
  'held for maxHold',
  'kept after a release',
  'lease.lost: revoked',
  'lease.lost: taken_over',
  // What lay between the store and its clients.
  'carried out unanswered',
  'carried out twice',
  'replies reordered',
  'answered: MISCONF',
  'answered: OOM',
  'two servers answered',
  'clock rate changed',
  'clock rate changed beyond the guard',
  'healed',
];

/**
 * How often what was reached: a run that never got into an interesting state has proven nothing
 * about it.
 */
export class Counters {
  readonly #counts = new Map<string, number>();

  add(name: string, count = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
  }

  get(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  addAll(counts: Iterable<readonly [string, number]>): void {
    for (const [name, count] of counts) this.add(name, count);
  }

  [Symbol.iterator](): IterableIterator<[string, number]> {
    return this.#counts.entries();
  }
}
