import { type Clock, isDoneWithin } from '../../core/clock.ts';
import { KeyForeignError } from '../../core/errors.ts';
import type { Emitter, Events } from '../../core/events.ts';
import { gapOf } from '../../core/gap.ts';
import { type Tracing, untraced } from '../../core/tracing.ts';
import { LEASE_CLASSES } from '../../lease/classes.ts';
import type { Lease, ReleaseOptions } from '../../lease/lease.ts';
import type { AcquireResult, Leases } from '../../lease/leases.ts';
import type { TimingOptions } from '../../lease/timings.ts';
import { GARBAGE_MS, type Predecessor, type TargetEntry } from '../view/target-entry.ts';

/** Targets taken at once: a few store calls' worth, so that a slow store is not asked for more than it answers in time. */
const CHUNK = 1_000;

/** How long a target whose earlier work here has not stopped is left alone before it is asked for again. */
const UNSETTLED_MS = 1_000;
const { claimWindowMs } = LEASE_CLASSES.poll;

/** Whoever works under the leases. */
export interface Duties {
  /** The target is ours: work may begin. */
  begin(id: string, lease: Lease): void;
  /**
   * No new work from now on. Resolves when the work in flight has stopped; null where there is none. Where the lease is
   * lost, the work has to stop at once; else it may finish.
   */
  end(id: string, isLost: boolean): Promise<void> | null;
}

export interface HoldingsParts {
  readonly leases: Leases;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly instanceId: string;
  readonly timings: TimingOptions;
  readonly ttlMs: number;
  readonly duties: Duties;
  readonly tracing?: Tracing;
  entry(id: string): TargetEntry | undefined;
  onTaken(entry: TargetEntry): void;
  /** Something is to be had, or known, that was not: there is reason to look. */
  onFreed(): void;
}

/** What this instance owns: takes targets, hands them on, lets them go. */
export class Ownership {
  readonly #parts: HoldingsParts;
  readonly #ours = new Set<TargetEntry>();
  /** What is being let go of, or has been lost while work on it goes on. */
  readonly #ending = new Map<Promise<void>, Lease>();
  #taking = 0;
  #isClosing = false;
  readonly #unlisten: () => void;

