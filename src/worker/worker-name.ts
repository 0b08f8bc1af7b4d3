/**
 * A name that one worker has at a time, and that it has again when it is started anew: so that what it held when it was killed is free at once, and not
 * only when its leases have run out.
 *
 * That takes proof that the process which held them is dead, with all that it had started. There is proof where the kernel gives it: the
 * name is locked on this host by a socket that the process and its supervisor of commands share. Who gets the lock knows that both are gone. The store
 * says which instance had the name last, on which host, and under which lock; if that is this host and this lock, that instance is
 * dead. What is left of its process groups is killed, and its own leases are released, by the fences they show: nobody else's.
 * Where any of this is missing (another host, another system, a group that can not be told from a stranger's) the leases run out by themselves.
 */
import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import type { Random } from '../core/random.ts';
import { retryStore } from '../core/retry.ts';
import type { Lease } from '../lease/lease.ts';
import type { Leases } from '../lease/leases.ts';
import type { AcquireOptions } from '../lease/options.ts';
import type { Pool } from '../lease/pool/pool.ts';
import type { Store } from '../store/port/store.ts';
import { DeadWorker } from './dead-worker.ts';
import { WorkerNameTakenError } from './errors.ts';
import type { Host, HostLock } from './supervisor/host.ts';

/** Who has the name, or had it last. */
interface Registration {
  readonly instance: string;
  readonly host: string | null;
  readonly lock: string;
  /** The process, as its host knows it. */
  readonly process: string;
}

export interface WorkerNameParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly instanceId: string;
  readonly leases: Leases;
  readonly prefix: string;
  readonly host: Host;
}

export interface WorkerNameOptions {
  readonly name: string;
  /** How leases are taken. */
  readonly options: AcquireOptions;
  readonly pools: readonly Pool[];
}

const COLLECTION = 'workers';
const CALL = { timeoutMs: 2_000 };
/** While who had the lock is dying: how often it is tried, how long before what it has started is killed, and how long at most. */
const LOCK_EVERY_MS = 50;
const LOCK_KINDLY_MS = 1_000;
const LOCK_MOST_MS = 10_000;
/** How much longer than it lasts a lease is waited for that nobody may have any more. */
const LATER_MS = 1_000;
/** How long one wait for a name lasts at most. */
const AGAIN_MS = 60_000;

export class WorkerName {
  readonly #parts: WorkerNameParts;
  readonly #name: string;
  readonly #options: AcquireOptions;
  readonly #estate: DeadWorker;
  readonly #over = new AbortController();
  #lock: HostLock | null = null;
  #lease: Lease | null = null;

  constructor(parts: WorkerNameParts, { name, options, pools }: WorkerNameOptions) {
    this.#parts = parts;
    this.#name = name;
    this.#options = { ...options, holder: parts.instanceId, untilReleased: true };
    this.#estate = new DeadWorker(parts, pools);
  }

  /** For a child that is to hold it, too. Null where there is none. */
  get lock(): HostLock | null {
    return this.#lock;
  }

  /** Makes the name this worker's, and frees what it held before. Throws `WORKER_NAME_TAKEN`. */
  async claim(): Promise<void> {
    const { host } = this.#parts;
    if (host.id !== null) this.#lock = await this.#takeLock();
    try {
      this.#hold(await this.#takeLease());
    } catch (error) {
      this.unlock();
      throw error;
    }
  }

  async release(): Promise<void> {
    this.#over.abort();
    await this.#lease?.release();
  }

  /** Only when nothing that it protects is left. */
  unlock(): void {
    this.#over.abort();
    this.#lock?.close();
    this.#lock = null;
  }

  async #takeLock(): Promise<HostLock> {
    const { clock, host } = this.#parts;
    const startMs = clock.monotonicMs();
    for (;;) {
      const lock = await host.lock(this.#lockName);
      if (lock !== null) return lock;
      const before = await this.#registration();
      const isHere = before?.host === host.id;
      if (isHere && host.isAlive(before.process))
        throw this.#taken(`its process lives on this host (${before.process})`);
      const waitedMs = clock.monotonicMs() - startMs;
      if (waitedMs > LOCK_MOST_MS) throw this.#taken('a process on this host holds its lock');
      // It is dead, and its supervisor ends what it had started.
      if (isHere && waitedMs > LOCK_KINDLY_MS) await this.#estate.endGroups(before.instance);
      await clock.sleep(LOCK_EVERY_MS, this.#over.signal);
    }
  }

  async #takeLease(): Promise<Lease> {
    for (let wait = 0, isLast = false; ; ) {
      const result = await this.#insist(() => this.#acquire(wait));
      if (result.ok) return result.lease;
      const holder = result.reason === 'held' ? result.holder : null;
      if (holder !== null && isLast) throw this.#taken(`${holder} has it, and renews it`);
      const isFreed = holder !== null && (await this.#inherit(holder));
      wait = isFreed ? 0 : Math.min(result.expiresInMs, AGAIN_MS) + LATER_MS;
      isLast = holder !== null && !isFreed;
    }
  }

  /** Frees what an instance held, the name included, if it is dead for sure; says whether it was. */
  async #inherit(holder: string): Promise<boolean> {
    const { host, events } = this.#parts;
    const before = await this.#registration();
    const isProven =
      this.#lock !== null &&
      before?.instance === holder &&
      before.host === host.id &&
      before.lock === this.#lockName;
    if (!isProven || !(await this.#insist(() => this.#estate.endGroups(holder)))) return false;
    const count = await this.#insist(() => this.#estate.release(holder, [this.#key]));
    await this.#insist(() => this.#estate.disown(holder));
    events.emit('worker.reclaimed', { worker: this.#name, predecessor: holder, count });
    return true;
  }

  /** Keeps the name for as long as this worker lives. Should it be lost, it is taken again; nothing but a restart depends on it. */
  #hold(lease: Lease): void {
    this.#lease = lease;
    this.#register(lease).catch(() => {});
    const onLost = () => void this.#takeAgain().catch(() => {});
    lease.signal.addEventListener('abort', onLost, { once: true });
  }

  async #takeAgain(): Promise<void> {
    while (!this.#over.signal.aborted) {
      const result = await this.#insist(() => this.#acquire(AGAIN_MS));
      if (result.ok) return this.#hold(result.lease);
    }
  }

  #acquire(wait: number) {
    const { signal } = this.#over;
    return this.#parts.leases.acquire(this.#key, { ...this.#options, wait, signal });
  }

  async #register({ fence }: Lease): Promise<void> {
    const { store, host, instanceId: instance } = this.#parts;
    const { id: where, self } = host;
    const value: Registration = { instance, host: where, lock: this.#lockName, process: self };
    const write = { id: this.#name, value, fence };
    await this.#insist(() => store.records.put(COLLECTION, [write], CALL));
  }

  async #registration(): Promise<Registration | null> {
    const { records } = this.#parts.store;
    const [found] = await this.#insist(() => records.get(COLLECTION, [this.#name], CALL));
    return found?.kind === 'found' ? (found.value as Registration) : null;
  }

  #insist<T>(ask: () => Promise<T>): Promise<T> {
    return retryStore(this.#parts, this.#over.signal, ask);
  }

  #taken(why: string): WorkerNameTakenError {
    return new WorkerNameTakenError({ worker: this.#name, why });
  }

  get #key(): string {
    return `worker:${this.#name}`;
  }

  /** Of this name in this store. A process that reaches the store by another address has another lock, and so no proof. */
  get #lockName(): string {
    const { store, prefix } = this.#parts;
    return JSON.stringify([store.identity ?? store.name, prefix, this.#name]);
  }
}
