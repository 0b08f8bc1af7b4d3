import assert from 'node:assert/strict';
import {
  type SessionListCall,
  type SessionState,
  type StartReply,
  type StartRequest,
  type StopRequest,
  type StoredSession,
  startStream,
} from '../../src/store/port/intent-store.ts';
import type { Delivery } from '../../src/store/port/stream-store.ts';
import { CALL, type Kit, LONG_MS } from './kit.ts';

const START_STREAM = startStream('live');

/**
 * What a test says of a start; the rest is as it mostly is. Its keys are by name, and this test's
 * own.
 */
export type Asking = Partial<Omit<StartRequest, 'id'>>;

/** How many are sent at once where a test needs very many. */
const AT_ONCE = 500;

/** One who accepts intents, in the hands of a test: with a tenant, sessions and keys of its own. */
export class Gateway {
  readonly kit: Kit;
  readonly tenant: string;

  constructor(kit: Kit, tenant = 'tenant') {
    this.kit = kit;
    this.tenant = kit.topic(tenant);
  }

  get store() {
    return this.kit.store.intents;
  }

  /** What a session is called that a test calls by a name. */
  id(name: string): string {
    return this.kit.topic(name);
  }

  /** Without keys of its own, it has one that is named as it is. */
  start(name: string, { keys = [name], ...more }: Asking = {}): Promise<StartReply> {
    const facts = { id: this.id(name), tenant: this.tenant, client: 'client', priority: 5 };
    const listed = { kind: 'live', label: name };
    const texts = { body: `{"of":"${name}"}`, status: '"to be started"' };
    const own = keys.map((key) => this.kit.topic(`key-${key}`));
    return this.store.start({ ...facts, ...listed, ...texts, ...more, keys: own }, CALL);
  }

  async created(name: string, asking: Asking = {}): Promise<StoredSession> {
    return answered('created', await this.start(name, asking));
  }

  async replayed(name: string, asking: Asking = {}): Promise<StoredSession> {
    return answered('replayed', await this.start(name, asking));
  }

  /** Starts it for each of these clients; gives what it is then. */
  async shared(name: string, clients: readonly string[]): Promise<StoredSession> {
    for (let at = 0; at < clients.length; at += AT_ONCE) {
      const some = clients.slice(at, at + AT_ONCE);
      await Promise.all(some.map((client) => this.start(name, { client })));
    }
    return this.found(name);
  }

  /** A new one that has got as far as this. */
  async at(state: SessionState, name: string, asking: Asking = {}): Promise<StoredSession> {
    const made = await this.created(name, asking);
    return state === 'NEW' ? made : this.advanced(name, state);
  }

  /** Changes it as it is now. */
  async advanced(name: string, state: SessionState, status = '"changed"'): Promise<StoredSession> {
    const { revision } = await this.found(name);
    const reply = await this.advance(name, { ifRevision: revision, state, status });
    assert(reply.kind === 'advanced', JSON.stringify(reply));
    return reply.session;
  }

  advance(name: string, change: { ifRevision: number; state: SessionState; status?: string }) {
    return this.store.advance(this.id(name), { status: '"changed"', ...change }, CALL);
  }

  stop(name: string, more: Partial<StopRequest> = {}) {
    const facts = { id: this.id(name), tenant: this.tenant, client: 'client', force: false };
    return this.store.stop({ ...facts, ending: '"stopped"', ...more }, CALL);
  }

  republish(...names: string[]): Promise<string[]> {
    const ids = names.map((name) => this.id(name));
    return this.store.republish(ids, CALL);
  }

  async read(name: string): Promise<StoredSession | null> {
    const [found] = await this.store.read([this.id(name)], CALL);
    return found ?? null;
  }

  async found(name: string): Promise<StoredSession> {
    const found = await this.read(name);
    assert(found !== null, `there is no session ${name}`);
    return found;
  }

  /** A page of this test's tenant. */
  list(call: Omit<SessionListCall, 'timeoutMs'> = {}) {
    return this.store.list({ ...CALL, tenant: this.tenant, ...call });
  }

  /** The ids of all pages, one after the other. */
  async listed(call: Omit<SessionListCall, 'timeoutMs'> = {}): Promise<string[]> {
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.list({ ...call, ...(cursor !== undefined && { cursor }) });
      ids.push(...page.sessions.map(({ id }) => id));
      // A store that comes back to where it was would continue for ever.
      assert.equal(new Set(ids).size, ids.length, 'a session is listed twice');
      cursor = page.cursor;
    } while (cursor !== undefined);
    return ids;
  }

  prune(endedBeforeMs: number, most = 1_000): Promise<number> {
    return this.store.prune({ ...CALL, endedBeforeMs, most });
  }

  /**
   * Takes all entries. Those that an earlier test left are removed.
   */
  async consume(claimMs = LONG_MS): Promise<Delivery[]> {
    const call = { ...CALL, consumer: 'worker', most: 1_000, claimMs };
    const given = await this.kit.store.streams.consume(START_STREAM, call);
    const isOwn = ({ lane }: Delivery) => lane.endsWith(this.id(''));
    const left = given.filter((delivery) => !isOwn(delivery));
    await this.kit.store.streams.ack(START_STREAM, left, CALL);
    return given.filter(isOwn);
  }

  /** The same, where there must be one. */
  async consumeOne(claimMs = LONG_MS): Promise<Delivery> {
    const [delivery, ...more] = await this.consume(claimMs);
    assert(delivery !== undefined && more.length === 0, JSON.stringify([delivery, ...more]));
    return delivery;
  }

  async ack(...held: Delivery[]): Promise<void> {
    const replies = await this.kit.store.streams.ack(START_STREAM, held, CALL);
    assert.deepEqual([...new Set(replies)], ['done']);
  }

  /** Hears what is said on a topic that all tests share, as far as this one is interested. */
  async ear(topic: string, isOwn: (message: string) => boolean) {
    const messages: string[] = [];
    let arrived = () => {};
    const onMessage = (message: string) => {
      if (!isOwn(message)) return;
      messages.push(message);
      arrived();
    };
    const subscriber = { onMessage, onGap: () => {} };
    const unsubscribe = await this.kit.store.signals.subscribe(topic, subscriber);
    const next = async (): Promise<string> => {
      while (messages.length === 0) await new Promise<void>((resolve) => (arrived = resolve));
      return messages.shift() ?? '';
    };
    return { next, unsubscribe };
  }
}

function answered(kind: StartReply['kind'], reply: StartReply): StoredSession {
  assert.equal(reply.kind, kind, JSON.stringify(reply));
  return reply.session;
}
