/**
 * Renews all tenures of this process (`tenure.ts`) with one timer and few requests. The timer is
 * set to the earliest moment at which a tenure is due. Tenures that are due soon go along, so that
 * tenures acquired at different times end up in the same batches.
 *
 * A renewal that fails is repeated, with growing pauses, until the store confirms it or the
 * deadline ends the tenure. The answer decides: renewed → confirmed; another holder → lost;
 * vanished → put back (reasserted) if the store can rule out another holder, else lost; a store on
 * which no lease counts any more → lost.
 *
 * Where the store offers it, the first renewal of a tenure also attaches it to the keepalive of its
 * policy. From then on one request renews all attached tenures (`keepalive.ts`), until one of them
 * has to be renewed by its row again.
 */

import { StoreUnsuitableError } from '../core/errors.ts';
import { jittered } from '../core/random.ts';
import { TimerHeap } from '../core/timer-heap.ts';
import { type Confirmation, confirmationNow } from '../core/validity.ts';
import { FENCE_RECORD_MS, type RenewReply } from '../store/port/lease-store.ts';
import type { Runtime } from '../store/runtime.ts';
import type { KeepaliveState } from './keepalive.ts';
import { KeepaliveSet } from './keepalive-set.ts';
import type { OrphanedGrantQueue } from './orphaned-grant-queue.ts';
import type { Tenure } from './tenure.ts';
import type { LeasePolicy } from './timings.ts';

/**
 * Renewals in one request: about a millisecond of Redis' time, and 10,000 leases in ten requests.
 */
const CHUNK = 1_000;
/**
 * Requests in flight at once. The others wait, so that encoding them never blocks the event loop
 * for long.
 */
const CHUNKS_IN_FLIGHT = 4;
/** The share of a renewal interval by which a tenure may go along early. */
const EARLY_SHARE = 1 / 4;
/** After failed renewals: pauses double from the first to the second. */
const MIN_RETRY_MS = 50;
const MAX_RETRY_MS = 1_000;
/**
 * The store keeps the last fence of each key in a record that expires. A renewal extends a record
 * of this age; what remains then is longer than any TTL.
 */
const MAX_FENCE_AGE_MS = FENCE_RECORD_MS / 4;
/** A timer this late means that the event loop was blocked. */
const LATE_MS = 1_000;

/** A refused reassertion: another holder may have had the key. */
const TAKEN_OVER: RenewReply = { kind: 'other', holder: '', revoked: false };

/** Tenures that are due, by policy, and by the shard of the store that has their keys. */
type Batches = Map<LeasePolicy, Map<string, Tenure[]>>;

export class Renewer {
  readonly #rt: Runtime;
  readonly #orphans: OrphanedGrantQueue;
  readonly #timers: TimerHeap<Tenure>;
  readonly #keepalives: KeepaliveSet;
  /** Keys that were revoked from this process, and until when it does not ask for them. */
  readonly #revoked = new Map<string, number>();
  /** The pause after the next renewal that fails. */
  #pauseMs = MIN_RETRY_MS;

  constructor(rt: Runtime, orphans: OrphanedGrantQueue) {
    this.#rt = rt;
    this.#orphans = orphans;
    this.#keepalives = new KeepaliveSet(rt);
    this.#timers = new TimerHeap(rt.clock, (lateMs) => this.#onDue(lateMs));
  }

  get size(): number {
    return this.#timers.size;
  }

  tenures(): Iterable<Tenure> {
    return this.#timers;
  }

