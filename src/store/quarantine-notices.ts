import type { Emitter } from '../core/events.ts';
import { KEYSPACE_NAMES, type Keyspace } from './port/keyspaces.ts';

/**
 * Says once per quarantine, and only for keyspaces that this client takes leases in, how long it lasts. A client that
 * holds leases hears by it that they may be gone.
 */
export class QuarantineNotices {
  readonly #options: { readonly events: Emitter; readonly store: string };
  readonly #leftMs: (keyspace: Keyspace) => number;
  readonly #used = new Set<Keyspace>();
  readonly #told = new Set<Keyspace>();

  constructor(
    options: { readonly events: Emitter; readonly store: string },
    leftMs: (keyspace: Keyspace) => number,
  ) {
    this.#options = options;
    this.#leftMs = leftMs;
  }

  /** Another era has begun. */
  begin(): void {
    this.#told.clear();
    for (const keyspace of KEYSPACE_NAMES) if (this.#used.has(keyspace)) this.ask(keyspace);
  }

  /** How long no new lease of a keyspace may be granted yet. */
  ask(keyspace: Keyspace): number {
    this.#used.add(keyspace);
    const leftMs = this.#leftMs(keyspace);
    if (leftMs > 0 && !this.#told.has(keyspace)) {
      this.#told.add(keyspace);
      const { events, store } = this.#options;
      events.emit('store.quarantined', { store, keyspace, leftMs });
    }
    return leftMs;
  }
}
