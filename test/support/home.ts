/** Where a process of a test runs: on this host as it is, or in a network namespace of its own. */
export interface Home {
  readonly name: string;
  /** Its servers listen there. */
  readonly address: string;
  /** Words in front of a command that has to run there. */
  readonly enter: readonly string[];
}

export const LOOPBACK: Home = { name: 'loopback', address: '127.0.0.1', enter: [] };
