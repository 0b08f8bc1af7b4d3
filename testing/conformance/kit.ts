import assert from 'node:assert/strict';
import type { AcquireReply, AcquireRequest } from '../../src/store/port/lease-store.ts';
import { CHANGES_PAGE, type RecordRef } from '../../src/store/port/record-store.ts';
import type { Store } from '../../src/store/port/store.ts';

/** No call of the suite takes longer. */
export const CALL = { timeoutMs: 10_000 };
/** How long leases last whose end a test waits for; */
export const SHORT_MS = 1_000;
/** and all others, so that a busy machine does not end them. */
export const LONG_MS = 60_000;

export interface ConformanceStore {
  readonly store: Store;
  /** Takes the store's clock forward, or waits: after it, `ms` have passed for the store. */
  elapse(ms: number): Promise<void>;
  dispose(): Promise<void>;
}

/** Declares one test of the suite. */
export type Check = (title: string, run: (kit: Kit) => Promise<void>) => void;

/**
 * For tests of what all who use a store share, and any of them may take or forget: one after the
 * other, even where the others run at the same time.
 */
export function inTurn(check: Check): Check {
  let before: Promise<void> = Promise.resolve();
  return (title, run) =>
    check(title, (kit) => {
      const done = before.then(() => run(kit));
      before = done.catch(() => {});
      return done;
    });
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

  /** A topic of this test's own: others may run at the same time. */
  topic(name: string): string {
    return `${name}-${this.#unique}`;
  }

  async acquire(
    key: string,
    holder: string,
    more: Partial<AcquireRequest> & { ttlMs?: number; inbox?: string } = {},
  ): Promise<AcquireReply> {
    const { ttlMs = LONG_MS, inbox = 'conformance', ...rest } = more;
    const call = { ...CALL, ttlMs, inbox: this.topic(inbox) };
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

  /** Revokes the tenure of a fence, or whichever the store shows. */
  async revoke(key: string, { force = false, fence }: { force?: boolean; fence?: number } = {}) {
    const meant = fence ?? (await this.fenceOf(key));
    return this.store.leases.revoke(key, { ...CALL, force, fence: meant });
  }

  async fenceOf(key: string): Promise<number> {
    const found = await this.read(key);
    if (found.kind === 'failed') throw found.error;
    return found.fence;
  }

  /** Fails unless the lease still has most of its long time. */
  async keepsLong(key: string): Promise<void> {
    const found = await this.read(key);
    assert(found.kind === 'held' && found.expiresInMs > LONG_MS / 2, JSON.stringify(found));
  }

  async release(key: string, holder: string, fence: number) {
    const [reply] = await this.store.leases.release([{ key, holder, fence }], CALL);
    assert(reply);
    return reply;
  }

  async renew(key: string, holder: string, ttlMs = LONG_MS) {
    const [reply] = await this.store.leases.renew([{ key, holder }], { ...CALL, ttlMs });
    assert(reply);
    return reply;
  }

  async reassert(
    key: string,
    holder: string,
    fence: number,
    { forgotten = false, ttlMs = LONG_MS } = {},
  ) {
    const call = { ...CALL, ttlMs, forgotten };
    const [reply] = await this.store.leases.reassert([{ key, holder, fence }], call);
    return reply;
  }

  /** A collection of this test's own. */
  get collection(): string {
    return `conformance-${this.#unique}`;
  }

  async get(id: string) {
    const [reply] = await this.store.records.get(this.collection, [id], CALL);
    assert(reply);
    return reply;
  }

  async put(id: string, value: unknown, conditions: Omit<RecordRef, 'id'> = {}) {
    const [reply] = await this.store.records.put(
      this.collection,
      [{ id, value, ...conditions }],
      CALL,
    );
    assert(reply);
    return reply;
  }

  async remove(id: string, conditions: Omit<RecordRef, 'id'> = {}) {
    const [reply] = await this.store.records.remove(this.collection, [{ id, ...conditions }], CALL);
    assert(reply);
    return reply;
  }

  async changes(since: number, more: { began?: number | undefined; most?: number } = {}) {
    return this.store.records.changes(this.collection, { ...CALL, since, ...more });
  }

  /** All pages since a version, as if they were one. */
  async allChanges(since: number, most = CHANGES_PAGE) {
    let page = await this.changes(since, { most });
    const { written, removed } = { written: [...page.written], removed: [...page.removed] };
    let { reset } = page;
    while (page.more) {
      page = await this.changes(page.version, { began: page.began, most });
      written.push(...page.written);
      removed.push(...page.removed);
      reset ||= page.reset;
    }
    return { written, removed, reset, version: page.version };
  }

  /** Who lives, of the members of this test. */
  async members(thorough = false) {
    const members = await this.store.members.list({ ...CALL, thorough });
    return members.filter(({ id }) => id.endsWith(this.#unique));
  }

  member(name: string): string {
    return `${name}-${this.#unique}`;
  }

  /** Subscribes to an inbox; `next` resolves with the first message not yet taken. */
  async inbox(topic: string) {
    const messages: string[] = [];
    let arrived = () => {};
    const unsubscribe = await this.store.signals.subscribe(this.topic(topic), {
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
