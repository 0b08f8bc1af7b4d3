import type { Call } from './store.ts';

export interface MemberStore {
  /** Says that a member lives, for `ttlMs` more, and what it says of itself. */
  beat(member: Member, call: BeatCall): Promise<void>;
  /** Says that it does not any more. */
  leave(id: string, call: Call): Promise<void>;
  /**
   * Who lives now. With `thorough`, also whom another program has put there: that walks the
   * keyspace, so do it rarely.
   */
  list(call: MemberListCall): Promise<LiveMember[]>;
}

export interface Member {
  readonly id: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface BeatCall extends Call {
  readonly ttlMs: number;
}

export interface MemberListCall extends Call {
  readonly thorough?: boolean;
}

export interface LiveMember {
  readonly id: string;
  /** Null for a member of another make: its heartbeat is not an object of ours. */
  readonly attributes: Readonly<Record<string, unknown>> | null;
  /** Infinity for a heartbeat without expiry: somebody else's doing. */
  readonly expiresInMs: number;
}
