/**
 * The leases that one session runs under. `acquireOwn` acquires the lease of what the session
 * shows, which keeps two sessions off the same channel or recording. `acquireSlot` then acquires a
 * slot. The session needs all of them. `release` releases them in reverse order.
 *
 * A key that another session holds is not waited for, unless the pool says so. A key that no
 * session holds, but that the store may not grant yet, is waited for: the store is in quarantine,
 * or a lease was revoked.
 */
import { assert } from '../core/assert.ts';
import { isTargetId } from '../core/ids.ts';
import { retryStore } from '../core/retry.ts';
import { dedupKey } from '../intents/dedup-key.ts';
import type { IntentSession } from '../intents/intent-session.ts';
import { readSessions } from '../intents/session-reading.ts';
import { type Lease, LeaseSet } from '../lease/lease.ts';
import type { AcquireResult } from '../lease/leases.ts';
import type { AcquireOptions } from '../lease/options.ts';
import type { Pool } from '../lease/pool/pool.ts';
import { tracedAcquire } from '../lease/spans.ts';
import { LEASE_CLASSES } from '../lease/timings.ts';
import type { Runtime } from '../store/runtime.ts';
import { type Ended, ended, type RunOutcome } from './run-outcome.ts';
import type { CommandDeadline } from './supervisor/command-deadline.ts';
import type { WorkerResources } from './worker-resources.ts';

/** A key that may not be granted yet is waited for this much longer than the store says. */
const EXTRA_WAIT_MS = 1_000;
/** The longest wait in one request. */
const MAX_WAIT_MS = 60_000;
/** A lease whose session has ended is released within this, unless its holder is dead. */
const RELEASED_WITHIN_MS = 2_000;
/** The slot of a dead worker may become free this much later than the lease of its session. */
const LOST_SLOT_WAIT_MS = 2_000;
/** Reads until a late grant is seen to be released. One read is the rule, two after a grant. */
const MAX_READS = 5;
const CALL = { timeoutMs: 2_000 };
const { keyspace } = LEASE_CLASSES.resource;

export class SessionLeases {
  readonly #rt: Runtime;
  readonly #resources: WorkerResources;
  readonly #session: IntentSession;
  readonly #isRecovery: boolean;
  /** In the order in which they were acquired. */
  readonly #leases: Lease[] = [];
  #fence = 0;
  #slot: { readonly name: string; readonly key: string } | null = null;

  /** `isRecovery`: the session belonged to another worker, which is dead or has left it. */
  constructor(
    rt: Runtime,
    resources: WorkerResources,
    session: IntentSession,
    isRecovery: boolean,
  ) {
    this.#rt = rt;
    this.#resources = resources;
    this.#session = session;
    this.#isRecovery = isRecovery;
  }

  /** The fence of the lease that was acquired last; 0: none was acquired. */
  get fence(): number {
    return this.#fence;
  }

  /** The name of the slot, and the key of its lease. Null: no slot was acquired. */
  get slot(): { readonly name: string; readonly key: string } | null {
    return this.#slot;
  }

