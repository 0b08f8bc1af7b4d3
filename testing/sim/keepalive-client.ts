/**
 * One process of a world with keepalives: the production `open` on a memory store over a bad
 * network. It takes keys, holds each for several renewals, and ends it in one of the ways that
 * there are.
 */
import type { EventName } from '../../src/core/events.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import type { Lease } from '../../src/lease/lease.ts';
import { KEYSPACES } from '../../src/store/port/keyspaces.ts';
import type { Store } from '../../src/store/port/store.ts';
import type { Believers } from './believers.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import type { NetworkParts } from './network.ts';
import { type RemoteParts, remoteStore } from './remote-store.ts';
import type { Occupant } from './seat.ts';
import type { Trace } from './trace.ts';

export interface KeepaliveClientParts extends Omit<RemoteParts, 'network'> {
  readonly network: NetworkParts;
  readonly believers: Believers;
  readonly counters: Counters;
  readonly trace: Trace;
  readonly keys: readonly string[];
  /** Two policies: leases of both are on the same keys. */
  readonly ttlsMs: readonly number[];
  /** Its holders have names that it uses again. */
  readonly isNamed: boolean;
}

const PAUSE_MS = 3_000;
const WAIT_MS = 30_000;
/** Of the TTL: a lease is attached after a third of it, and then renewed some times more. */
const KEEP_TTLS = 5;
const STOP_WITHIN_MS = 2_000;
const KEEP_FOR_MS = 1_000;
const WINDOW_MS = 800;

/** How a lease ends, and how often: a release is the usual. */
const ENDS = ['release', 'release', 'release', 'abandon', 'keep', 'transfer', 'renew'] as const;

const WATCHED: readonly EventName[] = [
  'lease.acquired',
  'lease.lost',
  'lease.released',
  'lease.transferred',
  'lease.abandoned',
  'lease.uncertain',
  'lease.confirmed',
  'lease.reasserted',
  'lease.returned',
  'lease.refused',
  'lease.revoked',
  'loop.delayed',
];

export class KeepaliveClient implements Occupant {
  readonly process: SimProcess;
  readonly #parts: KeepaliveClientParts;
  readonly #store: Store;
  readonly #abandon: () => void;
  readonly #over = new AbortController();
  #holdfast: Holdfast | null = null;
  #isStopping = false;

  constructor(parts: KeepaliveClientParts) {
    this.#parts = parts;
    this.process = parts.network.process;
    const { store, abandon } = remoteStore(parts);
    this.#store = store;
    this.#abandon = abandon;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  async start(): Promise<void> {
    const { process } = this;
    const { counters, trace } = this.#parts;
    const heard = (name: EventName) => (facts: object) => {
      if (process.isDead) return;
      const { reason } = facts as { reason?: string };
      counters.add(reason === undefined ? name : `${name}: ${reason}`);
      trace.note(process.name, name, facts);
    };
    this.#holdfast = await open(this.#store, {
      clock: process,
      random: process.random,
      name: process.name,
      on: Object.fromEntries(WATCHED.map((name) => [name, heard(name)])),
      history: 'off',
    });
    for (const key of this.#parts.keys) void this.#work(this.#holdfast, key);
  }

  async stop(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#over.abort();
    await this.#holdfast?.close({ within: STOP_WITHIN_MS });
    this.end();
  }

  end(): void {
    this.process.kill();
    this.#abandon();
    this.#parts.believers.forget(this.process);
  }

  /** As an operator would: looks who holds a key, and revokes that. */
  async revoke(key: string, force: boolean): Promise<void> {
    const { believers, counters } = this.#parts;
    const storeKey = KEYSPACES.lease + key;
    const [found] = await this.#store.leases.read([storeKey], { timeoutMs: 2_000 });
    if (found?.kind !== 'held' || this.#holdfast === null) return;
    const { holder, fence } = found;
    if (force) believers.revokesByForce({ storeKey, holder, fence });
    counters.add(force ? 'revoked by force' : 'revoked');
    await this.#holdfast.revoke(key, { reason: 'simulated', force, fence });
  }

  async #work(holdfast: Holdfast, key: string): Promise<void> {
    const { process } = this;
    const { ttlsMs, isNamed } = this.#parts;
    while (!this.#isStopping && !process.isDead) {
      try {
        await process.sleep(process.random.next() * PAUSE_MS, this.#over.signal);
        const ttl = ttlsMs[Math.floor(process.random.next() * ttlsMs.length)] ?? 3_000;
        const result = await holdfast.acquire(key, {
          ttl,
          wait: WAIT_MS,
          signal: this.#over.signal,
          ...(isNamed && { holder: process.name }),
        });
        if (result.ok) await this.#hold(result.lease, ttl);
      } catch {
        // Held by others, the store is away, or the client stops.
      }
    }
  }

  async #hold(lease: Lease, ttlMs: number): Promise<void> {
    const { process } = this;
    const { believers } = this.#parts;
    const done = believers.watch({
      storeKey: KEYSPACES.lease + lease.key,
      process,
      ttlMs,
      holder: lease.holder,
      fence: lease.fence,
      isOff: false,
      isBelieved: () => isBelieved(lease),
    });
    const keepMs = process.random.next() * KEEP_TTLS * ttlMs;
    const how = ENDS[Math.floor(process.random.next() * ENDS.length)] ?? 'release';
    try {
      await process.sleep(keepMs, AbortSignal.any([lease.signal, this.#over.signal]));
      if (how === 'renew') await lease.renew();
    } catch {
      // Lost, or the client stops.
    }
    try {
      await this.#end(lease, how);
    } finally {
      done();
    }
  }

  async #end(lease: Lease, how: (typeof ENDS)[number]): Promise<void> {
    const { counters } = this.#parts;
    counters.add(`ended by: ${how}`);
    if (how === 'abandon') await lease.release({ settled: new Promise(() => {}), within: 0 });
    else if (how === 'keep') await lease.release({ keepFor: KEEP_FOR_MS });
    else if (how === 'transfer') await lease.transfer('nobody/1', { window: WINDOW_MS });
    else await lease.release();
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
