import assert from 'node:assert/strict';
import type { AcquireReply, AcquireRequest, Store } from '../store/store.ts';

/** No call of the suite takes longer. */
export const CALL = { timeoutMs: 2_000 };
/** How long the suite's leases last: some of its tests wait for their end. */
export const TTL_MS = 300;

export interface ConformanceStore {
  readonly store: Store;
  /** Takes the store's clock forward, or waits: after it, `ms` have passed for the store. */
  elapse(ms: number): Promise<void>;
  dispose(): Promise<void>;
}

/** A store in the hands of a test: each with keys of its own, so that they can share a server. */
export class Kit {
  readonly store: Store;
  readonly elapse: (ms: number) => Promise<void>;
  readonly #unique = Math.random().toString(36).slice(2);

  constructor({ store, elapse }: ConformanceStore) {
    this.store = store;
    this.elapse = elapse;
  }

  key(name = 'key'): string {
    return `lease:conformance-${this.#unique}-${name}`;
  }

  async acquire(
    key: string,
    holder: string,
    more: Partial<AcquireRequest> & { ttlMs?: number; inbox?: string } = {},
  ): Promise<AcquireReply> {
    const { ttlMs = TTL_MS, inbox = 'conformance', ...rest } = more;
    const call = { ...CALL, ttlMs, inbox, leaseClass: 'lease' };
    const [reply] = await this.store.leases.acquire([{ key, holder, ...rest }], call);
    assert(reply);
    return reply;
  }

  async granted(
    key: string,
    holder: string,
    more: Partial<AcquireRequest> & { ttlMs?: number } = {},
  ): Promise<number> {
    const reply = await this.acquire(key, holder, more);
    assert.equal(reply.kind, 'granted', JSON.stringify(reply));
    return reply.kind === 'granted' ? reply.fence : 0;
  }

  async read(key: string) {
    const [reply] = await this.store.leases.read([key], CALL);
    assert(reply);
    return reply;
  }

  async release(key: string, holder: string, fence: number) {
    const [reply] = await this.store.leases.release([{ key, holder, fence }], CALL);
    assert(reply);
    return reply;
  }

  async renew(key: string, holder: string, ttlMs = TTL_MS) {
    const [reply] = await this.store.leases.renew([{ key, holder }], { ...CALL, ttlMs });
    assert(reply);
    return reply;
  }

  async reassert(key: string, holder: string, fence: number, forgotten = false) {
    const call = { ...CALL, ttlMs: TTL_MS, leaseClass: 'lease', forgotten };
    const [reply] = await this.store.leases.reassert([{ key, holder, fence }], call);
    return reply;
  }

  /** Subscribes to an inbox; `next` resolves with the first message not yet taken. */
  async inbox(topic: string) {
    const messages: string[] = [];
    let arrived = () => {};
    const unsubscribe = await this.store.signals.subscribe(topic, {
      onMessage: (message) => {
        messages.push(message);
        arrived();
      },
      onGap: () => {},
    });
    const next = async (): Promise<string> => {
      while (messages.length === 0) await new Promise<void>((resolve) => (arrived = resolve));
      return messages.shift() ?? '';
    };
    return { messages, next, unsubscribe };
  }
}
