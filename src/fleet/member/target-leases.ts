import { isDoneWithin } from '../../core/clock.ts';
import { KeyForeignError } from '../../core/errors.ts';
import type { Events } from '../../core/events.ts';
import { gapOf } from '../../core/gap.ts';
import type { Lease } from '../../lease/lease.ts';
import type { AcquireResult, Leases } from '../../lease/leases.ts';
import type { AcquireOptions } from '../../lease/options.ts';
import type { ReleaseOptions } from '../../lease/release.ts';
import { type HoldOptions, LEASE_CLASSES } from '../../lease/timings.ts';
import type { Runtime } from '../../store/runtime.ts';
import { type FleetTarget, GARBAGE_RETRY_MS, type Predecessor } from '../view/fleet-target.ts';
import { type MemberLoop, NOTHING } from './member-loop.ts';

/**
 * Targets taken at once: one full request of `LeaseRequestQueue`. So a slow store is not asked for
 * more than it answers, and a start with thousands of targets keeps few calls in memory.
 */
const CHUNK = 256;

/** A target whose earlier work here has not stopped is asked for again after this. */
const UNSETTLED_RETRY_MS = 1_000;
const { claimWindowMs } = LEASE_CLASSES.poll;

/** The work under the leases. */
export interface TargetWork {
  /** This instance owns the target: work may begin. */
  begin(id: string, lease: Lease): void;
  /**
   * No new work from now on. Resolves when the work in flight has stopped; null where there is
   * none. If the lease is lost, the work has to stop at once; otherwise it may finish.
   */
  end(id: string, isLost: boolean): Promise<void> | null;
}

export interface TargetLeasesOptions {
  readonly work: TargetWork;
  readonly timings: HoldOptions;
}

/** The targets that this instance owns: it takes them, hands them over and releases them. */
export class TargetLeases {
  readonly #rt: Runtime;
  readonly #leases: Leases;
  readonly #loop: MemberLoop;
  readonly #work: TargetWork;
  /** How every target is acquired. One object: a start takes thousands. */
  readonly #acquireOptions: AcquireOptions;
  readonly #ttlMs: number;
  readonly #owned = new Set<FleetTarget>();
  /** Every target with a lease, by id: owned, releasing or lost. */
  readonly #leased = new Map<string, FleetTarget>();
  /** Leases that are being released, or are lost while work under them continues. */
  readonly #ending = new Map<Promise<void>, Lease>();
  readonly #unlisten: () => void;
  #acquiring = 0;
  #isClosing = false;

  /** A target that becomes free wakes the rounds. */
  constructor(
    rt: Runtime,
    leases: Leases,
    loop: MemberLoop,
    { work, timings }: TargetLeasesOptions,
  ) {
    this.#rt = rt;
    this.#leases = leases;
    this.#loop = loop;
    this.#work = work;
    const { instanceId: holder } = rt;
    this.#acquireOptions = { ...timings, class: 'poll', holder, untilReleased: true };
    this.#ttlMs = leases.check({ ...timings, class: 'poll' }).ttlMs;
    this.#unlisten = rt.events.on('lease.lost', (lost) => this.#onLost(lost));
  }

  /** Without the targets that are being released. */
  get owned(): ReadonlySet<FleetTarget> {
    return this.#owned;
  }

  get(id: string): FleetTarget | undefined {
    const target = this.#leased.get(id);
    return target?.state === 'owned' ? target : undefined;
  }

  /** How many targets this instance owns, or will if the store grants all that it is asked for. */
  get claimed(): number {
    return this.#owned.size + this.#acquiring;
  }

  /** From now on nothing is taken. A lease that is granted yet is released, and no work begins. */
  takeNoMore(): void {
    this.#isClosing = true;
  }