  constructor(parts: HoldingsParts) {
    this.#parts = parts;
    this.#unlisten = parts.events.on('lease.lost', (lost) => {
      const { leaseClass, key, fence, reason, lateMs } = lost;
      if (leaseClass !== 'poll') return;
      const entry = parts.entry(key);
      if (entry?.lease?.fence !== fence) return;
      if (reason === 'revoked') entry.sitsOutUntilMs = parts.clock.monotonicMs() + parts.ttlMs;
      this.#onLost(entry, entry.lease, lateMs);
    });
  }

  /** What is ours, without what is being let go of. */
  get ours(): ReadonlySet<TargetEntry> {
    return this.#ours;
  }

  /** How many targets are ours, or will be if the store grants what it is being asked for. */
  get claimed(): number {
    return this.#ours.size + this.#taking;
  }

  /** From now on nothing is taken; what the store is being asked for and grants is given back, and no work begins. */
  takeNoMore(): void {
    this.#isClosing = true;
  }

  /** Tries to take all of them. Throws if the store could not be asked. */
  async take(entries: readonly TargetEntry[]): Promise<void> {
    if (this.#isClosing) return;
    for (let at = 0; at < entries.length; at += CHUNK) {
      const chunk = entries.slice(at, at + CHUNK).filter(({ state }) => state === 'watched');
      const errors = await Promise.all(chunk.map((entry) => this.#take(entry)));
      const failed = errors.find((error) => error !== null);
      if (failed !== undefined) throw failed;
    }
  }

  /** The target was handed to us: takes it, also if we are just being refused it. */
  claim(entry: TargetEntry): void {
    entry.seenOffered(this.#parts.clock.monotonicMs());
    this.take([entry]).catch(() => this.#parts.onFreed());
  }

  /** Hands the target to another, once the work on it has settled; what has not in time is never handed over. */
  give(entry: TargetEntry, successor: string, withinMs?: number): Promise<void> {
    const { clock, tracing = untraced } = this.#parts;
    const attributes = { 'holdfast.target': entry.id, 'holdfast.successor': successor };
    const give = async (lease: Lease, settling: ReleaseOptions) =>
      tracing.run({ name: 'holdfast.handover', attributes, isRoot: true }, async (span) => {
        span.set({ 'holdfast.fence': lease.fence });
        const result = await lease.transfer(successor, settling);
        if (result.transferred) entry.seenOwned(successor, claimWindowMs, clock.monotonicMs());
        else span.fail(`it was not handed over: ${result.reason}`);
      });
    return this.#end(entry, withinMs, give);
  }

  /** Takes a target that is ours once more, for another fence. */
  async retake(entry: TargetEntry): Promise<void> {
    const { instanceId } = this.#parts;
    await this.give(entry, instanceId);
    if (entry.owner === instanceId) this.claim(entry);
  }

  /** Lets the target go, once the work on it has settled, or is given up. */
  letGo(entry: TargetEntry, withinMs?: number): Promise<void> {
    return this.#end(entry, withinMs, async (lease, settling) => {
      await lease.release(settling);
    });
  }

  /** Resolves when nothing is being let go of any more, or the time is up: then what has not settled is given up on. */
  async settled(withinMs: number): Promise<void> {
    const isSettled = await isDoneWithin(
      this.#parts.clock,
      withinMs,
      Promise.all(this.#ending.keys()),
    );
    if (isSettled) return;
    for (const lease of this.#ending.values()) lease.giveUp();
  }

  close(): void {
    this.#unlisten();
  }

  async #take(entry: TargetEntry): Promise<Error | null> {
    const { leases, clock, instanceId, timings } = this.#parts;
    const askedAtMs = clock.monotonicMs();
    entry.state = 'taking';
    this.#taking++;
    try {
      const result = await leases.acquire(entry.id, {
        ...timings,
        class: 'poll',
        holder: instanceId,
        untilReleased: true,
        ...(entry.fenceFloor > 0 && { fenceFloor: entry.fenceFloor }),
      });
      entry.state = 'watched';
      if (!result.ok) this.#note(entry, result);
      else if (this.#isClosing) void this.#track(result.lease, giveBack(result.lease));
      else this.#own(entry, result.lease, askedAtMs);
      return null;
    } catch (error) {
      entry.state = 'watched';
      if (error instanceof KeyForeignError) {
        // What is wrong with one target must not keep the others waiting.
        entry.seenBarred('garbage', GARBAGE_MS, clock.monotonicMs());
        return null;
      }
      entry.doubt();
      return error as Error;
    } finally {
      this.#taking--;
    }
  }

  #own(entry: TargetEntry, lease: Lease, askedAtMs: number): void {
    const { duties, instanceId, onTaken } = this.#parts;
    this.#tell(entry, lease, askedAtMs);
    entry.state = 'ours';
    entry.lease = lease;
    entry.owner = instanceId;
    entry.obstacle = null;
    entry.isOffered = false;
    entry.predecessor = null;
    this.#ours.add(entry);
    duties.begin(entry.id, lease);
    onTaken(entry);
  }

  /** Whoever explains a gap wants to know who had it, until when, and what took so long. */
  #tell(entry: TargetEntry, { fence }: Lease, askedAtMs: number): void {
    const { clock, events, instanceId, ttlMs } = this.#parts;
    if (!events.hasListener('target.taken')) return;
    const isNamed = entry.isOffered || entry.owner === instanceId;
    // Not looked at before it was asked for: so now it is known that its owner has it no more.
    if (entry.owner !== null && !isNamed) entry.seenFree(askedAtMs);
    const { id: target, predecessor, freeSinceMs } = entry;
    const sinceMs = predecessor?.untilMs ?? (isNamed ? askedAtMs : freeSinceMs);
    const gap = gapOf({
      silentMs: predecessor?.how === 'expired' ? ttlMs : 0,
      wakeMs: askedAtMs - sinceMs,
      grantMs: clock.monotonicMs() - askedAtMs,
    });
    const how = howTaken(predecessor, isNamed);
    events.emit('target.taken', { target, fence, from: predecessor?.owner ?? null, how, ...gap });
  }

  #note(entry: TargetEntry, busy: Extract<AcquireResult, { ok: false }>): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const { reason, expiresInMs } = busy;
    if (entry.isOffered) {
      // The answer is older than the offer.
      entry.isOffered = false;
      entry.doubt();
      this.#parts.onFreed();
    } else if (reason === 'held') entry.seenOwned(busy.holder, expiresInMs, nowMs);
    else entry.seenBarred(reason, reason === 'unsettled' ? UNSETTLED_MS : expiresInMs, nowMs);
  }

  #end(
    entry: TargetEntry,
    withinMs: number | undefined,
    tell: (lease: Lease, settling: ReleaseOptions) => Promise<void>,
  ): Promise<void> {
    const { lease } = entry;
    if (entry.state !== 'ours' || lease === null) return Promise.resolve();
    entry.state = 'letting go';
    this.#ours.delete(entry);
    const { duties, clock } = this.#parts;
    const settled = duties.end(entry.id, false);
    entry.seenEnded('let go', clock.monotonicMs());
    const telling = tell(lease, {
      ...(settled !== null && { settled }),
      ...(withinMs !== undefined && { within: withinMs }),
    });
    return this.#track(
      lease,
      telling.then(() => this.#forget(entry, lease)),
    );
  }

  #onLost(entry: TargetEntry, lease: Lease, lateMs: number): void {
    const { duties, clock, onFreed } = this.#parts;
    const isLettingGo = entry.state === 'letting go';
    entry.state = 'settling';
    entry.seenEnded('lost', clock.monotonicMs() - lateMs);
    this.#ours.delete(entry);
    const settled = duties.end(entry.id, true) ?? Promise.resolve();
    // Only once its work has stopped may the same instance have it again. Who lets it go already sees to that.
    if (isLettingGo) return;
    const released = settled.then(() => lease.release());
    void this.#track(
      lease,
      released.then(() => this.#forget(entry, lease)),
    );
    onFreed();
  }

  #forget(entry: TargetEntry, lease: Lease): void {
    if (entry.lease !== lease) return;
    entry.lease = null;
    entry.state = 'watched';
    // What was handed over is in good hands: there is nothing to look at.
    if (entry.owner === null) this.#parts.onFreed();
  }

  #track(lease: Lease, ending: Promise<void>): Promise<void> {
    this.#ending.set(ending, lease);
    return ending.finally(() => this.#ending.delete(ending));
  }
}

function howTaken(
  predecessor: Predecessor | null,
  isNamed: boolean,
): Events['target.taken']['how'] {
  if (predecessor === null) return isNamed ? 'handover' : 'first';
  return predecessor.how === 'let go' ? 'handover' : 'failover';
}

async function giveBack(lease: Lease): Promise<void> {
  await lease.release();
}
