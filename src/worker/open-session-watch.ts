/**
 * Watches open sessions: those that this worker runs, because their clients may stop them, and
 * those of other workers. If the lease of a session is free, its worker is dead, and this one
 * recovers it.
 *
 * Hints tell of changes. Reads find the changes that hints miss: of the own sessions every few
 * seconds, of all open sessions every half minute. The lease of another worker's session is read
 * again when it would expire: a living worker has renewed it by then. A session whose lease is free
 * is read once more after a pause, because a worker that is just ending it holds no lease for a
 * moment either. A worker that has claimed a session, and has not acquired its lease yet, gets the
 * time of a TTL: nothing runs meanwhile. If two workers recover the same session, its lease decides
 * between them.
 */
import { Loop } from '../core/loop.ts';
import { type TimerEntry, TimerHeap } from '../core/timer-heap.ts';
import { dedupKey } from '../intents/dedup-key.ts';
import { readable, readSessions } from '../intents/session-reading.ts';
import { openSessions, putBackLost } from '../intents/start-recovery-loop.ts';
import { LEASE_CLASSES } from '../lease/timings.ts';
import { SESSION_CHANGES_TOPIC, type StoredSession } from '../store/port/intent-store.ts';
import type { ReadReply } from '../store/port/lease-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { Subscription } from '../store/subscription.ts';
import type { SessionRunSet } from './session-run-set.ts';

/** How often all open sessions are read, and how often those that this worker runs. */
const ALL_EVERY_MS = 30_000;
const OWN_EVERY_MS = 3_000;
/** A lease that was held and is free is still free after this, or its session is not recovered. */
const RECHECK_MS = 300;
/** A lease is read this much after it would expire: the store counts whole milliseconds. */
const AFTER_EXPIRY_MS = 5;
/** A lease is read again after this, however long its TTL is. */
const MAX_RECHECK_MS = 60_000;
/** When to try again if this worker has no room, or a lease could not be read. */
const RETRY_MS = 500;
/** Sessions in one request. */
const BATCH = 500;
const CALL = { timeoutMs: 5_000 };
const { keyspace } = LEASE_CLASSES.resource;

/** A session of another worker. */
interface WatchedSession extends TimerEntry {
  stored: StoredSession;
  /** The key of its lease. */
  readonly key: string;
  worker: string | null;
  /** `worker` was seen to hold the lease. */
  wasHeld: boolean;
  /** The revision at which the lease was found free; null: it was held when it was read last. */
  freeAtRevision: number | null;
}

export class OpenSessionWatch {
  readonly #rt: Runtime;
  readonly #runs: SessionRunSet;
  readonly #ttlMs: number;
  readonly #loop: Loop;
  readonly #hints: Subscription;
  readonly #others = new Map<string, WatchedSession>();
  readonly #schedule: TimerHeap<WatchedSession>;
  /** Sessions whose lease is to be read in the next round. */
  #due: WatchedSession[] = [];
  /** Sessions that are to be read in the next round. */
  #changed = new Set<string>();
  #allDueAtMs = 0;
  #ownDueAtMs = 0;
  #isStopped = false;

