/**
 * Keeps an eye on sessions. On those in the hands of this worker, because their clients may want them stopped. And on those of others: when the
 * lease of one is nobody's, its worker is no more, and somebody has to go on with it.
 *
 * It is told of changes by signals; what these miss is found every few seconds for its own, and every half minute for all. A session of another is
 * looked at again when its lease would run out, as last seen: a worker that lives has renewed it by then. What is found in nobody's hands is looked
 * at once more, because who is just ending with it holds nothing for a moment either; and who has not begun with it, and may take as long as
 * its store does, is given the time of a lease: nothing runs then. If two are mistaken, or equally fast, the lease decides between them.
 */

import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { Loop } from '../core/loop.ts';
import type { Random } from '../core/random.ts';
import { type Entry, TimerHeap } from '../core/timer-heap.ts';
import { dedupKey } from '../intents/dedup-key.ts';
import { openSessions, putBackLost } from '../intents/open-sessions.ts';
import { readable, readSessions } from '../intents/session-reading.ts';
import { LEASE_CLASSES } from '../lease/classes.ts';
import { SESSION_CHANGES_TOPIC, type StoredSession } from '../store/port/intent-store.ts';
import type { ReadReply } from '../store/port/lease-store.ts';
import type { Store } from '../store/port/store.ts';
import { Subscription } from '../store/subscription.ts';

/** How often all open sessions are gone through, and how often its own. */
const ALL_EVERY_MS = 30_000;
const OWN_EVERY_MS = 3_000;
/** What is in nobody's hands, and was in somebody's, still has to be so after this. */
const SETTLED_MS = 300;
/** A lease that would run out is looked at a moment later: the store counts in whole milliseconds. */
const AFTER_EXPIRY_MS = 5;
/** However long a lease may last. */
const LONGEST_MS = 60_000;
/** When there is no room for one more. */
const NO_ROOM_MS = 500;
/** Sessions in one request. */
const BATCH = 500;
const CALL = { timeoutMs: 5_000 };
const { keyspace } = LEASE_CLASSES.resource;

export interface LookoutParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  /** How long another worker may take to begin with what it has claimed. */
  readonly patienceMs: number;
  /** The sessions that this worker has. */
  own(): Iterable<string>;
  /** What the store shows of one of them. False: it has it no more. */
  seen(id: string, stored: StoredSession | null): boolean;
  /** A session is nobody's. False: there is no room for it now. */
  recover(stored: StoredSession): boolean;
}

/** A session of another worker. */
interface Watched extends Entry {
  stored: StoredSession;
  key: string;
  worker: string | null;
  /** It was seen in the hands of that worker. */
  wasHeld: boolean;
  /** The revision at which it was found in nobody's hands. */
  nobodysAt: number | null;
}

export class SessionMonitor {
  readonly #parts: LookoutParts;
  readonly #chore: Loop;
  readonly #listening: Subscription;
  readonly #others = new Map<string, Watched>();
  readonly #agenda: TimerHeap<Watched>;
  /** Those whose lease is to be looked at now. */
  #due: Watched[] = [];
  #heard = new Set<string>();
  #allDueMs = 0;
  #ownDueMs = 0;
  #isStopped = false;

