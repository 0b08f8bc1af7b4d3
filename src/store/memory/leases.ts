import type { Clock } from '../../core/clock.ts';
import { fenceTime } from '../fence-time.ts';
import {
  type AcquireCall,
  type AcquireReply,
  type AcquireRequest,
  type BusyReply,
  FENCE_RECORD_MS,
  type Handover,
  type KeepAliveCall,
  type KeepAliveReply,
  type LeasePage,
  type LeaseStore,
  type ReadReply,
  type ReassertCall,
  type ReassertReply,
  type ReleaseReply,
  type Renewal,
  type RenewCall,
  type RenewReply,
  type RevokeCall,
  type RevokeReply,
  type Tenancy,
  TOMBSTONE,
  type TransferCall,
  type TransferReply,
  type WakeCall,
} from '../port/lease-store.ts';
import { wakeHint } from '../port/wake-hint.ts';
import type { LeaseHandover } from '../sqlite/verbs/orchestrator-steps.ts';
import { notExpired } from './expiry.ts';
import { MemoryKeepaliveSet } from './memory-keepalive-set.ts';
import type { MemorySignals } from './signals.ts';

interface Lease {
  holder: string;
  /** Its own expiry; it lives longer if its keepalive does. */
  expiresAtMs: number;
  /** The keepalive that it is attached to. */
  keepalive: string | null;
}

interface FenceRecord {
  fence: number;
  /** A forced revocation minted it: the holder's next renewal can tell that from an expiry. */
  revoked: boolean;
  expiresAtMs: number;
}

export class MemoryLeases implements LeaseStore {
  readonly #clock: Clock;
  readonly #signals: MemorySignals;
  readonly #leases = new Map<string, Lease>();
  readonly #keepalives: MemoryKeepaliveSet;
  readonly #fences = new Map<string, FenceRecord>();
  /** By key: the inboxes that wait, and since when. */
  readonly #lines = new Map<string, Map<string, number>>();

  constructor(clock: Clock, signals: MemorySignals) {
    this.#clock = clock;
    this.#signals = signals;
    this.#keepalives = new MemoryKeepaliveSet(clock);
  }

