/**
 * One client of a mixed world: the production `open` on the production Redis store, with options
 * and timings of its own. It takes its keys, works under them, lets them go, and takes them again.
 */
import { ConfigError, StoreUnsuitableError } from '../../src/core/errors.ts';
import { Emitter, type EventName } from '../../src/core/events.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import { LEASE_CLASSES, type LeaseClassName } from '../../src/lease/timings.ts';
import type { Store } from '../../src/store/port/store.ts';
import { keysOf } from '../../src/store/redis/keys.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import type { Audit } from './audit.ts';
import type { Believers } from './believers.ts';
import { boundOptions } from './bounds.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import { type ClientSetting, type Job, pick } from './mixed-setting.ts';
import { MixedWork } from './mixed-work.ts';
import { type NetworkParts, simDialer } from './network.ts';
import type { Occupant } from './seat.ts';
import type { Trace } from './trace.ts';
import type { WorkAudit } from './work-audit.ts';

export interface MixedClientParts {
  readonly setting: ClientSetting;
  /** What it uses where its prefix is refused. */
  readonly otherwise: ClientSetting;
  readonly boundMs: number;
  readonly network: NetworkParts;
  readonly audit: Pick<Audit, 'report' | 'model'>;
  readonly believers: Believers;
  readonly counters: Counters;
  readonly trace: Trace;
  readonly work: WorkAudit;
  peers(): readonly MixedWork[];
  /** It is granted nothing for so long. */
  onQuarantine(leftMs: number): void;
}

/** A store that is not there when a client starts is tried again after this. */
const OPEN_AGAIN_MS = 500;
const STOP_WITHIN_MS = 2_000;
/** A quarantine lasts no longer than the bound and a second; a millisecond is for rounding. */
const QUARANTINE_MARGIN_MS = 1_001;

const WATCHED: readonly EventName[] = [
  'lease.acquired',
  'lease.lost',
  'lease.released',
  'lease.refused',
  'lease.revoked',
  'lease.uncertain',
  'lease.confirmed',
  'lease.reasserted',
  'lease.returned',
  'lease.abandoned',
  'lease.transferred',
  'store.connected',
  'store.disconnected',
  'store.forgot',
  'store.quarantined',
  'store.warned',
  'loop.delayed',
];

export class MixedClient implements Occupant {
  readonly process: SimProcess;
  /** The keys that were revoked from it, and when: it leaves each of them alone for one TTL. */
  readonly revokedMs = new Map<string, number>();
  readonly #parts: MixedClientParts;
  readonly #events = new Emitter();
  readonly #over = new AbortController();
  #setting: ClientSetting;
  #store: Store | null = null;
  #holdfast: Holdfast | null = null;
  #work: MixedWork | null = null;
  #isStopping = false;

