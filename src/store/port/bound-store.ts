import type { MaxTtls } from './keyspaces.ts';
import type { Call } from './store.ts';

/** The bounds of `keyspaces.ts`, as this store has recorded them. */
export interface BoundStore {
  read(call: Call): Promise<Partial<MaxTtls>>;
  /**
   * For a store in which no process holds a lease. Begins a quarantine; clients with other bounds
   * are refused from then on.
   */
  change(to: MaxTtls, call: Call): Promise<void>;
}