  async acquire(requests: readonly AcquireRequest[], call: AcquireCall): Promise<AcquireReply[]> {
    return requests.map((request) => this.#acquireOne(request, call));
  }

  async renew(
    tenures: readonly Renewal[],
    { ttlMs, keepFences = false, attachTo }: RenewCall,
  ): Promise<RenewReply[]> {
    let version: number | undefined;
    return tenures.map(({ key, holder, fence }) => {
      const lease = this.#live(key);
      if (lease?.holder === holder) {
        const kept = keepFences ? this.#record(key) : undefined;
        if (kept !== undefined) this.#keepFence(key, kept.fence, kept.revoked);
        lease.expiresAtMs = Math.max(lease.expiresAtMs, this.#clock.monotonicMs() + ttlMs);
        if (attachTo === undefined || this.#fence(key) !== fence) return { kind: 'renewed' };
        version ??= this.#keepalives.raise(attachTo, ttlMs);
        if (version === undefined) return { kind: 'renewed' };
        if (lease.keepalive !== attachTo.id) this.#detach(key);
        lease.keepalive = attachTo.id;
        return { kind: 'renewed', version };
      }
      if (lease !== undefined)
        return { kind: 'other', holder: lease.holder, revoked: lease.holder === TOMBSTONE };
      const record = this.#record(key);
      return { kind: 'vanished', fence: record?.fence ?? 0, revoked: record?.revoked ?? false };
    });
  }

  async keepAlive(id: string, call: KeepAliveCall): Promise<KeepAliveReply> {
    return this.#keepalives.keep(id, call);
  }

  async reassert(tenures: readonly Tenancy[], { ttlMs }: ReassertCall): Promise<ReassertReply[]> {
    return tenures.map(({ key, holder, fence }) => {
      // This store loses no records, so a key without a record was never granted.
      const record = this.#record(key);
      if (this.#live(key) !== undefined || record?.fence !== fence || record.revoked) {
        return 'refused';
      }
      this.#set(key, holder, this.#clock.monotonicMs() + ttlMs);
      return 'reasserted';
    });
  }

  async release(tenures: readonly Tenancy[]): Promise<ReleaseReply[]> {
    return tenures.map((tenure) => {
      if (!this.#names(tenure)) return this.#notHeld(tenure.key);
      this.#delete(tenure.key);
      if (this.#record(tenure.key) === undefined) this.#keepFence(tenure.key, tenure.fence);
      return { kind: 'released', woke: this.#wake(tenure.key) > 0 };
    });
  }

  async transfer(
    handovers: readonly Handover[],
    { windowMs }: TransferCall,
  ): Promise<TransferReply[]> {
    return handovers.map((handover) => {
      if (!this.#names(handover)) return this.#notHeld(handover.key);
      const floor = handover.fence + 1;
      return { kind: 'transferred', fence: this.handOver({ ...handover, windowMs, floor }) };
    });
  }

  async revoke(key: string, { force, fence: meant }: RevokeCall): Promise<RevokeReply> {
    const lease = this.#live(key);
    const isBarred = lease?.holder === TOMBSTONE && !force;
    if (lease === undefined || isBarred || this.#fence(key) !== meant) return this.#notHeld(key);
    const { holder } = lease;
    const mayActForMs = this.expiresInMs(key);
    const { fence, woke } = force ? this.#freeAndWake(key) : this.#bar(key);
    return { kind: 'revoked', holder, fence, mayActForMs, woke };
  }

  async read(keys: readonly string[]): Promise<ReadReply[]> {
    return keys.map((key) => this.#readOne(key));
  }

  async list(prefix: string): Promise<LeasePage> {
    const leases = [...this.#leases.keys()]
      .filter((key) => key.startsWith(prefix))
      .flatMap((key) => {
        const found = this.#readOne(key);
        return found.kind === 'held'
          ? [{ key, holder: found.holder, fence: found.fence, expiresInMs: found.expiresInMs }]
          : [];
      });
    return { leases };
  }

  async wakeNext(keys: readonly string[], { leaving, ...wave }: WakeCall): Promise<number[]> {
    return keys.map((key) => {
      if (leaving !== undefined) this.#lines.get(key)?.delete(leaving);
      return this.#live(key) === undefined ? this.#wake(key, wave) : 0;
    });
  }

  look(key: string): { holder: string | null; fence: number } {
    return { holder: this.#live(key)?.holder ?? null, fence: this.#fence(key) };
  }

  expiresInMs(key: string): number {
    const lease = this.#live(key);
    return lease === undefined ? 0 : this.#untilMs(lease) - this.#clock.monotonicMs();
  }

  handOver({ key, successor, windowMs, floor = 0 }: LeaseHandover): number {
    const fence = this.#mint(key, floor);
    const expiresAtMs = this.#clock.monotonicMs() + windowMs;
    this.#set(key, successor, expiresAtMs);
    void this.#signals.publish(successor.split('/', 1)[0] ?? successor, key);
    return fence;
  }

  free(key: string): number {
    return this.#freeAndWake(key).fence;
  }

  #freeAndWake(key: string): { fence: number; woke: boolean } {
    const fence = this.#mint(key, 0, true);
    this.#delete(key);
    return { fence, woke: this.#wake(key) > 0 };
  }

  #bar(key: string): { fence: number; woke: boolean } {
    this.#set(key, TOMBSTONE, this.#clock.monotonicMs() + this.expiresInMs(key));
    return { fence: this.#mint(key, 0), woke: false };
  }

  #acquireOne(request: AcquireRequest, call: AcquireCall): AcquireReply {
    const { key, holder } = request;
    const lease = this.#live(key);
    if (lease !== undefined && lease.holder !== holder)
      return this.#busy(request, lease.holder, call.inbox);
    const refreshed =
      lease !== undefined && request.fence !== undefined && this.#fence(key) === request.fence;
    const fence = refreshed ? request.fence : this.#mint(key, request.fenceFloor ?? 0);
    const leftMs = Math.max(this.expiresInMs(key), call.ttlMs);
    this.#set(key, holder, this.#clock.monotonicMs() + leftMs);
    return { kind: 'granted', fence };
  }

  #busy({ key, waitedMs }: AcquireRequest, holder: string, inbox: string): BusyReply {
    if (waitedMs !== undefined) {
      const line = this.#lines.get(key) ?? new Map<string, number>();
      this.#lines.set(key, line);
      if (!line.has(inbox)) line.set(inbox, this.#clock.monotonicMs() - waitedMs);
    }
    const reason = holder === TOMBSTONE ? 'revoked' : 'held';
    const expiresInMs = this.expiresInMs(key);
    return { kind: 'busy', reason, holder, fence: this.#fence(key), expiresInMs };
  }

  #readOne(key: string): ReadReply {
    const lease = this.#live(key);
    const fence = this.#fence(key);
    if (lease === undefined) return { kind: 'free', fence };
    const expiresInMs = this.expiresInMs(key);
    return lease.holder === TOMBSTONE
      ? { kind: 'revoked', fence, expiresInMs }
      : { kind: 'held', holder: lease.holder, fence, expiresInMs };
  }

  #names({ key, holder, fence }: Tenancy): boolean {
    const record = this.#record(key);
    return this.#live(key)?.holder === holder && (record === undefined || record.fence === fence);
  }

  #notHeld(key: string): { kind: 'not-held'; holder: string | null; fence: number } {
    return { kind: 'not-held', ...this.look(key) };
  }

  /** The lease of a key, unless it has expired and its keepalive, if any, has lapsed. */
  #live(key: string): Lease | undefined {
    const lease = this.#leases.get(key);
    if (lease === undefined) return undefined;
    if (this.#untilMs(lease) > this.#clock.monotonicMs()) return lease;
    this.#leases.delete(key);
    return undefined;
  }

  #untilMs({ expiresAtMs, keepalive }: Lease): number {
    return Math.max(expiresAtMs, this.#keepalives.expiresAtMs(keepalive));
  }

  #set(key: string, holder: string, expiresAtMs: number): void {
    this.#detach(key);
    this.#leases.set(key, { holder, expiresAtMs, keepalive: null });
  }

  #delete(key: string): void {
    this.#detach(key);
    this.#leases.delete(key);
  }

  #detach(key: string): void {
    const lease = this.#leases.get(key);
    if (lease === undefined || lease.keepalive === null) return;
    this.#keepalives.detach(lease.keepalive, key);
    lease.expiresAtMs = this.#untilMs(lease);
    lease.keepalive = null;
  }

  #record(key: string): FenceRecord | undefined {
    return notExpired(this.#fences, key, this.#clock.monotonicMs());
  }

  #fence(key: string): number {
    return this.#record(key)?.fence ?? 0;
  }

  #mint(key: string, floor: number, revoked = false): number {
    const fence = Math.max(this.#fence(key) + 1, fenceTime(this.#clock), floor);
    this.#keepFence(key, fence, revoked);
    return fence;
  }

  #keepFence(key: string, fence: number, revoked = false): void {
    this.#fences.set(key, {
      fence,
      revoked,
      expiresAtMs: this.#clock.monotonicMs() + FENCE_RECORD_MS,
    });
  }

  /** Sends a wake hint to the first waiters that still subscribe, and returns how many. */
  #wake(key: string, { most, apartMs } = { most: 1, apartMs: 0 }): number {
    const line = [...(this.#lines.get(key) ?? [])].sort(([, a], [, b]) => a - b);
    let told = 0;
    for (const [inbox] of line) {
      this.#lines.get(key)?.delete(inbox);
      if (this.#signals.deliver(inbox, wakeHint({ key, inMs: told * apartMs })) > 0) told++;
      if (told === most) break;
    }
    if (this.#lines.get(key)?.size === 0) this.#lines.delete(key);
    return told;
  }
}
