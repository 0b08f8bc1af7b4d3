import type { BusyReason, LossReason } from './errors.ts';
import type { Gap } from './gap.ts';

/** Why a tenure went from `held` to `uncertain`. */
export type DoubtReason = 'renewal_failed' | 'clock_jump';

/** A lease in events. Names are unique within a class only. */
interface LeaseFacts {
  leaseClass: string;
  key: string;
  holder: string;
  fence: number;
}

/**
 * The one catalogue of what can happen. Logs, metrics and tests subscribe to it; there is no second source of truth.
 * `docs/events.md` has a line per name.
 */
export interface Events {
  'lease.acquired': LeaseFacts & { ttlMs: number; remainingMs: number; waitedMs: number };
  'lease.refused': LeaseFacts & { by: string; reason: BusyReason; expiresInMs: number };
  'lease.renewed': { leaseClass: string; count: number; tookMs: number };
  /** One of a batch; told only where somebody listens. */
  'lease.extended': LeaseFacts & { remainingMs: number };
  'lease.uncertain': LeaseFacts & { reason: DoubtReason; remainingMs: number };
  'lease.confirmed': LeaseFacts;
  'lease.reasserted': LeaseFacts;
  'lease.releasing': LeaseFacts;
  'lease.released': LeaseFacts & { heldForMs: number };
  'lease.abandoned': LeaseFacts & { heldForMs: number; why: string };
  'lease.transferred': LeaseFacts & { successor: string; heldForMs: number };
  /** `lateMs`: how long after its deadline the holder noticed. More than a moment: its process stood still. */
  'lease.lost': LeaseFacts & { reason: LossReason; heldForMs: number; lateMs: number };
  'lease.revoked': LeaseFacts & { reason: string; force: boolean; mayActForMs: number };
  'lease.returned': LeaseFacts;
  /** Leases that may be held in this instance's name and are left to expire. */
  'lease.unreturned': { count: number; why: string };
  'leader.elected': { election: string; holder: string; fence: number };
  'leader.lost': { election: string; fence: number; reason: LossReason | 'failed' | 'stopped' };
  'leader.failed': { election: string; error: unknown };
  'member.joined': { member: string; isForeign: boolean };
  /** `left`: it said so, or its heartbeat was removed. `expired`: its heartbeat ran out. */
  'member.left': { member: string; reason: 'left' | 'expired' };
  'member.draining': { member: string };
  'member.undrained': { member: string };
  'fleet.planned': {
    members: number;
    targets: number;
    quota: number;
    owned: number;
    tookMs: number;
  };
  'fleet.asked': { member: string; count: number };
  /**
   * A target became this instance's. `first`: nobody had it that this instance knew of. `handover`: `from` gave it to this instance, or
   * let it go before its time. `failover`: the lease of `from` expired, or was taken away. How long no owner worked on it, and what that is
   * made of, is a `Gap`; for a handover it begins when the offer was heard.
   */
  'target.taken': Gap & {
    target: string;
    fence: number;
    from: string | null;
    how: 'first' | 'handover' | 'failover';
  };
  /** The fleet can not be seen or told of: what is owned is kept while it can be, and the rest is tried again. */
  'fleet.stalled': { error: unknown };
  'fleet.resumed': { afterMs: number };
  /** What other programs put into the store is not found for now. */
  'discovery.failed': { error: unknown };
  'session.added': { session: string };
  'session.changed': { session: string };
  'session.paused': { session: string };
  'session.resumed': { session: string };
  'session.removed': { session: string };
  /** `tenant` where an intent has started it; null: that cannot be read either. */
  'session.unreadable': { session: string; why: string; tenant?: string | null };
  /** A session that came from an intent is in another state. */
  'session.advanced': { session: string; tenant: string; state: string; reason: string | null };
  /** Its worker was lost, or has left it (`from` is null then): another goes on with it. */
  'session.recovered': { session: string; tenant: string; from: string | null };
  'pipeline.started': { session: string; tenant: string; slot: string | null; fence: number };
  /** `isGone`: nothing of it is left. Where something is, its leases are left to run out. */
  'pipeline.ended': {
    session: string;
    tenant: string;
    slot: string | null;
    how: 'completed' | 'failed' | 'stopped';
    /** What it said, or its exit code, where it failed. */
    why: string | null;
    isGone: boolean;
    tookMs: number;
  };
  /** It was told to end, and has not: what it holds is kept until it has. */
  'pipeline.stuck': { session: string; tenant: string; runsForMs: number };
  /** A worker that was killed is back under its name: what the dead one held is free. */
  'worker.reclaimed': { worker: string; predecessor: string; count: number };
  /** Sessions can not be taken, or not be looked at; it goes on by itself. */
  'worker.stalled': { error: unknown };
  'worker.resumed': { afterMs: number };
  'intent.accepted': { session: string; tenant: string; type: string; client: string };
  /** The session was there already. */
  'intent.replayed': { session: string; tenant: string; type: string; client: string };
  'intent.refused': { tenant: string; type: string; client: string; why: string };
  /** It waited for a worker, and the stream that workers take from had lost it. */
  'intent.republished': { session: string; tenant: string };
  'sweep.failed': { error: unknown };
  /** Kept long enough, and forgotten: how many of each. Only where there were any. */
  'retention.swept': { sessions: number; deadLetters: number; entries: number };
  /** No secret for idempotency is configured: one was made, and is kept in the store. */
  'secret.created': Record<string, never>;
  /** Another instance is, or was, configured with a secret that this one does not know. */
  'secret.differs': Record<string, never>;
  'poll.done': { target: string; fence: number; tookMs: number };
  'poll.failed': { target: string; fence: number; tookMs: number; why: string };
  /** It was told to stop, and has not: its target is not polled again, nor handed over, until it has. */
  'poll.stuck': { target: string; fence: number; runsForMs: number };
  'poll.settled': { target: string; fence: number; tookMs: number };
  /** A result came after the target had gone to another owner. */
  'result.refused': { target: string; fence: number; seen: number };
  'result.failed': { count: number; error: unknown };
  'workflow.claimed': {
    workflow: string;
    leaseId: string;
    epoch: number;
    reemitted: number;
    dropped: number;
  };
  'workflow.updated': { workflow: string; leaseId: string; epoch: number; state: unknown };
  'workflow.transferred': {
    workflow: string;
    oldLeaseId: string;
    newLeaseId: string;
    transferEpoch: number;
  };
  'workflow.revoked': { workflow: string; leaseId: string; reason: string; revokedAt: string };
  /** An action, or a step, that its lease or its epoch did not allow. */
  'workflow.violation': Violation;
  /** Somebody has had something done: `by` says with which token, or whose command it was. */
  'operator.acted': {
    action: string;
    subject: string;
    /** To whom something goes by it: a member. */
    to: string | null;
    by: string;
    reason: string | null;
  };
  'action.emitted': ActionFacts & { leaseId: string; epoch: number };
  'action.started': ActionFacts & { fence: number; tries: number };
  'action.done': ActionFacts & { fence: number; tookMs: number };
  /** `retryInMs` is null where it is not tried again: `isDead` says whether for having been tried too often. */
  'action.failed': ActionFacts & {
    fence: number;
    tries: number;
    why: string;
    retryInMs: number | null;
    isDead: boolean;
  };
  /** It was given to another processor meanwhile: what came of it here does not count. */
  'action.gone': ActionFacts & { fence: number };
  /** Its handler was asked to stop, and still runs now that its claim is over: its place is another's, and the action is tried again. */
  'action.stuck': ActionFacts & { fence: number; tries: number; runsForMs: number };
  /** Actions can not be taken, or their outcomes not be brought in; it goes on by itself. */
  'processor.stalled': { processor: string; error: unknown };
  'processor.resumed': { processor: string; afterMs: number };
  'log.dropped': { count: number; error: unknown };
  /** The log that all instances share has an entry that is no event. It is skipped; told once, of the first. */
  'log.unreadable': { position: string };
  'loop.delayed': { lateMs: number };
  'store.connected': { store: string };
  'store.disconnected': { store: string; why: string };
  'store.forgot': { store: string; why: string };
  'store.quarantined': { store: string; keyspace: string; leftMs: number };
  /** Under a key lies something that is not Holdfast's. It is skipped; told once for each. */
  'store.unreadable': { key: string; found: string };
  'store.warned': { store: string; finding: string; advice: string };
  'listener.failed': { event: string; error: unknown };
}