  constructor(parts: MixedClientParts) {
    this.#parts = parts;
    this.#setting = parts.setting;
    this.process = parts.network.process;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** What its keys are called in the store; none before that has taken it. */
  get storeKeys(): string[] {
    return this.#work?.storeKeys ?? [];
  }

  /** What it does with its keys; null before it has opened the store. */
  get work(): MixedWork | null {
    return this.#work;
  }

  /** Since when it waits for this key. */
  waitsSinceMs(storeKey: string): number | undefined {
    return this.#work?.waiting.get(storeKey);
  }

  async start(): Promise<void> {
    const { process } = this;
    for (const name of WATCHED) this.#events.on(name, (facts) => this.#heard(name, facts));
    const store = await this.#openStore();
    if (store === null) return;
    const { audit } = this.#parts;
    const on = {
      ...Object.fromEntries(
        WATCHED.map((name) => [name, (facts: object) => this.#heard(name, facts)]),
      ),
      'lease.extended': (facts: object) =>
        audit.model?.heard('lease.extended', facts, process, this.#setting.prefix),
    };
    this.#holdfast = await open(store, {
      clock: process,
      random: process.random,
      name: process.name,
      on,
      history: 'off',
    });
    const { boundMs, believers, work, counters, peers } = this.#parts;
    const { signal } = this.#over;
    const misfit = (error: ConfigError) => this.#misfit(error);
    const doing = { process, boundMs, believers, work, counters, signal, peers, misfit };
    this.#work = new MixedWork({ ...doing, setting: this.#setting }, this.#holdfast);
  }

  async stop(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#over.abort();
    await this.#holdfast?.close({ within: STOP_WITHIN_MS });
    await this.#store?.close();
    this.end();
  }

  end(): void {
    this.process.kill();
    this.#parts.network.path.abandon(this.process);
    this.#parts.believers.forget(this.process);
  }

  /** Releases a key soon, if it holds it. */
  letGo(storeKey: string): boolean {
    return this.#work?.letGo(storeKey) ?? false;
  }

  /** As an operator would: looks who holds a key, and revokes that. */
  async revoke(force: boolean): Promise<void> {
    const { believers, counters } = this.#parts;
    const job = pick(this.process.random, this.#setting.jobs as [Job, ...Job[]]);
    const key = this.#work?.keyOf(job) ?? job.key;
    const name = LEASE_CLASSES[job.leaseClass].keyspace + key;
    const [found] = (await this.#store?.leases.read([name], { timeoutMs: 5_000 })) ?? [];
    if (found?.kind !== 'held' || this.#holdfast === null) return;
    const { holder, fence } = found;
    if (force)
      believers.revokesByForce({ storeKey: this.#storeKeyOf({ ...job, key }), holder, fence });
    counters.add(force ? 'revoked by force' : 'revoked');
    const how = { reason: 'simulated', force, class: job.leaseClass, fence };
    await this.#holdfast.revoke(key, how);
  }

  async #openStore(): Promise<Store | null> {
    const { process } = this;
    const { network, counters, otherwise, boundMs } = this.#parts;
    while (!this.#isStopping && !process.isDead) {
      const { prefix, quarantine, bounds } = this.#setting;
      try {
        this.#store = await openRedisStoreOn(simDialer(network), {
          clock: process,
          random: process.random,
          prefix,
          quarantine,
          events: this.#events,
          ...boundOptions(bounds),
        });
        return this.#store;
      } catch (error) {
        const isRefused = error instanceof StoreUnsuitableError;
        if (isRefused) counters.add('refused by the store');
        if (error instanceof ConfigError) {
          if (error.field !== 'prefix' || prefix === otherwise.prefix) this.#misfit(error);
          counters.add('prefix refused');
          const { prefix: other, jobs } = otherwise;
          this.#setting = { ...this.#setting, prefix: other, jobs };
        }
        const againMs = isRefused ? boundMs : OPEN_AGAIN_MS;
        await process.sleep(againMs, this.#over.signal).catch(() => {});
      }
    }
    return null;
  }

  #storeKeyOf({ leaseClass, key }: Job): string {
    return keysOf(this.#setting.prefix).lease(LEASE_CLASSES[leaseClass].keyspace + key);
  }

  #heard(name: EventName, facts: object): void {
    if (this.process.isDead) return;
    const { counters, trace, audit } = this.#parts;
    const { reason, leftMs, key, leaseClass } = facts as {
      reason?: string;
      leftMs?: number;
      key?: string;
      leaseClass?: LeaseClassName;
    };
    counters.add(reason === undefined ? name : `${name}: ${reason}`);
    audit.model?.heard(name, facts, this.process, this.#setting.prefix);
    const named = key !== undefined && leaseClass !== undefined;
    const inStore: { key?: string } = named ? { key: this.#storeKeyOf({ leaseClass, key }) } : {};
    trace.note(this.process.name, name, { ...facts, ...inStore });
    if (name === 'lease.lost' && reason === 'revoked' && inStore.key !== undefined)
      this.revokedMs.set(inStore.key, this.#parts.network.timeline.nowMs);
    if (name !== 'store.quarantined' || leftMs === undefined) return;
    this.#parts.onQuarantine(leftMs);
    if (leftMs > this.#setting.bounds.lease + QUARANTINE_MARGIN_MS)
      audit.report('quarantine', '', `${this.process.name} has to wait ${Math.round(leftMs)} ms`);
  }

  /**
   * The world asked for something that Holdfast refuses: then it proves nothing, and has to be
   * mended.
   */
  #misfit(error: ConfigError): void {
    this.#parts.audit.report('tidiness', '', `the world does not fit: ${error.message}`);
  }
}
