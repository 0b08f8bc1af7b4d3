/**
 * What the store knows of one session, as this worker has seen it last, and the one way to change it: from the revision seen, one change after the
 * other. Who finds that somebody else was faster looks at what came of that, and decides anew.
 */
import { KeyForeignError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import {
  type IntentSession,
  mayFollow,
  NO_STATUS,
  type SessionStatus,
  sessionOf,
} from '../intents/intent-session.ts';
import { readable } from '../intents/session-reading.ts';
import type { SessionState, StoredSession } from '../store/port/intent-store.ts';
import type { Store } from '../store/port/store.ts';

const CALL = { timeoutMs: 2_000 };

export interface SessionFileParts {
  readonly store: Store;
  readonly events: Emitter;
  readonly instanceId: string;
}

export class SessionRecord {
  readonly id: string;
  readonly #parts: SessionFileParts;
  #session: IntentSession;
  #isThere = true;
  /** What was read last is older than what was seen before. */
  #wasOlder = false;
  #writing: Promise<unknown> = Promise.resolve();

  /** Throws `SESSION_UNREADABLE` for what is no session. */
  constructor(parts: SessionFileParts, stored: StoredSession) {
    this.#parts = parts;
    this.id = stored.id;
    this.#session = sessionOf(stored);
  }

  get session(): IntentSession {
    return this.#session;
  }

  /** There, and not ended. */
  get isOpen(): boolean {
    return this.#isThere && this.#session.state !== 'ENDED';
  }

  /** And said to be this worker's. */
  get isMine(): boolean {
    return this.isOpen && this.#session.worker === this.#parts.instanceId;
  }

  /**
   * What was read of it; null: it is not there any more. What is older than what was seen before is believed when it is said once more:
   * answers may come in another order than they were asked for, and a store that has failed over may have lost the last changes.
   */
  see(stored: StoredSession | null): void {
    if (stored === null) {
      this.#isThere = false;
      return;
    }
    const isOlder = stored.revision < this.#session.revision;
    if (isOlder && !this.#wasOlder) this.#wasOlder = true;
    else this.#believe(stored);
  }

  /**
   * Changes state and status from what was seen last, if that still allows it. False if it does not, or somebody else was faster: what
   * came of that is seen now. Throws what the store does; after an unknown outcome asking once more finds out.
   */
  write(
    state: SessionState,
    change: Partial<SessionStatus>,
    mayStill: () => boolean,
  ): Promise<boolean> {
    const writing = this.#writing.then(() => mayStill() && this.#write(state, change));
    this.#writing = writing.catch(() => {});
    return writing;
  }

  #believe(stored: StoredSession): void {
    this.#isThere = true;
    this.#wasOlder = false;
    // What it was made with never changes, and what this worker has said of it still counts: it is ended as it should be.
    const { state, revision, clients, changedAtMs } = stored;
    const kept = { ...this.#session, state, revision, clients, changedAtMs };
    this.#session = readable(this.#parts.events, stored) ?? kept;
  }

  async #write(state: SessionState, change: Partial<SessionStatus>): Promise<boolean> {
    const { store, events } = this.#parts;
    const before = this.#session;
    if (!this.#isThere || (state !== before.state && !mayFollow(before.state, state))) return false;
    const status = JSON.stringify({ ...statusOf(before), ...change });
    const step = { ifRevision: before.revision, state, status };
    const reply = await store.intents.advance(this.id, step, CALL).catch((error: unknown) => {
      // Another program has put something else in its place: there is no session any more, and nobody to be told.
      if (error instanceof KeyForeignError) return { kind: 'absent' } as const;
      throw error;
    });
    if (reply.kind === 'absent') {
      this.see(null);
      return false;
    }
    // Writes come one after the other, and so do their answers.
    this.#believe(reply.session);
    const { tenant, reason } = this.#session;
    // An answer that was lost: it had been carried out.
    const isSame = reply.session.state === state && reply.session.status === status;
    if (reply.kind === 'conflict' && !isSame) return false;
    if (state !== before.state)
      events.emit('session.advanced', { session: this.id, tenant, state, reason });
    return true;
  }
}

/** What its workers have said of it. */
function statusOf(session: IntentSession): SessionStatus {
  const { reason, outcome, worker, slot, losses, group, progress, detail } = session;
  return {
    ...NO_STATUS,
    ...{ reason, outcome, worker, slot },
    ...(losses !== undefined && { losses }),
    ...(group !== undefined && { group }),
    ...(progress !== undefined && { progress }),
    ...(detail !== undefined && { detail }),
  };
}
