import { LONGEST_TTL_MS, type TimingOptions } from './timings.ts';

/**
 * Kinds of work that share the kernel but not their timings. A class has key names of its own, and quarantine of its
 * own: after the store has forgotten, each class waits out the longest TTL it has used, not another's.
 */
export interface LeaseClass {
  readonly name: string;
  /** What stands before a key of this class in the store. */
  readonly keyspace: string;
  readonly timings: TimingOptions;
  readonly longestTtlMs: number;
  /** How long a successor has to claim what was transferred to it. */
  readonly claimWindowMs: number;
}

export type LeaseClassName = 'lease' | 'poll' | 'resource' | 'workflow';

export const LEASE_CLASSES: Record<LeaseClassName, LeaseClass> = {
  /** What `acquire` and `withLease` use unless told otherwise. `maxTtl` of `open` sets how long its TTLs may be. */
  lease: {
    name: 'lease',
    keyspace: 'lease:',
    timings: { ttl: '30s' },
    longestTtlMs: LONGEST_TTL_MS,
    claimWindowMs: 2_000,
  },
  /** Poll targets; the key names are shared with other programs. */
  poll: {
    name: 'poll',
    keyspace: 'poll:lease:',
    timings: { ttl: '30s', renewEvery: '10s', guard: '1.5s' },
    longestTtlMs: LONGEST_TTL_MS,
    claimWindowMs: 2_000,
  },
  /** Scarce things that processes drive: the guard covers killing a process group, which takes up to 5 s. */
  resource: {
    name: 'resource',
    keyspace: 'lease:',
    timings: { ttl: '30s', renewEvery: '10s', guard: '7s', operationTimeout: '4s' },
    longestTtlMs: LONGEST_TTL_MS,
    claimWindowMs: 2_000,
  },
  /** Long tenures, renewed when less than 60 s remain. */
  workflow: {
    name: 'workflow',
    keyspace: 'workflow:lease:',
    timings: { ttl: '300s', renewEvery: '240s', guard: '5s' },
    longestTtlMs: LONGEST_TTL_MS,
    claimWindowMs: 30_000,
  },
};
