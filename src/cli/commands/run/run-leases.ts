import { ClosedError } from '../../../core/errors.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { once } from '../../../lease/once.ts';
import { Pool } from '../../../lease/pool/pool.ts';
import { leaseAttributes, tracedAcquire } from '../../../lease/spans.ts';
import { LEASE_CLASSES } from '../../../lease/timings.ts';
import type { OpenedLeases } from '../../../opening.ts';

/** What `run` needs of a Holdfast, which would load the fleet, workflows and workers, too. */
export type RunLeases = Pick<
  Holdfast,
  'acquire' | 'once' | 'pool' | 'inspect' | 'maxTtl' | 'on'
> & {
  /** Ends without waiting for work: the command has ended, or its supervisor ends it. */
  close(): Promise<void>;
};

/** For calls without a lease, and so without timings of their own. */
const CALL = { timeoutMs: 5_000 };
/** How long `close` waits for late replies, and for the releases that they need. */
const CLOSE_MS = 1_000;

export function runLeases({ rt, leases, ownsStore }: OpenedLeases): RunLeases {
  const { store, events, tracing } = rt;
  const acquire: RunLeases['acquire'] = (key, options) =>
    tracedAcquire(tracing, leaseAttributes(key, options), () => leases.acquire(key, options));
  return {
    acquire,
    once: (key, options, work) => once(rt, { acquire }, { key, options }, work),
    pool: (name, options) => new Pool(rt, leases, name, options),
    inspect: async (key) => {
      const [reply] = await store.leases.read([LEASE_CLASSES.lease.keyspace + key], CALL);
      if (reply === undefined || reply.kind === 'failed')
        throw reply?.error ?? new ClosedError({ operation: 'inspect' });
      return reply;
    },
    maxTtl: () => store.bounds?.read(CALL) ?? Promise.resolve({}),
    on: (name, listener) => events.on(name, listener),
    close: async () => {
      await leases.close(0, CLOSE_MS);
      if (ownsStore) await store.close();
    },
  };
}
