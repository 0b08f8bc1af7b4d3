/**
 * What a client of a mixed world does with its leases: it takes a key, works under it, lets it go,
 * and takes it again. As the world drew, the lease is a plain one, a slot of a pool, that of a
 * leader or of a job that runs once per period, or one that is handed to a client that waits.
 */
import { ConfigError } from '../../src/core/errors.ts';
import type { Holdfast } from '../../src/holdfast.ts';
import type { Election } from '../../src/lease/election.ts';
import type { Lease } from '../../src/lease/lease.ts';
import type { Pool } from '../../src/lease/pool/pool.ts';
import { LEASE_CLASSES } from '../../src/lease/timings.ts';
import { keysOf } from '../../src/store/redis/keys.ts';
import type { Believers } from './believers.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import { type ClientSetting, type Job, pick, type Work } from './mixed-setting.ts';
import type { WorkAudit } from './work-audit.ts';

export interface MixedWorkParts {
  readonly process: SimProcess;
  readonly setting: ClientSetting;
  readonly boundMs: number;
  readonly believers: Believers;
  readonly work: WorkAudit;
  readonly counters: Counters;
  readonly signal: AbortSignal;
  /** The clients that a lease may be handed to. */
  peers(): readonly MixedWork[];
  /** The world asked for something that Holdfast refuses. */
  misfit(error: ConfigError): void;
}

/** Of the bound: how long a key is kept, left alone, and waited for, at most. */
const KEEP_BOUNDS = 0.8;
/**
 * A tenure whose TTL no other client uses is kept for longer: it is the one that a loss has to
 * meet.
 */
const KEEP_LONGEST_BOUNDS = 3;
const PAUSE_BOUNDS = 0.3;
/**
 * Under names, keys go round faster: a name is to be granted again while what it sent before may be
 * under way.
 */
const KEEP_NAMED_BOUNDS = 0.1;
const WAIT_BOUNDS = 6;
const SLOTS = 2;
/** The longest `maxHold`, and the longest `keepFor`. */
const MAX_HOLD_BOUNDS = 1;
const KEPT_BOUNDS = 0.5;
/** The share of tenures that end in a transfer, where a client waits, and that are kept after. */
const SHARE = 0.6;
/** A job runs once in this many bounds. */
export const PER_BOUNDS = 3;

/** What became of one try. */
interface Taken {
  readonly lease: Lease;
  readonly storeKey: string;
  readonly maxHoldMs?: number;
}

export class MixedWork {
  /** The keys that it waits for, and since when. */
  readonly waiting = new Map<string, number>();
  readonly #parts: MixedWorkParts;
  readonly #holdfast: Holdfast;
  /** By key: makes its holder release it. */
  readonly #hurry = new Map<string, () => void>();
  readonly #pools = new Map<string, Pool>();
  /** The keys that were handed to it, and that it has not been granted since. */
  readonly #offered = new Set<string>();
  #tenures = 0;

  constructor(parts: MixedWorkParts, holdfast: Holdfast) {
    this.#parts = parts;
    this.#holdfast = holdfast;
    for (const job of parts.setting.jobs) void this.#run(job);
  }

  /** What its keys are called in the store. */
  get storeKeys(): string[] {
    return this.#parts.setting.jobs.flatMap((job) => this.#storeKeysOf(job));
  }

  /** One name for each job: a pool is one, whichever of its slots is used. */
  get subjects(): string[] {
    return this.#parts.setting.jobs.map((job) => this.#storeKeyOf(job));
  }

  /** Releases a key soon, if it holds it. */
  letGo(storeKey: string): boolean {
    const hurry = this.#hurry.get(storeKey);
    hurry?.();
    return hurry !== undefined;
  }

  /** The key that an operator names to end a lease of this job. */
  keyOf(job: Job): string {
    return this.#kindOf(job) === 'pools' ? `${job.key}:1` : job.key;
  }