interface ActionFacts {
  workflow: string;
  action: string;
  type: string;
  target: string;
}

export interface Violation {
  code: 'LEASE_VIOLATION' | 'STALE_EPOCH' | 'FUTURE_EPOCH' | 'LEASE_EXPIRED';
  workflow: string;
  /** The action concerned; null for a step of an orchestrator. */
  action: string | null;
  expectedLease: string | null;
  receivedLease: string | null;
  actionEpoch: number | null;
  currentEpoch: number | null;
}

export type EventName = keyof Events;
export type Listener<N extends EventName> = (facts: Events[N]) => void;

/** Delivers events to whoever listens, in order, synchronously. A listener that throws harms nobody but itself. */
export class Emitter {
  readonly #listeners = new Map<EventName, Set<(facts: never) => void>>();

  /** Subscribes; the function returned unsubscribes. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    const known = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, known);
    known.add(listener);
    return () => known.delete(listener);
  }

  /** For those who tell of something often: facts that nobody wants to hear need not be put together. */
  hasListener(name: EventName): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  emit<N extends EventName>(name: N, facts: Events[N]): void {
    const known = this.#listeners.get(name);
    if (known === undefined || known.size === 0) return;
    for (const listener of [...known]) {
      try {
        (listener as Listener<N>)(facts);
      } catch (error) {
        // Ownership must not depend on whether somebody's logger works.
        if (name !== 'listener.failed') this.emit('listener.failed', { event: name, error });
      }
    }
  }
}
