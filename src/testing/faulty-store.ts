import type { Clock } from '../base/clock.ts';
import { OutcomeUnknownError, StoreUnreachableError } from '../base/errors.ts';
import type { Call, LeaseStore, Store } from '../store/store.ts';

/** What goes wrong between a client and its store. Change it at any time; it applies to calls from then on. */
export interface StoreFaults {
  /** Calls are carried out but never answered: the caller's time runs out. */
  loseReplies: boolean;
  /** Calls never arrive and are never answered: a frozen store, or a half-open socket. */
  hang: boolean;
  /** Calls are refused at once: nobody listens. */
  refuse: boolean;
}

/**
 * A store behind a bad connection: for tests that need a store to fail at a chosen moment, on a clock of their own.
 * Records and signals pass; leases are what hurts.
 */
export function faultyStore(store: Store, clock: Clock): { store: Store; faults: StoreFaults } {
  const faults: StoreFaults = { loseReplies: false, hang: false, refuse: false };
  const through = async <T>(
    operation: string,
    { timeoutMs }: Call,
    send: () => Promise<T>,
  ): Promise<T> => {
    const where = { store: store.name, operation };
    if (faults.refuse) throw new StoreUnreachableError({ ...where, why: 'nobody listens' });
    const lost = faults.loseReplies || faults.hang;
    const reply = faults.hang ? null : send();
    if (!lost && reply !== null) return reply;
    await clock.sleep(timeoutMs);
    throw new OutcomeUnknownError({ ...where, afterMs: timeoutMs, why: 'no answer' });
  };
  const { leases } = store;
  const faultyLeases: LeaseStore = {
    acquire: (requests, call) => through('acquire', call, () => leases.acquire(requests, call)),
    renew: (tenures, call) => through('renew', call, () => leases.renew(tenures, call)),
    reassert: (tenures, call) => through('reassert', call, () => leases.reassert(tenures, call)),
    release: (tenures, call) => through('release', call, () => leases.release(tenures, call)),
    transfer: (handovers, call) =>
      through('transfer', call, () => leases.transfer(handovers, call)),
    revoke: (key, call) => through('revoke', call, () => leases.revoke(key, call)),
    read: (keys, call) => through('read', call, () => leases.read(keys, call)),
    list: (prefix, call) => through('list', call, () => leases.list(prefix, call)),
    forgo: (key, inbox, call) => through('forgo', call, () => leases.forgo(key, inbox, call)),
  };
  return { store: { ...store, leases: faultyLeases }, faults };
}