  /** `ttlMs`: how long another worker may take to acquire the lease of a session it has claimed. */
  constructor(rt: Runtime, runs: SessionRunSet, ttlMs: number) {
    this.#rt = rt;
    this.#runs = runs;
    this.#ttlMs = ttlMs;
    this.#schedule = new TimerHeap(rt.clock, () => {
      this.#due.push(...this.#schedule.takeDue(rt.clock.monotonicMs()));
      this.#loop.wake();
    });
    this.#loop = new Loop(rt, {
      everyMs: OWN_EVERY_MS,
      round: () => this.#round(),
      onStalled: (error) => rt.events.emit('worker.stalled', { error }),
      onResumed: (afterMs) => rt.events.emit('worker.resumed', { afterMs }),
    });
    this.#hints = new Subscription(rt, SESSION_CHANGES_TOPIC, (id) => {
      if (id !== null) this.refresh(id);
      else {
        this.#allDueAtMs = 0;
        this.#loop.wake();
      }
    });
  }

  async start(): Promise<void> {
    await this.#hints.open();
    // `stop` may have been called meanwhile.
    if (!this.#isStopped) await this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#hints.close();
    await this.#loop.stop();
    // Last, because a round that was under way schedules the next reads.
    this.#schedule.clear();
  }

  /** Reads the session soon: it has changed, or this worker runs it no longer. */
  refresh(id: string): void {
    this.#changed.add(id);
    this.#loop.wake();
  }

  async #round(): Promise<undefined> {
    const nowMs = this.#rt.clock.monotonicMs();
    await this.#hints.open();
    const changed = this.#changed;
    this.#changed = new Set();
    try {
      if (nowMs >= this.#ownDueAtMs) for (const id of this.#runs.ids) changed.add(id);
      if (nowMs >= this.#allDueAtMs) await this.#readAll();
      await this.#read([...changed]);
      this.#ownDueAtMs = nowMs >= this.#ownDueAtMs ? nowMs + OWN_EVERY_MS : this.#ownDueAtMs;
      await this.#readLeases(this.#due.splice(0));
    } catch (error) {
      for (const id of changed) this.#changed.add(id);
      throw error;
    }
    return undefined;
  }

  async #readAll(): Promise<void> {
    const startMs = this.#rt.clock.monotonicMs();
    const found = new Set<string>();
    for await (const { sessions } of openSessions(this.#rt)) {
      for (const stored of sessions) {
        found.add(stored.id);
        this.#update(stored.id, stored);
      }
      await putBackLost(this.#rt, sessions);
      if (this.#isStopped) return;
    }
    for (const id of this.#others.keys()) if (!found.has(id)) this.#forget(id);
    this.#allDueAtMs = startMs + ALL_EVERY_MS;
  }

  async #read(ids: readonly string[]): Promise<void> {
    for (let i = 0; i < ids.length; i += BATCH) {
      const batch = ids.slice(i, i + BATCH);
      const found = await readSessions(this.#rt, batch, CALL);
      for (const [j, id] of batch.entries()) this.#update(id, found[j] ?? null);
    }
  }

  #update(id: string, stored: StoredSession | null): void {
    // A NEW session waits for a worker in the stream of starts.
    const isIdle = stored === null || stored.state === 'ENDED' || stored.state === 'NEW';
    if (this.#runs.refresh(id, stored) || isIdle || !this.#runs.mayRecover(stored)) {
      this.#forget(id);
      return;
    }
    const known = this.#others.get(id);
    if (known?.stored.revision === stored.revision) return;
    const session = readable(this.#rt.events, stored);
    // No worker can continue an unreadable session before it is corrected.
    if (session === null) {
      this.#forget(id);
      return;
    }
    const watched = known ?? this.#watch(stored, keyspace + dedupKey(session));
    watched.stored = stored;
    if (watched.worker !== session.worker) watched.wasHeld = false;
    watched.worker = session.worker;
    if (session.worker !== null) return;
    // Its worker has left the session: it can be recovered at once.
    watched.freeAtRevision = stored.revision;
    this.#schedule.schedule(watched, this.#rt.clock.monotonicMs());
  }

  #watch(stored: StoredSession, key: string): WatchedSession {
    const watched: WatchedSession = {
      stored,
      key,
      worker: null,
      wasHeld: false,
      freeAtRevision: null,
      dueAtMs: 0,
      index: -1,
    };
    this.#others.set(stored.id, watched);
    this.#schedule.schedule(watched, this.#rt.clock.monotonicMs() + RECHECK_MS);
    return watched;
  }

  #forget(id: string): void {
    const watched = this.#others.get(id);
    if (watched === undefined) return;
    this.#others.delete(id);
    this.#schedule.remove(watched);
  }

  async #readLeases(due: readonly WatchedSession[]): Promise<void> {
    for (let i = 0; i < due.length; i += BATCH) {
      const batch = due.slice(i, i + BATCH);
      try {
        const keys = batch.map(({ key }) => key);
        const leases = await this.#rt.store.leases.read(keys, CALL);
        for (const [j, watched] of batch.entries()) this.#decide(watched, leases[j]);
      } catch (error) {
        const laterMs = this.#rt.clock.monotonicMs() + RETRY_MS;
        for (const watched of due.slice(i)) this.#schedule.schedule(watched, laterMs);
        throw error;
      }
    }
  }

  /** Recovers the session if its lease is free, or schedules the next read of the lease. */
  #decide(watched: WatchedSession, lease: ReadReply | undefined): void {
    const { stored } = watched;
    const { id, revision } = stored;
    if (this.#others.get(id) !== watched) return;
    const nowMs = this.#rt.clock.monotonicMs();
    const isHeld = lease?.kind === 'held' && lease.holder.endsWith(`/${id}`);
    if (isHeld || lease === undefined || lease.kind === 'failed') {
      const leftMs = isHeld ? Math.min(lease.expiresInMs, MAX_RECHECK_MS) : RETRY_MS;
      watched.freeAtRevision = null;
      watched.wasHeld ||= isHeld;
      this.#schedule.schedule(watched, nowMs + leftMs + AFTER_EXPIRY_MS);
    } else if (watched.freeAtRevision !== revision) {
      watched.freeAtRevision = revision;
      const hasBegun = watched.wasHeld || stored.state !== 'STARTING';
      this.#schedule.schedule(watched, nowMs + (hasBegun ? RECHECK_MS : this.#ttlMs));
    } else if (this.#runs.recover(stored)) this.#forget(id);
    else this.#schedule.schedule(watched, nowMs + RETRY_MS);
  }
}
