import type { BusyReason, LossReason } from './errors.ts';
import type { Gap } from './gap.ts';

/** Why a tenure went from `held` to `uncertain`. */
export type DoubtReason = 'renewal_failed' | 'clock_jump';

/** A lease in events. Names are unique within a class only. */
export interface LeaseFacts {
  leaseClass: string;
  key: string;
  holder: string;
  fence: number;
}

/**
 * The one catalogue of events. Logs, metrics and tests subscribe to it; there is no second source
 * of truth. `docs/events.md` names each.
 */
export interface Events {
  'lease.acquired': LeaseFacts & {
    ttlMs: number;
    remainingMs: number;
    waitedMs: number;
    /** How long the request took: the store made the grant within this time before the event. */
    tookMs: number;
  };
  'lease.refused': LeaseFacts & { by: string; reason: BusyReason; expiresInMs: number };
  'lease.renewed': { leaseClass: string; count: number; tookMs: number };
  /** One lease of a renewed batch. Emitted only if it has a listener. */
  'lease.extended': LeaseFacts & { remainingMs: number };
  'lease.uncertain': LeaseFacts & { reason: DoubtReason; remainingMs: number };
  'lease.confirmed': LeaseFacts;
  'lease.reasserted': LeaseFacts;
  'lease.releasing': LeaseFacts;
  'lease.released': LeaseFacts & {
    /**
     * Until the release was sent: from then on the holder could not act. Null for a holder that
     * uses the HTTP API: only its own process knows.
     */
    heldForMs: number | null;
    /** How long the key stays taken after that; 0 unless `keepFor` asks for it. */
    keptForMs: number;
  };
  'lease.abandoned': LeaseFacts & { heldForMs: number; why: string };
  /** `heldForMs` is null as in `lease.released`. */
  'lease.transferred': LeaseFacts & { successor: string; heldForMs: number | null };
  /**
   * `lateMs`: how long after its deadline the holder noticed. If it is long, the process stood
   * still.
   */
  'lease.lost': LeaseFacts & { reason: LossReason; heldForMs: number; lateMs: number };
  'lease.revoked': LeaseFacts & { reason: string; force: boolean; mayActForMs: number };
  'lease.returned': LeaseFacts;
  /** Leases that may be held in this instance's name and are left to expire. */
  'lease.unreturned': { count: number; why: string };
  'leader.elected': { election: string; holder: string; fence: number };
  'leader.lost': { election: string; fence: number; reason: LossReason | 'failed' | 'stopped' };
  'leader.failed': { election: string; error: unknown };
  'member.joined': { member: string; isForeign: boolean };
  /** `left`: the member said so, or its heartbeat was removed. `expired`: its heartbeat expired. */
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
   * This instance took a target. `first`: it knew of no owner before. `handover`: `from` gave the
   * target to this instance, or released it early. `failover`: the lease of `from` expired, or was
   * revoked. The `Gap` says how long no instance worked on the target; for a handover it begins
   * when the offer arrived.
   */
  'target.taken': Gap & {
    target: string;
    fence: number;
    from: string | null;
    how: 'first' | 'handover' | 'failover';
  };
  /**
   * The instance cannot read the fleet, or send its heartbeat. It keeps its targets while it
   * can, and retries.
   */
  'fleet.stalled': { error: unknown };
  'fleet.resumed': { afterMs: number };
  /** Targets that other programs write into the store cannot be found for now. */
  'discovery.failed': { error: unknown };
  'session.added': { session: string };
  'session.changed': { session: string };
  'session.paused': { session: string };
  'session.resumed': { session: string };
  'session.removed': { session: string };
  /** `tenant`: for a session that an intent started; null if it cannot be read either. */
  'session.unreadable': { session: string; why: string; tenant?: string | null };
  /** A session that an intent started changed its state. */
  'session.advanced': { session: string; tenant: string; state: string; reason: string | null };
  /**
   * Another worker continues the session, because its worker was lost, or left it (then `from` is
   * null).
   */
  'session.recovered': { session: string; tenant: string; from: string | null };
  'pipeline.started': { session: string; tenant: string; slot: string | null; fence: number };
  /**
   * `isGone`: no process of the pipeline is left. If one is, the leases of the session are left to
   * expire.
   */
  'pipeline.ended': {
    session: string;
    tenant: string;
    slot: string | null;
    how: 'completed' | 'failed' | 'stopped';
    /** The message or exit code of a pipeline that failed. */
    why: string | null;
    isGone: boolean;
    tookMs: number;
  };
  /** The pipeline failed, or its time limit was over. It is started again in `inMs`. */
  'pipeline.retried': {
    session: string;
    tenant: string;
    /** The number of the next try. */
    attempt: number;
    why: string | null;
    inMs: number;
  };
  /** The pipeline was told to end, and still runs. Its leases are kept until it has ended. */
  'pipeline.stuck': { session: string; tenant: string; runsForMs: number };
  /** A killed worker was restarted under its name. The leases of the dead process are free. */
  'worker.reclaimed': { worker: string; predecessor: string; count: number };
  /** The worker cannot take or read sessions. It retries automatically. */
  'worker.stalled': { error: unknown };
  'worker.resumed': { afterMs: number };
  'intent.accepted': { session: string; tenant: string; type: string; client: string };
  /** The session existed already. */
  'intent.replayed': { session: string; tenant: string; type: string; client: string };
  'intent.refused': { tenant: string; type: string; client: string; why: string };
  /** The stream had lost the start of a session that waits for a worker. */
  'intent.republished': { session: string; tenant: string };
  /**
   * Sessions of a kind have waited for a worker for half a minute or longer: no worker takes the
   * kind, or all of them are busy.
   */
  'intent.waiting': { kind: string; count: number; waitedMs: number };
  'sweep.failed': { error: unknown };
  /** How many expired entries retention removed. Emitted only if there were any. */
  'retention.swept': { sessions: number; deadLetters: number; entries: number };
  /** No secret for idempotency is configured. A new one was created in the store. */
  'secret.created': Record<string, never>;
  /** Another instance has, or had, a secret that this instance does not know. */
  'secret.differs': Record<string, never>;
  'poll.done': { target: string; fence: number; tookMs: number };
  'poll.failed': { target: string; fence: number; tookMs: number; why: string };
  /**
   * The poll was told to stop, and still runs. Its target is not polled again, nor handed over,
   * until it ends.
   */
  'poll.stuck': { target: string; fence: number; runsForMs: number };
  'poll.settled': { target: string; fence: number; tookMs: number };
  'run.started': { target: string; fence: number };
  /** A task returned (`why: null`) or threw. It starts again after `restartInMs`. */
  'run.exited': {
    target: string;
    fence: number;
    ranForMs: number;
    why: string | null;
    restartInMs: number;
    /** How often in a row. */
    exits: number;
  };
  /** A task that was told to stop has stopped. */
  'run.ended': { target: string; fence: number; ranForMs: number };
  /** A task has made no progress for `stuckAfter`. `isStopped`: it was told to stop, too. */
  'run.silent': { target: string; fence: number; silentForMs: number; isStopped: boolean };
  /** A silent task makes progress again. */
  'run.resumed': { target: string; fence: number };
  /**
   * A task was told to stop, and still runs. Its target is not handed over until it ends; see
   * `onStuck` and `maxHold`.
   */
  'run.stuck': { target: string; fence: number; runsForMs: number };
  /** A stuck task has stopped. */
  'run.settled': { target: string; fence: number; ranForMs: number };
  /** A result came after the target had moved to another owner. */
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
  'workflow.started': { workflow: string; function: string };
  'workflow.signalled': { workflow: string; signal: string };
  /** `wakeInMs`: null if it waits for a signal alone. */
  'workflow.suspended': { workflow: string; function: string; wakeInMs: number | null };
  'workflow.completed': { workflow: string; function: string };
  /** `retryInMs`: null if it was the last try. */
  'workflow.failed': {
    workflow: string;
    function: string;
    tries: number;
    why: string;
    retryInMs: number | null;
  };
  /** A try of a workflow's step failed, and another follows. */
  'step.failed': { workflow: string; step: string; tries: number; why: string; retryInMs: number };
  'function.stalled': { function: string; error: unknown };
  'function.resumed': { function: string; afterMs: number };
  'workflow.revoked': { workflow: string; leaseId: string; reason: string; revokedAt: string };
  /** An action or a step was refused for its lease or its epoch. */
  'workflow.violation': Violation;
  /** An operator acted. `by` is the token, or the user of the command. */
  'operator.acted': {
    action: string;
    subject: string;
    /** The member that receives a target. */
    to: string | null;
    by: string;
    reason: string | null;
  };
  'action.emitted': ActionFacts & { leaseId: string; epoch: number };
  'action.started': ActionFacts & { fence: number; tries: number };
  'action.done': ActionFacts & { fence: number; tookMs: number };
  /** `retryInMs` is null if there is no other attempt; `isDead`: because there were too many. */
  'action.failed': ActionFacts & {
    fence: number;
    tries: number;
    why: string;
    retryInMs: number | null;
    isDead: boolean;
  };
  /** Another processor has the action now. The outcome of this attempt does not count. */
  'action.gone': ActionFacts & { fence: number };
  /**
   * The handler was told to stop, and still runs after its claim ended. The action is tried again
   * elsewhere.
   */
  'action.stuck': ActionFacts & { fence: number; tries: number; runsForMs: number };
  /** The processor cannot take actions, or report their outcomes. It retries automatically. */
  'processor.stalled': { processor: string; error: unknown };
  'processor.resumed': { processor: string; afterMs: number };
  'log.dropped': { count: number; error: unknown };
  /** The shared log has an entry that is no event. Readers skip it; the first one is reported. */
  'log.unreadable': { position: string };
  'loop.delayed': { lateMs: number };
  'store.connected': { store: string };
  'store.disconnected': { store: string; why: string };
  'store.forgot': { store: string; why: string };
  'store.quarantined': { store: string; keyspace: string; leftMs: number };
  /** A non-Holdfast program has written under a key. Readers skip it; each key is reported once. */
  'store.unreadable': { key: string; found: string };
  'store.warned': { store: string; finding: string; advice: string };
  'listener.failed': { event: string; error: unknown };
}

