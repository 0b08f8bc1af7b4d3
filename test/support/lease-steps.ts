import type { KeepAliveReply } from '../../src/store/port/lease-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import fc from './fast-check.ts';

const CALL = { timeoutMs: 5_000 };
export const TTL_MS = 1_000;

export const LEASE_VERBS = [
  ...['acquire', 'refresh', 'renew', 'reassert', 'release', 'transfer', 'revoke', 'force', 'read'],
  ...['attach', 'attach', 'keep', 'keep'],
] as const;

/** One step. `pick` chooses one of the fences or keepalives told so far, old ones included. */
export function stepOf<V extends string>(verbs: readonly V[]) {
  return fc.record({
    verb: fc.constantFrom(...verbs),
    key: fc.constantFrom('a', 'b'),
    who: fc.constantFrom('h1', 'h2', 'h3'),
    pick: fc.nat({ max: 40 }),
  });
}

export interface LeaseStep {
  readonly verb: string;
  readonly key: string;
  readonly who: string;
  readonly pick: number;
}

/** Takes steps on one store, and remembers what it was told. */
export class LeaseSteps {
  readonly #store: Store;
  readonly fences: number[] = [];
  readonly #keepalives: string[] = [];
  /** By keepalive: the detachments that were told. */
  readonly #told = new Map<string, number[]>();

  constructor(store: Store) {
    this.#store = store;
  }

  async take({ verb, key: name, who: holder, pick }: LeaseStep): Promise<unknown> {
    const { leases } = this.#store;
    const key = `lease:${name}`;
    const tenancy = {
      key,
      holder,
      fence: this.fences[pick % Math.max(1, this.fences.length)] ?? 1,
    };
    const { fence } = tenancy;
    const acquire = { ...CALL, ttlMs: TTL_MS, inbox: holder };
    const verbs: Record<string, () => Promise<unknown>> = {
      acquire: () => leases.acquire([{ key, holder }], acquire),
      refresh: () => leases.acquire([tenancy], acquire),
      renew: () => leases.renew([{ key, holder }], { ...CALL, ttlMs: TTL_MS }),
      reassert: () => leases.reassert([tenancy], { ...acquire, forgotten: false }),
      release: () => leases.release([tenancy], CALL),
      transfer: () =>
        leases.transfer([{ ...tenancy, successor: 'h2/1' }], { ...CALL, windowMs: 500 }),
      revoke: () => leases.revoke(key, { ...CALL, force: false, fence }),
      force: () => leases.revoke(key, { ...CALL, force: true, fence }),
      read: () => leases.read([key], CALL),
      attach: () => this.#attach(tenancy, pick),
      keep: () => this.#keep(pick),
    };
    const reply = await verbs[verb]?.();
    const found: unknown = Array.isArray(reply) ? reply[0] : reply;
    const isTold = typeof found === 'object' && found !== null && 'fence' in found;
    if (isTold && typeof found.fence === 'number' && found.fence > 0) this.fences.push(found.fence);
    return reply;
  }

  #attach(tenancy: { key: string; holder: string; fence: number }, pick: number): Promise<unknown> {
    const known = this.#keepalives[pick % 4];
    const id = known ?? `keepalive-${this.#keepalives.length}`;
    if (known === undefined) this.#keepalives.push(id);
    // Most attach the lease that is there.
    const fence = pick % 8 === 0 ? tenancy.fence : (this.fences.at(-1) ?? 1);
    const call = { ...CALL, ttlMs: TTL_MS * (1 + (pick % 3)) };
    const attachTo = { id, isNew: known === undefined };
    return this.#store.leases.renew([{ ...tenancy, fence }], { ...call, attachTo });
  }

  async #keep(pick: number): Promise<unknown> {
    const id = this.#keepalives[pick % Math.max(1, this.#keepalives.length)] ?? 'none';
    const acknowledged = pick % 2 === 0 ? (this.#told.get(id) ?? []) : [];
    const call = { ...CALL, ttlMs: TTL_MS * 2, version: pick % 3, acknowledged };
    const reply = (await this.#store.leases.keepAlive?.(id, call)) as KeepAliveReply;
    if (reply.kind === 'gone') return reply;
    this.#told.set(
      id,
      reply.detached.map(({ number }) => number),
    );
    // Each store counts in its own way.
    return { ...reply, detached: reply.detached.map(({ key }) => key) };
  }
}