  async #run(job: Job): Promise<void> {
    const kind = this.#kindOf(job);
    let isLost = false;
    while (!this.#isOver()) {
      try {
        const { process, boundMs, signal, setting } = this.#parts;
        const pauseMs = process.random.next() * PAUSE_BOUNDS * boundMs;
        await process.sleep(isLost ? 0 : pauseMs, signal);
        isLost = false;
        if (kind === 'elections') await this.#lead(job);
        else if (kind === 'once') await this.#runOnce(job);
        else {
          const lease = await this.#holdOne(job, kind);
          // Who lost a key under a name wants it back at once.
          isLost = setting.isNamed && (lease?.lossReason ?? null) !== null;
        }
      } catch (error) {
        if (error instanceof ConfigError) this.#parts.misfit(error);
        // Else it was lost, the store is away, or the client stops.
      } finally {
        this.#stopWaiting(job);
      }
    }
  }

  async #holdOne(job: Job, kind: Work): Promise<Lease | null> {
    const ttl = this.#ttl();
    this.#beginWaiting(job);
    const taken =
      kind === 'pools' ? await this.#takeSlot(job, ttl) : await this.#take(job, kind, ttl);
    this.#stopWaiting(job);
    if (taken === null) return null;
    const { lease, storeKey, maxHoldMs } = taken;
    const done = this.#believe(lease, storeKey, { ttl, kind, subject: this.#storeKeyOf(job) });
    if (maxHoldMs !== undefined) this.#limitHold(taken, maxHoldMs);
    try {
      await this.#keep(lease.signal, storeKey, ttl);
    } finally {
      await this.#letGo(job, kind, taken);
      done();
    }
    return lease;
  }

  async #take(job: Job, kind: Work, ttl: number): Promise<Taken | null> {
    const { process, boundMs, setting, counters } = this.#parts;
    const storeKey = this.#storeKeyOf(job);
    const isTransferred = kind === 'transfers';
    const named = setting.isNamed ? process.name : undefined;
    const maxHoldMs = setting.hasMaxHold
      ? Math.ceil((0.05 + process.random.next()) * MAX_HOLD_BOUNDS * boundMs)
      : undefined;
    const result = await this.#holdfast.acquire(job.key, {
      class: job.leaseClass,
      ttl,
      ...this.#waitOptions(),
      ...optional('guard', setting.guardMs(ttl)),
      ...optional('maxHold', maxHoldMs),
      ...optional('holder', isTransferred ? this.holderOf(job) : named),
    });
    if (!result.ok) return null;
    if (this.#offered.delete(storeKey)) counters.add('transfer claimed');
    return { lease: result.lease, storeKey, ...optional('maxHoldMs', maxHoldMs) };
  }

  async #takeSlot(job: Job, ttl: number): Promise<Taken | null> {
    const { setting, process, counters } = this.#parts;
    const id = `${job.leaseClass} ${ttl}`;
    const made = { slots: SLOTS, class: job.leaseClass, ttl };
    const pool =
      this.#pools.get(id) ??
      this.#holdfast.pool(job.key, { ...made, ...optional('guard', setting.guardMs(ttl)) });
    this.#pools.set(id, pool);
    const result = await pool.acquire({
      ...this.#waitOptions(),
      ...optional('holder', setting.isNamed ? process.name : undefined),
    });
    if (!result.ok) return null;
    counters.add(`slot granted: ${result.slot}`);
    return { lease: result.lease, storeKey: this.#storeKeyOf({ ...job, key: result.lease.key }) };
  }

  #waitOptions(): { wait: number; signal: AbortSignal } {
    return { wait: WAIT_BOUNDS * this.#parts.boundMs, signal: this.#parts.signal };
  }

  /** Competes until it has led for a while. */
  async #lead(job: Job): Promise<void> {
    const { setting, signal, counters } = this.#parts;
    const ttl = this.#ttl();
    const storeKey = this.#storeKeyOf(job);
    const isOver = new AbortController();
    let lastDone = () => {};
    this.#beginWaiting(job);
    const election: Election = this.#holdfast.elect(job.key, {
      ttl,
      ...optional('guard', setting.guardMs(ttl)),
      onElected: async ({ lease, signal: leads }) => {
        this.#stopWaiting(job);
        counters.add('elected');
        const facts = { ttl, kind: 'elections' as const, subject: storeKey };
        const done = this.#believe(lease, storeKey, facts, () => election.isLeader);
        await this.#keep(leads, storeKey, ttl);
        if (lease.lossReason === null) {
          lastDone = done;
          isOver.abort();
          return;
        }
        // It follows again.
        done();
        this.#beginWaiting(job);
      },
      onLost: ({ reason }) => counters.add(`led no longer: ${reason}`),
    });
    const { process } = this.#parts;
    await process
      .sleep(WAIT_BOUNDS * this.#parts.boundMs, AbortSignal.any([signal, isOver.signal]))
      .catch(() => {});
    await election.stop();
    lastDone();
  }

  async #runOnce(job: Job): Promise<void> {
    const { setting, boundMs, counters, work, process } = this.#parts;
    const { onCrash } = setting;
    const ttl = this.#ttl();
    const storeKey = this.#storeKeyOf(job);
    const record = `${setting.prefix}once:${job.key}`;
    this.#beginWaiting(job);
    const options = {
      per: PER_BOUNDS * boundMs,
      onCrash,
      ttl,
      ...this.#waitOptions(),
      ...optional('guard', setting.guardMs(ttl)),
    };
    const result = await this.#holdfast.once(job.key, options, async ({ lease }) => {
      this.#stopWaiting(job);
      work.began(record, process, onCrash);
      const done = this.#believe(lease, storeKey, { ttl, kind: 'once', subject: storeKey });
      try {
        await this.#keep(lease.signal, storeKey, ttl);
      } finally {
        done();
      }
    });
    if (process.isDead) return;
    counters.add(`once: ${result.ok ? 'ran' : result.reason}`);
    if (result.ok) work.ran(record);
  }

  /** The auditor watches this lease until what this gives is called. */
  #believe(
    lease: Lease,
    storeKey: string,
    { ttl, kind, subject }: { ttl: number; kind: Work; subject: string },
    isBelievedToo: () => boolean = () => false,
  ): () => void {
    const { process, setting, counters, believers } = this.#parts;
    counters.add(`granted: ${subject}`);
    counters.add(`granted for: ${kind}`);
    if (setting.isNamed) counters.add('granted to a named holder');
    if (setting.quarantine === 'off') counters.add('granted with quarantine off');
    counters.add(`granted with prefix '${setting.prefix}'`);
    return believers.watch({
      storeKey,
      process,
      ttlMs: ttl,
      ...optional('guardMs', setting.guardMs(ttl)),
      ...(kind === 'pools' && { pool: { name: subject, slots: SLOTS } }),
      holder: lease.holder,
      fence: lease.fence,
      isOff: setting.quarantine === 'off',
      isBelieved: () => isBelieved(lease) || isBelievedToo(),
    });
  }

  async #keep(signal: AbortSignal, storeKey: string, ttlMs: number): Promise<void> {
    const { process, boundMs, setting } = this.#parts;
    const isLongest = ttlMs > boundMs || (setting.ttlsMs.length > 1 && ttlMs === boundMs);
    const usual = setting.isNamed ? KEEP_NAMED_BOUNDS : KEEP_BOUNDS;
    const ms = process.random.next() * (isLongest ? KEEP_LONGEST_BOUNDS : usual) * boundMs;
    const hurry = new AbortController();
    this.#hurry.set(storeKey, () => hurry.abort());
    await process.sleep(ms, AbortSignal.any([signal, hurry.signal])).catch(() => {});
    this.#hurry.delete(storeKey);
  }

  async #letGo(job: Job, kind: Work, { lease, storeKey }: Taken): Promise<void> {
    const { process, boundMs, setting, counters } = this.#parts;
    const isChosen = process.random.next() < SHARE;
    const peer = kind === 'transfers' && isChosen ? this.#waitingPeer(storeKey) : undefined;
    if (peer !== undefined) {
      peer.#offered.add(storeKey);
      const result = await lease.transfer(peer.holderOf(job));
      if (result.transferred) counters.add('transferred');
      else peer.#offered.delete(storeKey);
      return;
    }
    const keepFor = setting.isKept && isChosen ? process.random.next() * KEPT_BOUNDS * boundMs : 0;
    const result = await lease.release(keepFor > 0 ? { keepFor } : {});
    if (result.released && keepFor > 0) counters.add('kept after a release');
  }

  /** After `maxHold` it is over, whatever renewals have said. */
  #limitHold({ lease, storeKey }: Taken, maxHoldMs: number): void {
    const { process, work, counters } = this.#parts;
    lease.signal.addEventListener('abort', () => {
      if (lease.lossReason === 'max_hold') counters.add('held for maxHold');
    });
    work.endsBy(storeKey, process, { maxHoldMs, isBelieved: () => isBelieved(lease) });
  }

  #waitingPeer(storeKey: string): MixedWork | undefined {
    return this.#parts
      .peers()
      .find((peer) => peer !== this && peer.waiting.has(storeKey) && peer.#takesTransfers());
  }

  #takesTransfers(): boolean {
    const { setting, process } = this.#parts;
    return setting.work === 'transfers' && !process.isDead && !setting.isMisfit;
  }

  /** A name under which a transfer wakes it. */
  holderOf({ leaseClass }: Job): string {
    return `${this.#holdfast.instanceId}:${leaseClass}`;
  }

  #ttl(): number {
    const { ttlsMs } = this.#parts.setting;
    return this.#tenures++ === 0 ? ttlsMs[0] : pick(this.#parts.process.random, ttlsMs);
  }

  /** There are no elections, and no jobs that run once, of other classes. */
  #kindOf({ leaseClass }: Job): Work {
    const { work } = this.#parts.setting;
    const isOther = leaseClass === 'poll' || leaseClass === 'workflow';
    return isOther && (work === 'elections' || work === 'once') ? 'leases' : work;
  }

  #storeKeysOf(job: Job): string[] {
    if (this.#kindOf(job) !== 'pools') return [this.#storeKeyOf(job)];
    return Array.from({ length: SLOTS }, (_, slot) =>
      this.#storeKeyOf({ ...job, key: `${job.key}:${slot + 1}` }),
    );
  }

  #storeKeyOf({ leaseClass, key }: Job): string {
    return keysOf(this.#parts.setting.prefix).lease(LEASE_CLASSES[leaseClass].keyspace + key);
  }

  #beginWaiting(job: Job): void {
    const { nowMs } = this.#parts.process.host.timeline;
    for (const storeKey of this.#storeKeysOf(job)) this.waiting.set(storeKey, nowMs);
  }

  #stopWaiting(job: Job): void {
    for (const storeKey of this.#storeKeysOf(job)) this.waiting.delete(storeKey);
  }

  #isOver(): boolean {
    return this.#parts.signal.aborted || this.#parts.process.isDead;
  }
}

function isBelieved(lease: Lease): boolean {
  try {
    lease.assertHeld();
    return true;
  } catch {
    return lease.isHeld();
  }
}

function optional<N extends string, T>(name: N, value: T | undefined): { [K in N]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { [K in N]?: T };
}