  /** The leases that are held now. */
  get all(): LeaseSet {
    return new LeaseSet([...this.#leases]);
  }

  /** Until when all of the leases are good. */
  get deadline(): CommandDeadline {
    return this.#leases.map(({ deadline }) => deadline);
  }

  assertHeld(): void {
    for (const lease of this.#leases) lease.assertHeld();
  }

  /** Has the leases confirmed: `isHeld` sends a renewal where the two clocks disagree. */
  confirm(): void {
    for (const lease of this.#leases) lease.isHeld();
  }

  /** Releases all leases, the last acquired first. Never fails. */
  async release(): Promise<void> {
    for (const lease of this.#leases.splice(0).reverse()) await lease.release();
  }

  /**
   * Stops renewing the leases, so that they expire: they are not released, whatever `settled` says.
   * It resolves when nothing of the pipeline acts any more. Until then this worker cannot acquire
   * the keys again under the same name.
   */
  async abandon(settled: Promise<unknown> = new Promise(() => {})): Promise<void> {
    let endWork = () => {};
    const afterwards = new Promise<void>((resolve) => {
      endWork = resolve;
    });
    const leases = this.#leases.splice(0);
    await Promise.all(leases.map((lease) => lease.release({ settled: afterwards, within: 0 })));
    void settled.then(endWork, endWork);
  }

  /** Stops renewing the leases of a pipeline that has ended, so that they expire. */
  expire(): Promise<void> {
    return this.abandon(Promise.resolve());
  }

  /** Acquires the lease of what the session shows, or says how the run ends without it. */
  async acquireOwn(signal: AbortSignal): Promise<Lease | RunOutcome> {
    const { id } = this.#session;
    const key = dedupKey(this.#session);
    const as = this.#holderOfOwn();
    let hasWaited = false;
    for (let wait = 0; ; ) {
      const result = await retryStore(this.#rt, signal, () =>
        this.#acquire(key, { ...this.#resources.acquireOptions, ...as, wait, signal }),
      ).catch(async (error: unknown) => {
        await untilReleased(() => this.#isHolderOf(key, as.holder));
        throw error;
      });
      if (result.ok) return this.#keep(result.lease);
      if (result.reason !== 'held') {
        wait = waitMsFor(result.expiresInMs);
        continue;
      }
      const { holder } = result;
      // The holder that was seen before the wait may have released the lease by now.
      if (wait > 0) {
        wait = 0;
        continue;
      }
      // Another worker runs this very session.
      if (holder.endsWith(`/${id}`)) return { kind: 'gone', isPipelineGone: true };
      if (!hasWaited && (await retryStore(this.#rt, signal, () => this.#hasEnded(holder)))) {
        hasWaited = true;
        wait = RELEASED_WITHIN_MS;
        continue;
      }
      // Clients of this session may belong to another tenant than the holder: it is not named.
      const why = `another session holds '${result.key}'`;
      return ended(this.#hasRun ? 'R_WORKER_LOST' : 'R_LEASE_BUSY', { why });
    }
  }

  /** Acquires a slot of the pool, or says how the session ends without it. */
  async acquireSlot(poolName: string, signal: AbortSignal): Promise<Lease | Ended> {
    const found = this.#resources.pools.get(poolName);
    assert(found !== undefined, `the worker has a pool '${poolName}'`);
    const { pool, waitMs } = found;
    const holder = this.#holder;
    for (let wait = this.#isRecovery ? Math.max(waitMs, LOST_SLOT_WAIT_MS) : waitMs; ; ) {
      const result = await retryStore(this.#rt, signal, () =>
        pool.acquire({ holder, wait, signal, untilReleased: true }),
      ).catch(async (error: unknown) => {
        await untilReleased(() => hasSlot(pool, holder));
        throw error;
      });
      if (result.ok) {
        this.#slot = { name: result.slot, key: result.lease.key };
        return this.#keep(result.lease);
      }
      if (result.reason !== 'held') {
        wait = waitMsFor(result.expiresInMs);
        continue;
      }
      const why = `all ${result.slots} slots of pool '${result.pool}' are held`;
      // The built-in kinds have the names of the API that Holdfast replaces.
      const noSlot = this.#session.type === 'start' ? 'R_NO_SLOT' : 'R_NO_TUNER';
      return ended(this.#hasRun ? 'R_WORKER_LOST' : noSlot, { why });
    }
  }

  #keep(lease: Lease): Lease {
    this.#leases.push(lease);
    this.#fence = lease.fence;
    return lease;
  }

  #acquire(key: string, options: AcquireOptions): Promise<AcquireResult> {
    const attributes = { 'holdfast.key': key, 'holdfast.class': options.class ?? 'lease' };
    const acquire = () => this.#resources.leases.acquire(key, options);
    return tracedAcquire(this.#rt.tracing, attributes, acquire);
  }

  /** A new session continues the tenure that the API acquired for it, if there is one. */
  #holderOfOwn(): { holder: string; fence?: number; untilReleased: true } {
    const { tenure } = this.#session;
    if (tenure === undefined || this.#isRecovery)
      return { holder: this.#holder, untilReleased: true };
    return { holder: tenure.holder, fence: tenure.fence, untilReleased: true };
  }

  /** Ends in the id of the session, so that another worker can tell which session holds the key. */
  get #holder(): string {
    const { instanceId } = this.#rt;
    const { id, tenure } = this.#session;
    const holder = `${instanceId}/${id}`;
    // Another worker may have continued the tenure that the API of this instance acquired under
    // this name, and may not have released it yet.
    return holder === tenure?.holder ? `${instanceId}/again/${id}` : holder;
  }

  /** A session that has run before is not refused, but lost. */
  get #hasRun(): boolean {
    return this.#isRecovery && this.#session.state !== 'STARTING';
  }

  async #isHolderOf(key: string, holder: string): Promise<boolean> {
    const [found] = await this.#rt.store.leases.read([keyspace + key], CALL);
    return found?.kind === 'held' && found.holder === holder;
  }

  /** Whether the holder's session has ended: its worker is about to release the lease. */
  async #hasEnded(holder: string): Promise<boolean> {
    const id = holder.slice(holder.lastIndexOf('/') + 1);
    if (!isTargetId(id)) return false;
    const [found] = await readSessions(this.#rt, [id], CALL);
    return found?.state === 'ENDED';
  }
}

/**
 * A run that stops waiting may still be granted the key, and releases it then. The session must not
 * be `ENDED` before that: a client that reads `ENDED` finds the slot free, and an API that acquires
 * leases itself (`apiLeases`) does not refuse the channel. Sessions and leases use different
 * connections, so their order proves nothing. Requests about leases do keep their order: a read
 * comes after the grant.
 */
async function untilReleased(isHeld: () => Promise<boolean>): Promise<void> {
  for (let reads = 0; reads < MAX_READS; reads++) if (!(await isHeld().catch(() => false))) return;
}

async function hasSlot(pool: Pool, holder: string): Promise<boolean> {
  return (await pool.inspect()).some((slot) => slot.holder === holder);
}

function waitMsFor(expiresInMs: number): number {
  return Math.min(expiresInMs, MAX_WAIT_MS) + EXTRA_WAIT_MS;
}
