import type { Runtime } from '../store/runtime.ts';
import { KeepaliveState } from './keepalive.ts';
import type { Tenure } from './tenure.ts';
import type { LeasePolicy } from './timings.ts';

const ID_DIGITS = 32;

/**
 * The keepalives of this process: one per policy, where the store offers them. A lease that is to
 * expire alone, because its tenure ended here and the store has not confirmed that, must not live
 * on by a keepalive. So all keepalives are retired then.
 */
export class KeepaliveSet {
  readonly #rt: Runtime;
  /** Weak: a policy that no lease has any more is dropped with its keepalive. */
  #keepalives = new WeakMap<LeasePolicy, KeepaliveState>();
  /** Tenures that have left, and whose leases may be attached in the store. */
  readonly #departed = new Set<Tenure>();

  constructor(rt: Runtime) {
    this.#rt = rt;
  }

  /**
   * The keepalive that leases of the policy are attached to by their next renewal; null for none.
   * The caller sends one request alone if the keepalive is new: that makes it.
   */
  toAttach(policy: LeasePolicy): KeepaliveState | null {
    const { store, clock, random } = this.#rt;
    // A lease with `maxHold` expires alone.
    if (store.leases.keepAlive === undefined || policy.maxHoldMs !== undefined) return null;
    const known = this.#keepalives.get(policy);
    // Another request makes it just now.
    if (known?.state === 'new') return null;
    if (known?.isAlive(clock.monotonicMs())) return known;
    known?.retire();
    const keepalive = new KeepaliveState(random.hex(ID_DIGITS), policy);
    this.#keepalives.set(policy, keepalive);
    return keepalive;
  }

  /** The keepalive that renews the tenure; null if its row has to be renewed. */
  of({ keepalive }: Tenure): KeepaliveState | null {
    return keepalive !== null && this.isCurrent(keepalive) ? keepalive : null;
  }

  /** The tenure is not renewed any more. */
  depart(tenure: Tenure): void {
    tenure.keepalive?.remove(tenure);
    if (tenure.mayBeAttached) this.#departed.add(tenure);
  }

  /** Before each renewal: retires all keepalives if a lease is to expire alone. */
  settleDepartures(): void {
    for (const tenure of this.#departed) {
      // Its release is in flight.
      if (!tenure.isOver) continue;
      this.#departed.delete(tenure);
      if (!tenure.hasLeftStore) this.retireAll();
    }
  }

  retireAll(): void {
    this.#keepalives = new WeakMap();
  }

  /** Whether it is still renewed. */
  isCurrent(keepalive: KeepaliveState): boolean {
    return keepalive.state === 'alive' && this.#keepalives.get(keepalive.policy) === keepalive;
  }
}
