/**
 * A name that one worker has at a time, and has again when it is restarted. The leases that
 * the worker held when it was killed are then free at once, and not only when they expire.
 *
 * That takes proof that the process which held the leases is dead, with everything it had started.
 * The kernel gives that proof: the process and its supervisor of commands share a socket, which
 * locks the name on this host. A process that gets the lock knows that both are gone. The store has
 * a registration: which instance had the name last, on which host, and under which lock. If host
 * and lock are the same, that instance is dead. This worker then kills the rest of its process
 * groups and releases its leases, by the fences that they show, and no other leases. Where a part
 * of the proof is missing (another host, another system, a process group that cannot be told from a
 * stranger's) the leases expire.
 */
import { retryStore } from '../core/retry.ts';
import { dedupKey } from '../intents/dedup-key.ts';
import { readable } from '../intents/session-reading.ts';
import { openSessions } from '../intents/start-recovery-loop.ts';
import type { Lease } from '../lease/lease.ts';
import type { AcquireOptions } from '../lease/options.ts';
import { LEASE_CLASSES } from '../lease/timings.ts';
import type { Runtime } from '../store/runtime.ts';
import { WorkerNameTakenError } from './errors.ts';
import { SessionRecord } from './session-record.ts';
import type { Host, HostLock } from './supervisor/host.ts';
import type { WorkerEnvironment, WorkerResources } from './worker-resources.ts';

/** The worker that has the name, or had it last. */
interface Registration {
  readonly instance: string;
  readonly host: string | null;
  readonly lock: string;
  /** The process, as its host knows it. */
  readonly process: string;
}

const COLLECTION = 'workers';
const CALL = { timeoutMs: 2_000 };
/** How often the lock of a dying process is tried. */
const LOCK_EVERY_MS = 50;
/** The supervisor of a dead process has this long to end its commands before they are killed. */
const KILL_AFTER_MS = 1_000;
/** How long the lock is tried at most. */
const MAX_LOCK_MS = 10_000;
/** The lease of a dead worker is waited for this much longer than it lasts. */
const EXTRA_WAIT_MS = 1_000;
/** The longest wait for the name in one request. */
const MAX_WAIT_MS = 60_000;
/** Keys in one request that frees the leases of a dead instance. */
const BATCH = 500;
const CLEANUP_CALL = { timeoutMs: 5_000 };
const { keyspace } = LEASE_CLASSES.resource;

export class WorkerNameLock {
  readonly #rt: Runtime;
  readonly #resources: WorkerResources;
  readonly #environment: WorkerEnvironment;
  readonly #name: string;
  readonly #acquireOptions: AcquireOptions;
  readonly #closed = new AbortController();
  #lock: HostLock | null = null;
  #lease: Lease | null = null;

