import type { Emitter } from '../core/events.ts';
import { KEYSPACE_NAMES, type Keyspace } from './port/keyspaces.ts';

/**
 * Emits `store.quarantined` once per quarantine, for keyspaces that this client takes leases in. A
 * client that holds leases learns from it that they may be gone.
 */
export class QuarantineEmitter {
  readonly #events: Emitter;
  readonly #store: string;
  readonly #leftMs: (keyspace: Keyspace) => number;
  readonly #used = new Set<Keyspace>();
  readonly #announced = new Set<Keyspace>();

  constructor(events: Emitter, store: string, leftMs: (keyspace: Keyspace) => number) {
    this.#events = events;
    this.#store = store;
    this.#leftMs = leftMs;
  }

  /** Another era has begun. */
  begin(): void {
    this.#announced.clear();
    for (const keyspace of KEYSPACE_NAMES) if (this.#used.has(keyspace)) this.leftMs(keyspace);
  }

  /**
   * How long no new lease of a keyspace may be granted yet. The first call in a quarantine emits
   * the event.
   */
  leftMs(keyspace: Keyspace): number {
    this.#used.add(keyspace);
    const leftMs = this.#leftMs(keyspace);
    if (leftMs > 0 && !this.#announced.has(keyspace)) {
      this.#announced.add(keyspace);
      this.#events.emit('store.quarantined', { store: this.#store, keyspace, leftMs });
    }
    return leftMs;
  }
}
