import type { Clock } from '../../core/clock.ts';
import type { Attachment, KeepAliveCall, KeepAliveReply } from '../port/lease-store.ts';
import { notExpired } from './expiry.ts';

interface Keepalive {
  expiresAtMs: number;
  version: number;
  /** By number: the keys of leases that were attached. */
  readonly detached: Map<number, string>;
}

/** The keepalives of a memory store. One that has lapsed is buried as soon as it is asked for. */
export class MemoryKeepaliveSet {
  readonly #clock: Clock;
  readonly #keepalives = new Map<string, Keepalive>();
  #detachments = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  keep(id: string, { ttlMs, version, acknowledged }: KeepAliveCall): KeepAliveReply {
    const found = this.#alive(id);
    if (found === undefined || found.version < version) return { kind: 'gone' };
    for (const number of acknowledged) found.detached.delete(number);
    found.expiresAtMs = Math.max(found.expiresAtMs, this.#clock.monotonicMs() + ttlMs);
    const detached = [...found.detached].map(([number, key]) => ({ number, key }));
    return { kind: 'kept', detached };
  }

  /** Makes or lengthens the keepalive of an attachment. Returns its new version, if it lives. */
  raise({ id, isNew }: Attachment, ttlMs: number): number | undefined {
    const expiresAtMs = this.#clock.monotonicMs() + ttlMs;
    if (isNew && !this.#keepalives.has(id)) {
      for (const other of this.#keepalives.keys()) this.#alive(other);
      this.#keepalives.set(id, { expiresAtMs, version: 0, detached: new Map() });
    }
    const found = this.#alive(id);
    if (found === undefined) return undefined;
    found.expiresAtMs = Math.max(found.expiresAtMs, expiresAtMs);
    return ++found.version;
  }

  /** When the keepalive lapses; −Infinity if it is gone. */
  expiresAtMs(id: string | null): number {
    const found = id === null ? undefined : this.#alive(id);
    return found?.expiresAtMs ?? Number.NEGATIVE_INFINITY;
  }

  /** A lease is no longer attached: the next `keepAlive` says so. */
  detach(id: string, key: string): void {
    this.#alive(id)?.detached.set(++this.#detachments, key);
  }

  #alive(id: string): Keepalive | undefined {
    return notExpired(this.#keepalives, id, this.#clock.monotonicMs());
  }
}
