import type { BusyReason, LossReason } from './errors.ts';

/** Why a tenure went from `held` to `uncertain`. */
export type DoubtReason = 'renewal_failed' | 'clock_jump';

/**
 * The one catalogue of what can happen. Logs, metrics and tests subscribe to it; there is no second source of truth.
 * `docs/events.md` has a line per name.
 */
export interface Events {
  'lease.acquired': { key: string; holder: string; fence: number; ttlMs: number; waitedMs: number };
  'lease.refused': {
    key: string;
    holder: string;
    by: string;
    fence: number;
    reason: BusyReason;
    expiresInMs: number;
  };
  'lease.renewed': { count: number; tookMs: number };
  'lease.uncertain': {
    key: string;
    holder: string;
    fence: number;
    reason: DoubtReason;
    remainingMs: number;
  };
  'lease.confirmed': { key: string; holder: string; fence: number };
  'lease.reasserted': { key: string; holder: string; fence: number };
  'lease.releasing': { key: string; holder: string; fence: number };
  'lease.released': { key: string; holder: string; fence: number; heldForMs: number };
  'lease.abandoned': { key: string; holder: string; fence: number; heldForMs: number; why: string };
  'lease.transferred': {
    key: string;
    holder: string;
    fence: number;
    successor: string;
    heldForMs: number;
  };
  'lease.lost': {
    key: string;
    holder: string;
    fence: number;
    reason: LossReason;
    heldForMs: number;
  };
  'lease.revoked': {
    key: string;
    holder: string;
    fence: number;
    reason: string;
    force: boolean;
    mayActForMs: number;
  };
  'lease.returned': { key: string; holder: string; fence: number };
  'leader.elected': { election: string; holder: string; fence: number };
  'leader.lost': { election: string; fence: number; reason: LossReason | 'failed' | 'stopped' };
  'leader.failed': { election: string; error: unknown };
  'loop.delayed': { lateMs: number };
  'store.connected': { store: string };
  'store.disconnected': { store: string; why: string };
  'store.forgot': { store: string; why: string };
  'store.quarantined': { store: string; leaseClass: string; leftMs: number };
  'store.warned': { store: string; finding: string; advice: string };
  'listener.failed': { event: string; error: unknown };
}

export type EventName = keyof Events;
export type Listener<N extends EventName> = (facts: Events[N]) => void;

/** Delivers events to whoever listens, in order, synchronously. A listener that throws harms nobody but itself. */
export class Emitter {
  readonly #listeners = new Map<EventName, Set<(facts: never) => void>>();

  /** Subscribes; the function returned unsubscribes. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    const known = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, known);
    known.add(listener);
    return () => known.delete(listener);
  }

  /** For those who tell of something often: facts that nobody wants to hear need not be put together. */
  hasListener(name: EventName): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  emit<N extends EventName>(name: N, facts: Events[N]): void {
    const known = this.#listeners.get(name);
    if (known === undefined || known.size === 0) return;
    for (const listener of [...known]) {
      try {
        (listener as Listener<N>)(facts);
      } catch (error) {
        // Ownership must not depend on whether somebody's logger works.
        if (name !== 'listener.failed') this.emit('listener.failed', { event: name, error });
      }
    }
  }
}