  /** Tries to take all of them. Throws if the store could not be asked. */
  async take(targets: readonly FleetTarget[]): Promise<void> {
    if (this.#isClosing) return;
    for (let at = 0; at < targets.length; at += CHUNK) {
      const chunk = targets.slice(at, at + CHUNK).filter(({ state }) => state === 'watched');
      const errors = await Promise.all(chunk.map((target) => this.#take(target)));
      const failed = errors.find((error) => error !== null);
      if (failed !== undefined) throw failed;
    }
  }

  /** Takes a target that was transferred to this instance, even if it is just being refused. */
  async claim(target: FleetTarget): Promise<void> {
    target.markOffered(this.#rt.clock.monotonicMs());
    await this.take([target]).catch(() => this.#loop.wake(NOTHING));
  }

  /** Transfers the target once its work has settled. Work that does not settle in time keeps it. */
  give(target: FleetTarget, successor: string, withinMs?: number): Promise<void> {
    const { clock, tracing } = this.#rt;
    const attributes = { 'holdfast.target': target.id, 'holdfast.successor': successor };
    const transfer = async (lease: Lease, options: ReleaseOptions) =>
      tracing.run({ name: 'holdfast.handover', attributes, isRoot: true }, async (span) => {
        span.set({ 'holdfast.fence': lease.fence });
        const result = await lease.transfer(successor, options);
        if (result.transferred) target.markOwned(successor, claimWindowMs, clock.monotonicMs());
        else span.fail(`it was not handed over: ${result.reason}`);
      });
    return this.#end(target, withinMs, transfer);
  }

  /** Takes an owned target again, for another fence. */
  async retake(target: FleetTarget): Promise<void> {
    const { instanceId } = this.#rt;
    await this.give(target, instanceId);
    if (target.owner === instanceId) await this.claim(target);
  }

  /** Releases the target once its work has settled. */
  release(target: FleetTarget, withinMs?: number): Promise<void> {
    return this.#end(target, withinMs, async (lease, options) => {
      await lease.release(options);
    });
  }

  /** Renews the lease of the target no more, although its work has not settled. */
  abandon(target: FleetTarget): void {
    if (target.state === 'releasing') target.lease?.giveUp();
    else void this.release(target, 0);
  }

  /** Resolves when nothing is being released any more. After `withinMs` it gives up on the rest. */
  async settled(withinMs: number): Promise<void> {
    const ending = Promise.all(this.#ending.keys());
    if (await isDoneWithin(this.#rt.clock, withinMs, ending)) return;
    for (const lease of this.#ending.values()) lease.giveUp();
  }

  close(): void {
    this.#unlisten();
  }

  /** Returns the error where the store could not be asked. */
  async #take(target: FleetTarget): Promise<Error | null> {
    const { clock } = this.#rt;
    const { id, fenceFloor } = target;
    const options = this.#acquireOptions;
    const sentAtMs = clock.monotonicMs();
    target.become('acquiring');
    this.#acquiring++;
    let result: AcquireResult;
    try {
      result = await this.#leases.acquire(
        id,
        fenceFloor > 0 ? { ...options, fenceFloor } : options,
      );
    } catch (error) {
      target.become('watched');
      if (error instanceof KeyForeignError) {
        // One bad key must not delay the other targets.
        target.markBarred('garbage', GARBAGE_RETRY_MS, clock.monotonicMs());
        return null;
      }
      target.markUnknown();
      return error as Error;
    } finally {
      this.#acquiring--;
    }
    if (result.ok && !this.#isClosing) {
      this.#own(target, result.lease, sentAtMs);
      return null;
    }
    target.become('watched');
    if (result.ok) void this.#track(result.lease, released(result.lease));
    else this.#onRefused(target, result);
    return null;
  }

  #own(target: FleetTarget, lease: Lease, sentAtMs: number): void {
    this.#report(target, lease, sentAtMs);
    target.become('owned');
    target.lease = lease;
    target.owner = this.#rt.instanceId;
    target.obstacle = null;
    target.isOffered = false;
    target.predecessor = null;
    this.#owned.add(target);
    this.#leased.set(target.id, target);
    this.#work.begin(target.id, lease);
  }

  /** Emits `target.taken`: which owner had it before, until when, and what took so long. */
  #report(target: FleetTarget, { fence }: Lease, sentAtMs: number): void {
    const { clock, events, instanceId } = this.#rt;
    if (!events.hasListener('target.taken')) return;
    const isNamed = target.isOffered || target.owner === instanceId;
    // Its lease was not read before the request: the grant shows that the owner has lost it.
    if (target.owner !== null && !isNamed) target.markFree(sentAtMs);
    const { id, predecessor, freeSinceMs } = target;
    const sinceMs = predecessor?.untilMs ?? (isNamed ? sentAtMs : freeSinceMs);
    const gap = gapOf({
      silentMs: predecessor?.how === 'expired' ? this.#ttlMs : 0,
      wakeMs: sentAtMs - sinceMs,
      grantMs: clock.monotonicMs() - sentAtMs,
    });
    const how = howTaken(predecessor, isNamed);
    const from = predecessor?.owner ?? null;
    events.emit('target.taken', { target: id, fence, from, how, ...gap });
  }

  #onRefused(target: FleetTarget, refusal: Extract<AcquireResult, { ok: false }>): void {
    const nowMs = this.#rt.clock.monotonicMs();
    const { reason, expiresInMs } = refusal;
    if (target.isOffered) {
      // The refusal is older than the offer.
      target.isOffered = false;
      target.markUnknown();
      this.#loop.wake(NOTHING);
    } else if (reason === 'held') target.markOwned(refusal.holder, expiresInMs, nowMs);
    else
      target.markBarred(reason, reason === 'unsettled' ? UNSETTLED_RETRY_MS : expiresInMs, nowMs);
  }

  #end(
    target: FleetTarget,
    withinMs: number | undefined,
    end: (lease: Lease, options: ReleaseOptions) => Promise<void>,
  ): Promise<void> {
    const { lease } = target;
    if (target.state !== 'owned' || lease === null) return Promise.resolve();
    target.become('releasing');
    this.#owned.delete(target);
    const settled = this.#work.end(target.id, false);
    target.markEnded('released', this.#rt.clock.monotonicMs());
    const ending = end(lease, {
      ...(settled !== null && { settled }),
      ...(withinMs !== undefined && { within: withinMs }),
    });
    return this.#track(
      lease,
      ending.then(() => this.#forget(target, lease)),
    );
  }

  #onLost({ leaseClass, key, fence, reason, lateMs }: Events['lease.lost']): void {
    const target = this.#leased.get(key);
    if (leaseClass !== 'poll' || target?.lease?.fence !== fence) return;
    const { lease } = target;
    const nowMs = this.#rt.clock.monotonicMs();
    if (reason === 'revoked') target.revokedUntilMs = nowMs + this.#ttlMs;
    const isReleasing = target.state === 'releasing';
    target.become('lost');
    // A lease that ends as planned is no failure of its owner.
    target.markEnded(reason === 'max_hold' ? 'released' : 'lost', nowMs - lateMs);
    this.#owned.delete(target);
    const settled = this.#work.end(target.id, true) ?? Promise.resolve();
    // This instance may have it again only after the work has stopped. A release waits for that.
    if (isReleasing) return;
    const ended = settled.then(() => lease.release());
    void this.#track(
      lease,
      ended.then(() => this.#forget(target, lease)),
    );
    this.#loop.wake(NOTHING);
  }

  #forget(target: FleetTarget, lease: Lease): void {
    if (target.lease !== lease) return;
    target.lease = null;
    this.#leased.delete(target.id);
    target.become('watched');
    // After a transfer there is a new owner: its lease need not be read now.
    if (target.owner === null) this.#loop.wake(NOTHING);
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
  return predecessor.how === 'released' ? 'handover' : 'failover';
}

async function released(lease: Lease): Promise<void> {
  await lease.release();
}
