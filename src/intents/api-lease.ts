/**
 * The way it was before workers alone took leases, for those who move from there: the interface takes the lease of the channel first, and
 * whoever comes second is refused. The tenure goes to the worker with the session: the same holder, the same fence.
 */
import { LEASE_CLASSES } from '../lease/classes.ts';
import { refusalError } from '../lease/refusal-error.ts';
import { deriveTimings } from '../lease/timings.ts';
import type { Store } from '../store/port/store.ts';
import { dedupKey } from './dedup-key.ts';
import type { Wanted } from './intent.ts';
import type { SessionBody } from './intent-session.ts';

type ApiTenure = NonNullable<SessionBody['tenure']>;

const { keyspace, timings } = LEASE_CLASSES.resource;
const { ttlMs: usualTtlMs, operationTimeoutMs } = deriveTimings({}, timings);
const CALL = { timeoutMs: operationTimeoutMs };

export class ApiLease {
  readonly #store: Store;
  readonly #instanceId: string;

  constructor({ store, instanceId }: { store: Store; instanceId: string }) {
    this.#store = store;
    this.#instanceId = instanceId;
  }

  /** Throws `LEASE_HELD` if another has it, `STORE_QUARANTINED` if the store grants nothing now. */
  async take(wanted: Wanted, session: string): Promise<ApiTenure> {
    const name = dedupKey(wanted);
    const key = keyspace + name;
    const holder = `${this.#instanceId}/${session}`;
    // The worker has this long to take it over.
    const ttlMs = Math.min(usualTtlMs, this.#store.leases.maxTtls?.lease ?? usualTtlMs);
    const call = { ...CALL, ttlMs, inbox: this.#instanceId };
    const [reply] = await this.#store.leases.acquire([{ key, holder }], call);
    if (reply?.kind === 'granted') return { key: name, holder, fence: reply.fence };
    if (reply?.kind !== 'busy') throw reply?.error ?? new Error('the store gave no reply');
    const { reason, fence, expiresInMs } = reply;
    throw refusalError({
      ...{ key: name, holder: reply.holder, fence, expiresInMs, reason, waitedMs: 0 },
    });
  }

  /** Never fails: it runs out by itself. */
  async giveBack({ key, holder, fence }: ApiTenure): Promise<void> {
    const tenancy = { key: keyspace + key, holder, fence };
    await this.#store.leases.release([tenancy], CALL).catch(() => {});
  }
}
