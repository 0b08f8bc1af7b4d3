import type { Call } from './store.ts';

export interface MemberStore {
  /** Records that a member lives, for `ttlMs` more, with its attributes. */
  beat(member: Member, call: BeatCall): Promise<void>;
  /** Removes a member. */
  leave(id: string, call: Call): Promise<void>;
  /**
   * The members that live now. With `thorough`, also those that another program has entered: that
   * walks the keyspace, so do it rarely.
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
  /** Null for a member that is a non-Holdfast program. */
  readonly attributes: Readonly<Record<string, unknown>> | null;
  /** Infinity for a heartbeat without expiry, which only another program writes. */
  readonly expiresInMs: number;
}