  constructor(
    rt: Runtime,
    resources: WorkerResources,
    environment: WorkerEnvironment,
    name: string,
  ) {
    this.#rt = rt;
    this.#resources = resources;
    this.#environment = environment;
    this.#name = name;
    this.#acquireOptions = {
      ...resources.acquireOptions,
      holder: rt.instanceId,
      untilReleased: true,
    };
  }

  /** The lock on this host, for a child that is to hold it, too. Null: there is none. */
  get lock(): HostLock | null {
    return this.#lock;
  }

  /** Makes the name this worker's, and frees its former leases. Throws `WORKER_NAME_TAKEN`. */
  async claim(): Promise<void> {
    if (this.#environment.host.id !== null) this.#lock = await this.#acquireLock();
    try {
      this.#keep(await this.#acquireLease());
    } catch (error) {
      this.unlock();
      throw error;
    }
  }

  async release(): Promise<void> {
    this.#closed.abort();
    await this.#lease?.release();
  }

  /** Only when nothing that the lock protects is left. */
  unlock(): void {
    this.#closed.abort();
    this.#lock?.close();
    this.#lock = null;
  }

  async #acquireLock(): Promise<HostLock> {
    const { clock } = this.#rt;
    const { host } = this.#environment;
    const startMs = clock.monotonicMs();
    for (;;) {
      const lock = await host.lock(this.#lockName);
      if (lock !== null) return lock;
      const before = await this.#readRegistration();
      const isHere = before?.host === host.id;
      if (isHere && host.isAlive(before.process))
        throw this.#taken(`its process is alive on this host (${before.process})`);
      const waitedMs = clock.monotonicMs() - startMs;
      if (waitedMs > MAX_LOCK_MS) throw this.#taken('a process on this host holds its lock');
      // The process is dead, and its supervisor is ending its commands.
      if (isHere && waitedMs > KILL_AFTER_MS) await killGroups(this.#rt, host, before.instance);
      await clock.sleep(LOCK_EVERY_MS, this.#closed.signal);
    }
  }

  async #acquireLease(): Promise<Lease> {
    for (let wait = 0, isLast = false; ; ) {
      const result = await this.#retry(() => this.#acquire(wait));
      if (result.ok) return result.lease;
      const holder = result.reason === 'held' ? result.holder : null;
      if (holder !== null && isLast) throw this.#taken(`${holder} has it, and renews it`);
      const isFreed = holder !== null && (await this.#freeDeadHolder(holder));
      wait = isFreed ? 0 : Math.min(result.expiresInMs, MAX_WAIT_MS) + EXTRA_WAIT_MS;
      isLast = holder !== null && !isFreed;
    }
  }

  /** Frees what the instance held, the name included, if that is proven dead. False: it is not. */
  async #freeDeadHolder(holder: string): Promise<boolean> {
    const { events } = this.#rt;
    const { host } = this.#environment;
    const before = await this.#readRegistration();
    const isProven =
      this.#lock !== null &&
      before?.instance === holder &&
      before.host === host.id &&
      before.lock === this.#lockName;
    if (!isProven) return false;
    const { pools } = this.#resources;
    if (!(await this.#retry(() => killGroups(this.#rt, host, holder)))) return false;
    const count = await this.#retry(() => releaseLeases(this.#rt, pools, holder, this.#key));
    await this.#retry(() => removeFromSessions(this.#rt, holder));
    events.emit('worker.reclaimed', { worker: this.#name, predecessor: holder, count });
    return true;
  }

  /**
   * Keeps the name while this worker lives. A lost name is acquired again: only a restart needs it.
   */
  #keep(lease: Lease): void {
    this.#lease = lease;
    this.#register(lease).catch(() => {});
    const onLost = () => void this.#acquireAgain().catch(() => {});
    lease.signal.addEventListener('abort', onLost, { once: true });
  }

  async #acquireAgain(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      const result = await this.#retry(() => this.#acquire(MAX_WAIT_MS));
      if (result.ok) return this.#keep(result.lease);
    }
  }

  #acquire(wait: number) {
    const { signal } = this.#closed;
    return this.#resources.leases.acquire(this.#key, { ...this.#acquireOptions, wait, signal });
  }

  async #register({ fence }: Lease): Promise<void> {
    const { store, instanceId: instance } = this.#rt;
    const { id, self } = this.#environment.host;
    const value: Registration = { instance, host: id, lock: this.#lockName, process: self };
    const write = { id: this.#name, value, fence };
    await this.#retry(() => store.records.put(COLLECTION, [write], CALL));
  }

  async #readRegistration(): Promise<Registration | null> {
    const { records } = this.#rt.store;
    const [found] = await this.#retry(() => records.get(COLLECTION, [this.#name], CALL));
    return found?.kind === 'found' ? (found.value as Registration) : null;
  }

  #retry<T>(request: () => Promise<T>): Promise<T> {
    return retryStore(this.#rt, this.#closed.signal, request);
  }

  #taken(why: string): WorkerNameTakenError {
    return new WorkerNameTakenError({ worker: this.#name, why });
  }

  get #key(): string {
    return `worker:${this.#name}`;
  }

  /**
   * Names this worker in this store. A process that reaches the store by another address has
   * another lock, and so no proof.
   */
  get #lockName(): string {
    const { store } = this.#rt;
    return JSON.stringify([store.identity ?? store.name, this.#environment.prefix, this.#name]);
  }
}

// The rest frees all that a dead instance has left behind: process groups, leases, and sessions.

/** Kills the process groups that ran for its sessions. False: some may still be there. */
async function killGroups(rt: Runtime, host: Host, instance: string): Promise<boolean> {
  let areGone = true;
  for await (const { session } of openRecords(rt)) {
    const { id, worker, group } = session;
    if (worker === instance && group !== undefined)
      areGone = (await host.endGroup(group, id)) && areGone;
  }
  return areGone;
}

/** Removes its name from its sessions, so that no worker waits for a sign of its death. */
async function removeFromSessions(rt: Runtime, instance: string): Promise<void> {
  for await (const record of openRecords(rt)) {
    const { worker, state, losses = 0 } = record.session;
    const isTheirs = () => record.session.worker === instance;
    if (worker !== instance) continue;
    // False: another worker was faster, and has the session.
    await record.write(state, { worker: null, slot: null, losses: losses + 1 }, isTheirs);
  }
}

/**
 * Releases the leases of this instance and of no other: those of open sessions, of slots, and
 * that of the worker's name. Returns how many there were.
 *
 * Two kinds are left to expire: leases of pools that are not configured any more, and a lease
 * that the API of this instance acquired for a session that another worker may have continued
 * under that holder.
 */
async function releaseLeases(
  rt: Runtime,
  pools: WorkerResources['pools'],
  instance: string,
  nameKey: string,
): Promise<number> {
  const keys = new Set([nameKey]);
  for (const { pool } of pools.values()) for (const slot of pool.slots) keys.add(pool.keyOf(slot));
  // The commands of an unreadable session have not been killed: its leases expire.
  const spared = new Set<string>();
  const spare = (id: string) => {
    for (const holder of [`${instance}/${id}`, `${instance}/again/${id}`]) spared.add(holder);
  };
  for await (const { session } of openRecords(rt, spare)) {
    keys.add(dedupKey(session));
    const { worker, tenure } = session;
    if (tenure !== undefined && worker !== instance) spared.add(tenure.holder);
  }
  const all = [...keys].map((key) => keyspace + key);
  let released = 0;
  for (let i = 0; i < all.length; i += BATCH)
    released += await releaseHeld(rt, instance, all.slice(i, i + BATCH), spared);
  return released;
}

async function releaseHeld(
  { store: { leases } }: Runtime,
  instance: string,
  keys: readonly string[],
  spared: ReadonlySet<string>,
): Promise<number> {
  const found = await leases.read(keys, CLEANUP_CALL);
  const tenancies = keys.flatMap((key, i) => {
    const lease = found[i];
    if (lease?.kind !== 'held') return [];
    const { holder, fence } = lease;
    const isTheirs = holder === instance || holder.startsWith(`${instance}/`);
    return isTheirs && !spared.has(holder) ? [{ key, holder, fence }] : [];
  });
  if (tenancies.length === 0) return 0;
  const replies = await leases.release(tenancies, CLEANUP_CALL);
  return replies.filter(({ kind }) => kind === 'released').length;
}

/** `skipped` is called with the id of each session that cannot be read. */
async function* openRecords(
  rt: Runtime,
  skipped: (id: string) => void = () => {},
): AsyncGenerator<SessionRecord> {
  for await (const { sessions, foreign } of openSessions(rt)) {
    for (const id of foreign) skipped(id);
    for (const stored of sessions)
      if (readable(rt.events, stored) === null) skipped(stored.id);
      else yield new SessionRecord(rt, stored);
  }
}