  constructor(parts: LookoutParts) {
    this.#parts = parts;
    this.#agenda = new TimerHeap(parts.clock, () => {
      this.#due.push(...this.#agenda.takeDue(parts.clock.monotonicMs()));
      this.#chore.wake();
    });
    this.#chore = new Loop(parts, {
      everyMs: OWN_EVERY_MS,
      round: () => this.#look(),
      onStalled: (error) => parts.events.emit('worker.stalled', { error }),
      onResumed: (afterMs) => parts.events.emit('worker.resumed', { afterMs }),
    });
    this.#listening = new Subscription(parts, SESSION_CHANGES_TOPIC, (id) => {
      if (id !== null) this.look(id);
      else {
        this.#allDueMs = 0;
        this.#chore.wake();
      }
    });
  }

  async start(): Promise<void> {
    await this.#listening.open();
    // It may have been told to stop meanwhile.
    if (!this.#isStopped) await this.#chore.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#listening.close();
    await this.#chore.stop();
    // Not before: a look that was under way plans the next ones.
    this.#agenda.clear();
  }

  /** This worker has one no more: others may. */
  look(id: string): void {
    this.#heard.add(id);
    this.#chore.wake();
  }

  async #look(): Promise<undefined> {
    const { clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    await this.#listening.open();
    const heard = this.#heard;
    this.#heard = new Set();
    try {
      if (nowMs >= this.#ownDueMs) for (const id of this.#parts.own()) heard.add(id);
      if (nowMs >= this.#allDueMs) await this.#lookAtAll();
      await this.#lookAt([...heard]);
      this.#ownDueMs = nowMs >= this.#ownDueMs ? nowMs + OWN_EVERY_MS : this.#ownDueMs;
      await this.#lookAtLeases(this.#due.splice(0));
    } catch (error) {
      for (const id of heard) this.#heard.add(id);
      throw error;
    }
    return undefined;
  }

  async #lookAtAll(): Promise<void> {
    const { clock } = this.#parts;
    const startMs = clock.monotonicMs();
    const found = new Set<string>();
    for await (const { sessions } of openSessions(this.#parts)) {
      for (const stored of sessions) {
        found.add(stored.id);
        this.#note(stored.id, stored);
      }
      await putBackLost(this.#parts, sessions);
      if (this.#isStopped) return;
    }
    for (const id of this.#others.keys()) if (!found.has(id)) this.#forget(id);
    this.#allDueMs = startMs + ALL_EVERY_MS;
  }

  async #lookAt(ids: readonly string[]): Promise<void> {
    for (let i = 0; i < ids.length; i += BATCH) {
      const batch = ids.slice(i, i + BATCH);
      const found = await readSessions(this.#parts, batch, CALL);
      for (const [j, id] of batch.entries()) this.#note(id, found[j] ?? null);
    }
  }

  #note(id: string, stored: StoredSession | null): void {
    // What waits for a worker is in the stream of starts.
    const isIdle = stored === null || stored.state === 'ENDED' || stored.state === 'NEW';
    if (this.#parts.seen(id, stored) || isIdle) {
      this.#forget(id);
      return;
    }
    const known = this.#others.get(id);
    if (known?.stored.revision === stored.revision) return;
    const session = readable(this.#parts.events, stored);
    // Nobody can go on with it before somebody has corrected it.
    if (session === null) {
      this.#forget(id);
      return;
    }
    const watched = known ?? this.#watch(stored, keyspace + dedupKey(session));
    watched.stored = stored;
    if (watched.worker !== session.worker) watched.wasHeld = false;
    watched.worker = session.worker;
    if (session.worker !== null) return;
    // Its worker has left it, and said so.
    watched.nobodysAt = stored.revision;
    this.#agenda.schedule(watched, this.#parts.clock.monotonicMs());
  }

  #watch(stored: StoredSession, key: string): Watched {
    const unknown = { worker: null, wasHeld: false, nobodysAt: null };
    const watched: Watched = { stored, key, ...unknown, dueMs: 0, slot: -1 };
    this.#others.set(stored.id, watched);
    this.#agenda.schedule(watched, this.#parts.clock.monotonicMs() + SETTLED_MS);
    return watched;
  }

  #forget(id: string): void {
    const watched = this.#others.get(id);
    if (watched === undefined) return;
    this.#others.delete(id);
    this.#agenda.remove(watched);
  }

  async #lookAtLeases(due: readonly Watched[]): Promise<void> {
    for (let i = 0; i < due.length; i += BATCH) {
      const batch = due.slice(i, i + BATCH);
      try {
        const keys = batch.map(({ key }) => key);
        const leases = await this.#parts.store.leases.read(keys, CALL);
        for (const [j, watched] of batch.entries()) this.#judge(watched, leases[j]);
      } catch (error) {
        const laterMs = this.#parts.clock.monotonicMs() + NO_ROOM_MS;
        for (const watched of due.slice(i)) this.#agenda.schedule(watched, laterMs);
        throw error;
      }
    }
  }

  #judge(watched: Watched, lease: ReadReply | undefined): void {
    const { stored } = watched;
    const { id, revision } = stored;
    if (this.#others.get(id) !== watched) return;
    const nowMs = this.#parts.clock.monotonicMs();
    const isHeld = lease?.kind === 'held' && lease.holder.endsWith(`/${id}`);
    if (isHeld || lease === undefined || lease.kind === 'failed') {
      const leftMs = isHeld ? Math.min(lease.expiresInMs, LONGEST_MS) : NO_ROOM_MS;
      watched.nobodysAt = null;
      watched.wasHeld ||= isHeld;
      this.#agenda.schedule(watched, nowMs + leftMs + AFTER_EXPIRY_MS);
    } else if (watched.nobodysAt !== revision) {
      watched.nobodysAt = revision;
      const isBegun = watched.wasHeld || stored.state !== 'STARTING';
      this.#agenda.schedule(watched, nowMs + (isBegun ? SETTLED_MS : this.#parts.patienceMs));
    } else if (this.#parts.recover(stored)) this.#forget(id);
    else this.#agenda.schedule(watched, nowMs + NO_ROOM_MS);
  }
}
