/** A store that a run is on. */
import type { Way } from './crew.ts';
import type { StoreFault } from './faults.ts';
import type { Entry } from './history.ts';
import type { Network } from './network.ts';

export interface Topology {
  readonly ways: readonly Way[];
  /** Of all servers that instances talk to. */
  readonly ports: readonly number[];
  readonly faults: readonly StoreFault[];
  /** Where servers and instances have namespaces: faults of links act on packets, without proxies. */
  readonly network?: Network;
  /** Whatever happens to it, it loses no grant, and so is never in quarantine. */
  readonly neverForgets?: boolean;
  /** Each of several servers has some of the keys. */
  readonly isSharded?: boolean;
  /**
   * What the store's database has committed so far: `commit.grant` and `commit.write`, numbered by
   * `order`.
   */
  commits?(): Promise<Entry[]>;
  stop(): Promise<void>;
}

/** The one that a number in [0, 1) chooses. */
export function oneOf<T>(all: readonly T[], pick: number): T {
  const one = all[Math.floor(pick * all.length)];
  if (one === undefined) throw new Error('there is none to choose from');
  return one;
}
