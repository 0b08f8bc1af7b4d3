/** redlock's statistics of attempts, by votes of clients. Here there is one client. */
import type { RedlockClient } from './client.ts';

export type ClientExecutionResult =
  | { client: RedlockClient; vote: 'for'; value: number }
  | { client: RedlockClient; vote: 'against'; error: Error };

/** One attempt. */
export interface ExecutionStats {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: Set<RedlockClient>;
  readonly votesAgainst: Map<RedlockClient, Error>;
}

export type Attempts = readonly Promise<ExecutionStats>[];

export interface ExecutionResult {
  attempts: Attempts;
}

const ONE_CLIENT = { membershipSize: 1, quorumSize: 1 } as const;

export function voteFor(client: RedlockClient): Promise<ExecutionStats> {
  return Promise.resolve({ ...ONE_CLIENT, votesFor: new Set([client]), votesAgainst: new Map() });
}

export function voteAgainst(client: RedlockClient, error: Error): Promise<ExecutionStats> {
  const votesAgainst = new Map([[client, error]]);
  return Promise.resolve({ ...ONE_CLIENT, votesFor: new Set(), votesAgainst });
}