  add(tenure: Tenure): void {
    const { renewEveryMs } = tenure.policy.timings;
    const dueAtMs = tenure.acquiredAtMs + jittered(renewEveryMs, this.#rt.random);
    this.#timers.schedule(tenure, Math.min(dueAtMs, tenure.deadlineMs));
  }

  /** From here on no renewal of the tenure is sent, and answers to earlier ones are ignored. */
  remove(tenure: Tenure): void {
    this.#timers.remove(tenure);
    this.#keepalives.depart(tenure);
  }

  renewNow(tenure: Tenure): void {
    if (tenure.isRenewing || !this.#timers.has(tenure)) return;
    this.#timers.schedule(tenure, this.#rt.clock.monotonicMs());
  }

  /** The store may have lost leases of this process: a renewal reasserts them. */
  renewAll(): void {
    // Only the rows show which leases are lost.
    this.#keepalives.retireAll();
    for (const tenure of [...this.#timers]) this.renewNow(tenure);
  }

  /**
   * Renews one tenure at once. True if the store confirms it; any other answer is left to the next
   * renewal.
   */
  async renew(tenure: Tenure): Promise<boolean> {
    if (tenure.isOver || !this.#timers.has(tenure)) return false;
    const sent = confirmationNow(this.#rt.clock);
    const { ttlMs, operationTimeoutMs: timeoutMs } = tenure.policy.timings;
    const replies = await this.#rt.store.leases
      .renew([asHolding(tenure)], { ttlMs, timeoutMs })
      .catch(() => null);
    if (replies?.[0]?.kind !== 'renewed') {
      this.renewNow(tenure);
      return false;
    }
    tenure.confirm(sent);
    return tenure.isHeld();
  }

  /**
   * How much longer this process does not ask for a key, because it was revoked; 0 if it may ask.
   */
  revokedForMs(storeKey: string): number {
    if (this.#revoked.size === 0) return 0;
    const untilMs = this.#revoked.get(storeKey);
    return untilMs === undefined ? 0 : Math.max(0, untilMs - this.#rt.clock.monotonicMs());
  }

  close(): void {
    this.#timers.clear();
  }

  #onDue(lateMs: number): void {
    if (lateMs > LATE_MS) this.#rt.events.emit('loop.delayed', { lateMs });
    const nowMs = this.#rt.clock.monotonicMs();
    this.#keepalives.settleDepartures();
    const keepalives = new Set<KeepaliveState>();
    const rows: Tenure[] = [];
    const waiting: Tenure[] = [];
    const due = this.#timers.takeDue(nowMs, (tenure) => this.#earlyMs(tenure));
    // A tenure past its deadline is lost, whatever the store would say: a renewal never resurrects.
    for (const tenure of due) {
      // While its renewal is in flight, a tenure is next due at its deadline.
      tenure.dueAtMs = tenure.deadlineMs;
      if (tenure.dueAtMs <= nowMs) tenure.expire();
    }
    for (const tenure of due) {
      // A listener of `lease.lost` may just have released another lease that is due.
      if (tenure.isOver || tenure.isHandedIn) continue;
      waiting.push(tenure);
      if (tenure.isRenewing) continue;
      const keepalive = isFenceOld(tenure, nowMs) ? null : this.#keepalives.of(tenure);
      if (keepalive === null) rows.push(tenure);
      else keepalives.add(keepalive);
    }
    this.#timers.scheduleAll(waiting, ({ dueAtMs }) => dueAtMs);
    for (const keepalive of keepalives) if (!keepalive.isRenewing) void this.#keepAlive(keepalive);
    this.#renewRows(rows);
  }

  /**
   * A tenure that is due for its renewal may go along with others; one that waits for its deadline
   * may not.
   */
  #earlyMs(tenure: Tenure): number {
    if (tenure.isRenewing || this.#keepalives.of(tenure)?.isRenewing) return 0;
    return tenure.policy.timings.renewEveryMs * EARLY_SHARE;
  }

  /** Renews all tenures that are attached to a keepalive by one request. Never rejects. */
  async #keepAlive(keepalive: KeepaliveState): Promise<void> {
    const { store, clock, random } = this.#rt;
    const { ttlMs, operationTimeoutMs: timeoutMs, renewEveryMs } = keepalive.policy.timings;
    const sent = confirmationNow(clock);
    const { version, acknowledged } = keepalive.beginRenewal();
    const reply = await store.leases
      .keepAlive?.(keepalive.id, { ttlMs, timeoutMs, version, acknowledged })
      .catch((error: Error) => error);
    if (reply === undefined || reply instanceof Error) {
      this.#slowDown(0);
      const refusal: RenewReply | undefined = reply && { kind: 'failed', error: reply };
      for (const tenure of keepalive.failRenewal()) this.#endRefused(tenure, refusal);
      return;
    }
    if (!this.#keepalives.isCurrent(keepalive)) keepalive.retire();
    const { renewed, rest } = keepalive.endRenewal(reply, acknowledged, sent.sentAtMs);
    const againAtMs = sent.sentAtMs + jittered(renewEveryMs, random);
    this.#confirmAll(renewed, sent, againAtMs);
    this.#slowDown(renewed.length);
    this.#emitRenewed(keepalive.policy, renewed.length, sent.sentAtMs);
    const rows = rest.filter((tenure) => this.#timers.has(tenure));
    this.#timers.scheduleAll(rows, ({ deadlineMs }) => deadlineMs);
    this.#renewRows(rows);
  }

  /** Renews tenures that are scheduled at their deadlines, by their rows. */
  #renewRows(tenures: readonly Tenure[]): void {
    const batches: Batches = new Map();
    for (const tenure of tenures) {
      // The answer says whether it is attached.
      tenure.keepalive?.remove(tenure);
      tenure.beginRenewal();
      this.#addTo(batches, tenure);
    }
    for (const [policy, shards] of batches) {
      for (const batch of shards.values()) void this.#renewBatch(policy, batch);
    }
  }

  /** Per shard: a server that hangs must not delay the renewals on the others. */
  #addTo(batches: Batches, tenure: Tenure): void {
    const shards = batches.get(tenure.policy) ?? new Map<string, Tenure[]>();
    batches.set(tenure.policy, shards);
    const shard = this.#rt.store.leases.lane?.(tenure.storeKey) ?? '';
    const batch = shards.get(shard);
    if (batch === undefined) shards.set(shard, [tenure]);
    else batch.push(tenure);
  }

  /** In chunks, a few at a time. Never rejects. */
  async #renewBatch(policy: LeasePolicy, tenures: Tenure[]): Promise<void> {
    const startMs = this.#rt.clock.monotonicMs();
    const keepalive = this.#keepalives.toAttach(policy);
    let next = 0;
    let confirmed = 0;
    const sendChunks = async () => {
      while (next < tenures.length) {
        const chunk = tenures.slice(next, next + CHUNK);
        // One request alone makes the keepalive. Those beside it attach nothing.
        const attachTo = next === 0 || keepalive?.state === 'alive' ? keepalive : null;
        next += CHUNK;
        const renewed = await this.#renewChunk(policy, chunk, attachTo);
        // Not added up around the await: concurrent calls would overwrite each other's sum.
        confirmed += renewed;
      }
    };
    const length = Math.min(CHUNKS_IN_FLIGHT, Math.ceil(tenures.length / CHUNK));
    await Promise.all(Array.from({ length }, sendChunks));
    this.#slowDown(confirmed);
    this.#emitRenewed(policy, confirmed, startMs);
  }

  /** Renewals that fail are repeated after longer and longer pauses. */
  #slowDown(confirmed: number): void {
    this.#pauseMs = confirmed > 0 ? MIN_RETRY_MS : Math.min(this.#pauseMs * 2, MAX_RETRY_MS);
  }

  #emitRenewed({ leaseClass }: LeasePolicy, count: number, startMs: number): void {
    const { clock, events } = this.#rt;
    if (count === 0) return;
    const tookMs = clock.monotonicMs() - startMs;
    events.emit('lease.renewed', { leaseClass: leaseClass.name, count, tookMs });
  }

  async #renewChunk(
    { timings }: LeasePolicy,
    chunk: readonly Tenure[],
    attachTo: KeepaliveState | null,
  ): Promise<number> {
    const { store, clock, random } = this.#rt;
    const sent = confirmationNow(clock);
    const { ttlMs, operationTimeoutMs: timeoutMs } = timings;
    const keepFences = chunk.some((tenure) => isFenceOld(tenure, sent.sentAtMs));
    if (attachTo !== null) for (const tenure of chunk) tenure.mayBeAttached = true;
    const call = { ttlMs, timeoutMs, keepFences };
    const replies: readonly RenewReply[] = await (attachTo === null
      ? store.leases.renew(chunk.map(asHolding), call)
      : store.leases.renew(
          chunk.map(({ tenancy }) => tenancy),
          { ...call, attachTo: attachTo.attachment },
        )
    ).catch((error: Error) => chunk.map(() => ({ kind: 'failed', error })));
    // One jitter for the whole chunk: tenures that were renewed together stay together.
    const againAtMs = sent.sentAtMs + jittered(timings.renewEveryMs, random);
    // Vanished: the key is gone, and its fence record is ours. Forgotten: that record is gone too,
    // so the store has lost data.
    const vanished: Tenure[] = [];
    const forgotten: Tenure[] = [];
    const attached = new Map<Tenure, number>();
    const confirmed: Tenure[] = [];
    for (let i = 0; i < chunk.length; i++) {
      const tenure = chunk[i] as Tenure;
      const reply = replies[i];
      if (!this.#timers.has(tenure)) {
        // Removed while the renewal was in flight: the tenure is handed in or over.
        tenure.endRenewal();
      } else if (reply?.kind === 'renewed') {
        if (keepFences) tenure.fenceKeptAtMs = sent.sentAtMs;
        tenure.endRenewal();
        confirmed.push(tenure);
        if (reply.version !== undefined) attached.set(tenure, reply.version);
      } else if (
        reply?.kind === 'vanished' &&
        !reply.revoked &&
        (reply.fence === tenure.fence || reply.fence === 0)
      ) {
        (reply.fence === 0 ? forgotten : vanished).push(tenure);
      } else {
        this.#refuse(tenure, reply);
      }
    }
    this.#confirmAll(confirmed, sent, againAtMs);
    // A listener may have released some of them meanwhile.
    for (const tenure of attached.keys()) if (!this.#timers.has(tenure)) attached.delete(tenure);
    attachTo?.attach(attached, sent.sentAtMs);
    if (vanished.length > 0) await this.#reassert(vanished, false);
    if (forgotten.length > 0) await this.#reassert(forgotten, true);
    return confirmed.length;
  }

  /** The store has renewed them. */
  #confirmAll(tenures: readonly Tenure[], sent: Confirmation, againAtMs: number): void {
    const { clock, events } = this.#rt;
    const isHeard = events.hasListener('lease.extended');
    const nowMs = clock.monotonicMs();
    for (const tenure of tenures) {
      // A listener may have released some of them meanwhile.
      if (!this.#timers.has(tenure)) continue;
      tenure.confirm(sent, nowMs);
      if (isHeard)
        events.emit('lease.extended', { ...tenure.facts, remainingMs: tenure.remainingMs() });
      if (tenure.isOver) this.remove(tenure);
    }
    const held = tenures.filter((tenure) => this.#timers.has(tenure));
    this.#timers.scheduleAll(held, ({ deadlineMs }) => Math.min(againAtMs, deadlineMs));
  }

  /** The store did not renew the tenure, or did not answer. */
  #refuse(tenure: Tenure, reply: RenewReply | undefined): void {
    tenure.endRenewal();
    if (reply !== TAKEN_OVER && (reply?.kind === 'other' || reply?.kind === 'vanished'))
      tenure.hasLeftStore = true;
    this.#endRefused(tenure, reply);
  }

  #endRefused(tenure: Tenure, reply: RenewReply | undefined): void {
    if (!this.#timers.has(tenure)) return;
    if (reply?.kind === 'other' || reply?.kind === 'vanished') {
      tenure.lose(reply.revoked ? 'revoked' : 'taken_over');
      if (reply.revoked) this.#avoid(tenure);
    } else if (reply?.kind === 'failed' && voidsLeases(reply.error)) {
      tenure.lose('unsuitable', reply.error);
    } else {
      tenure.doubt('renewal_failed');
    }
    if (tenure.isOver) return;
    const { clock, random } = this.#rt;
    const pauseMs = Math.min(this.#pauseMs, tenure.policy.timings.operationTimeoutMs);
    const againAtMs = clock.monotonicMs() + jittered(pauseMs, random);
    this.#timers.schedule(tenure, Math.min(againAtMs, tenure.deadlineMs));
  }

  /** After a revocation this process leaves the key to others for one TTL. */
  #avoid(tenure: Tenure): void {
    const nowMs = this.#rt.clock.monotonicMs();
    for (const [storeKey, untilMs] of this.#revoked) {
      if (untilMs <= nowMs) this.#revoked.delete(storeKey);
    }
    this.#revoked.set(tenure.storeKey, nowMs + tenure.policy.timings.ttlMs);
  }

  /**
   * The keys are gone before their time. The store restores those that no other holder can have had
   * since.
   */
  async #reassert(tenures: readonly Tenure[], forgotten: boolean): Promise<void> {
    const { store, clock, random, events } = this.#rt;
    const sent = confirmationNow(clock);
    // A tenure that was handed in meanwhile ends by the answer to its release: it is not
    // reasserted.
    for (const tenure of tenures) if (!this.#timers.has(tenure)) tenure.endRenewal();
    const kept = tenures.filter((tenure) => this.#timers.has(tenure));
    // A tenure that ended meanwhile is lost, not reasserted. If the host may have slept past the
    // deadline, the key may have been granted to another holder, and a store that lost data may
    // have lost that grant. Then only the clocks of this host say that the key is ours.
    for (const tenure of kept) if (tenure.remainingMs() === 0) tenure.expire();
    const alive = kept.filter(({ state }) => state !== 'lost' && state !== 'released');
    const first = alive[0];
    if (first === undefined) return;
    const { timings } = first.policy;
    const tenancies = alive.map(({ tenancy }) => tenancy);
    const call = { ttlMs: timings.ttlMs, forgotten, timeoutMs: timings.operationTimeoutMs };
    const replies = await store.leases.reassert(tenancies, call).catch(() => null);
    for (const [i, tenure] of alive.entries()) {
      if (replies === null) {
        this.#refuse(tenure, undefined);
      } else if (replies[i] === 'reasserted') {
        tenure.endRenewal();
        this.#confirmAll([tenure], sent, sent.sentAtMs + jittered(timings.renewEveryMs, random));
        // Removed while the request was in flight: the store now has a lease that is never renewed.
        if (!this.#timers.has(tenure)) this.#orphans.watch(tenure);
        else events.emit('lease.reasserted', tenure.facts);
      } else {
        this.#refuse(tenure, TAKEN_OVER);
      }
    }
  }
}

/**
 * Whether this failure says that no lease of the store counts any more. Any other failure may pass.
 */
function voidsLeases(error: Error): boolean {
  return error instanceof StoreUnsuitableError && error.voidsLeases;
}

/** Whether the fence record has to be kept for longer, which only a renewal by the row can do. */
function isFenceOld({ fenceKeptAtMs }: Tenure, nowMs: number): boolean {
  return nowMs - fenceKeptAtMs > MAX_FENCE_AGE_MS;
}

function asHolding({ storeKey, holder }: Tenure): { key: string; holder: string } {
  return { key: storeKey, holder };
}
