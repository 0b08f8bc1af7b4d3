/**
 * One session as this worker last read it from the store, and the only way to change it. Each write
 * starts from the revision that was read last, and writes follow one another. A write that loses to
 * another writer takes over what that one wrote; the caller then decides again.
 */
import { KeyForeignError } from '../core/errors.ts';
import {
  type IntentSession,
  mayFollow,
  NO_STATUS,
  type SessionStatus,
  sessionOf,
} from '../intents/intent-session.ts';
import { readable } from '../intents/session-reading.ts';
import type { SessionState, StoredSession } from '../store/port/intent-store.ts';
import type { Runtime } from '../store/runtime.ts';

const CALL = { timeoutMs: 2_000 };

export class SessionRecord {
  readonly id: string;
  readonly #rt: Pick<Runtime, 'store' | 'events' | 'instanceId'>;
  #session: IntentSession;
  #exists = true;
  /** The revision that was read last is older than the one before it. */
  #wasOlder = false;
  #writing: Promise<unknown> = Promise.resolve();

  /** Throws `SESSION_UNREADABLE` if `stored` is not a valid session. */
  constructor(rt: Pick<Runtime, 'store' | 'events' | 'instanceId'>, stored: StoredSession) {
    this.#rt = rt;
    this.id = stored.id;
    this.#session = sessionOf(stored);
  }

  get session(): IntentSession {
    return this.#session;
  }

  /** The session exists and has not ended. */
  get isOpen(): boolean {
    return this.#exists && this.#session.state !== 'ENDED';
  }

  /** The session is open, and the store names this worker as its worker. */
  get isMine(): boolean {
    return this.isOpen && this.#session.worker === this.#rt.instanceId;
  }

  /**
   * Takes over a revision read from the store; null means that the session was removed.
   *
   * An older revision is ignored once: answers may arrive out of order. Read a second time it is
   * accepted, because after a failover the store may have lost the newer one.
   */
  refresh(stored: StoredSession | null): void {
    if (stored === null) {
      this.#exists = false;
      return;
    }
    const isOlder = stored.revision < this.#session.revision;
    if (isOlder && !this.#wasOlder) this.#wasOlder = true;
    else this.#accept(stored);
  }

  /**
   * Writes state and status over the revision that was read last, if `mayStill` and the state allow
   * it. False: they do not, or another writer was faster; `session` then has what that one wrote.
   * Throws what the store throws. After an unknown outcome, another write finds out.
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

  #accept(stored: StoredSession): void {
    this.#exists = true;
    this.#wasOlder = false;
    // The body never changes. If the record has become unreadable, the status that this worker
    // knows still counts, so that the session ends with the right reason.
    const { state, revision, clients, changedAtMs } = stored;
    const kept = { ...this.#session, state, revision, clients, changedAtMs };
    this.#session = readable(this.#rt.events, stored) ?? kept;
  }

  async #write(state: SessionState, change: Partial<SessionStatus>): Promise<boolean> {
    const { store, events } = this.#rt;
    const before = this.#session;
    if (!this.#exists || (state !== before.state && !mayFollow(before.state, state))) return false;
    const status = JSON.stringify({ ...statusOf(before), ...change });
    const { revision: ifRevision, changedAtMs: ifChangedAtMs } = before;
    const step = { ifRevision, ifChangedAtMs, state, status };
    const reply = await store.intents.advance(this.id, step, CALL).catch((error: unknown) => {
      // Another program has overwritten the session with something else: it does not exist any
      // more.
      if (error instanceof KeyForeignError) return { kind: 'absent' } as const;
      throw error;
    });
    if (reply.kind === 'absent') {
      this.refresh(null);
      return false;
    }
    // Writes follow one another, so the answer to the last one is the newest revision.
    this.#accept(reply.session);
    const { tenant, reason } = this.#session;
    // A conflict with exactly this write: it was carried out before, and its answer was lost.
    const isSame = reply.session.state === state && reply.session.status === status;
    if (reply.kind === 'conflict' && !isSame) return false;
    if (state !== before.state)
      events.emit('session.advanced', { session: this.id, tenant, state, reason });
    return true;
  }
}

/** The part of a session that its workers write. JSON leaves out undefined fields. */
function statusOf(session: IntentSession): Record<keyof SessionStatus, unknown> {
  const { reason, outcome, worker, slot, losses, failures, group, progress, detail } = session;
  const counts = { losses, failures };
  return { ...NO_STATUS, reason, outcome, worker, slot, ...counts, group, progress, detail };
}
