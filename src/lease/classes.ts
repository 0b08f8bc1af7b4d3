import { KEYSPACES } from '../store/port/keyspaces.ts';
import type { TimingOptions } from './timings.ts';

/**
 * Kinds of work that share the kernel but not their timings. `lease` and `resource` share a keyspace: a key is held by one
 * holder, whichever of the two classes it was acquired with.
 */
export interface LeaseClass {
  readonly name: string;
  /** What stands before a key of this class in the store. */
  readonly keyspace: string;
  readonly timings: TimingOptions;
  /** How long a successor has to claim what was transferred to it. */
  readonly claimWindowMs: number;
}

export type LeaseClassName = 'lease' | 'poll' | 'resource' | 'workflow';

export const LEASE_CLASSES: Record<LeaseClassName, LeaseClass> = {
  /** What `acquire` and `withLease` use unless told otherwise. */
  lease: {
    name: 'lease',
    keyspace: KEYSPACES.lease,
    timings: { ttl: '30s' },
    claimWindowMs: 2_000,
  },
  /** Poll targets; the key names are shared with other programs. */
  poll: {
    name: 'poll',
    keyspace: KEYSPACES.poll,
    timings: { ttl: '30s', renewEvery: '10s', guard: '1.5s' },
    claimWindowMs: 2_000,
  },
  /** Scarce things that processes drive: the guard covers killing a process group, which takes up to 5 s. */
  resource: {
    name: 'resource',
    keyspace: KEYSPACES.lease,
    timings: { ttl: '30s', renewEvery: '10s', guard: '7s', operationTimeout: '4s' },
    claimWindowMs: 2_000,
  },
  /** Long tenures, renewed when less than 60 s remain. */
  workflow: {
    name: 'workflow',
    keyspace: KEYSPACES.workflow,
    timings: { ttl: '300s', renewEvery: '240s', guard: '5s' },
    claimWindowMs: 30_000,
  },
};