export interface ActionFacts {
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

/**
 * Delivers events to its listeners, in order, synchronously. A listener that throws does not affect
 * the others.
 */
/** Takes events beside the listeners, such as a channel of the platform. */
export interface EventPublisher {
  /** Whether the event has a subscriber there. Asked for every event, so it has to be fast. */
  wants(name: EventName): boolean;
  publish(name: EventName, facts: Events[EventName]): void;
}

export class Emitter {
  readonly #listeners = new Map<EventName, Set<(facts: never) => void>>();
  readonly #publisher: EventPublisher | null;

  constructor(publisher: EventPublisher | null = null) {
    this.#publisher = publisher;
  }

  /** Subscribes; the function returned unsubscribes. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    const known = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, known);
    known.add(listener);
    return () => known.delete(listener);
  }

  /** For frequent events: without a listener, the caller need not build the facts. */
  hasListener(name: EventName): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0 || this.#publisher?.wants(name) === true;
  }

  emit<N extends EventName>(name: N, facts: Events[N]): void {
    if (this.#publisher?.wants(name)) this.#publisher.publish(name, facts);
    const known = this.#listeners.get(name);
    if (known === undefined || known.size === 0) return;
    for (const listener of [...known]) {
      try {
        (listener as Listener<N>)(facts);
      } catch (error) {
        // Ownership must not depend on a logger that works.
        if (name !== 'listener.failed') this.emit('listener.failed', { event: name, error });
      }
    }
  }
}
