import { dedupKey } from '../../../src/intents/dedup-key.ts';
import {
  type IntentSession,
  NO_STATUS,
  type SessionStatus,
  sessionOf,
} from '../../../src/intents/intent-session.ts';
import { LEASE_CLASSES } from '../../../src/lease/timings.ts';
import { type SessionState, startStream } from '../../../src/store/port/intent-store.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { LOG_TOPIC } from '../../../src/telemetry/history.ts';

const START_STREAM = startStream('live');

const CALL = { timeoutMs: 5_000 };
const { keyspace } = LEASE_CLASSES.resource;
/** Longer than any test. */
const TTL_MS = 600_000;
const BUSY: Partial<SessionStatus> = { reason: 'R_LEASE_BUSY', outcome: 'REJECTED_BUSY' };

/** Does with what was started what a worker does, as far as a client can see it, through the port of the store alone. */
export class ScriptedWorker {
  readonly #store: Store;
  readonly #name: string;

  constructor(store: Store, name = 'worker-1') {
    this.#store = store;
    this.#name = name;
  }

  /** Takes what waits, the oldest first: what gets the lease of its channel runs, what does not ends. */
  async takeAll(): Promise<void> {
    const { streams, intents } = this.#store;
    const call = { ...CALL, consumer: this.#name, most: 1, claimMs: TTL_MS };
    for (;;) {
      const [delivery] = await streams.consume(START_STREAM, call);
      if (delivery === undefined) return;
      const { session: id } = delivery.value as { session: string };
      const [stored] = await intents.read([id], CALL);
      if (stored?.state === 'NEW') await this.#run(sessionOf(stored));
      await streams.ack(START_STREAM, [delivery], CALL);
    }
  }

  async advance(id: string, state: SessionState, status: Partial<SessionStatus> = {}) {
    const { intents } = this.#store;
    const [stored] = await intents.read([id], CALL);
    const reply = await intents.advance(
      id,
      {
        ...{ ifRevision: stored?.revision ?? 0, state },
        status: JSON.stringify({ ...NO_STATUS, worker: this.#name, ...status }),
      },
      CALL,
    );
    if (reply.kind !== 'advanced') throw new Error(`${id}: ${reply.kind}`);
    const { tenant, reason } = sessionOf(reply.session);
    await tell(this.#store, { instance: this.#name, session: id, tenant, state, reason });
  }

  async #run(session: IntentSession): Promise<void> {
    const request = { key: keyspace + dedupKey(session), holder: `${this.#name}/${session.id}` };
    const call = { ...CALL, ttlMs: TTL_MS, inbox: this.#name };
    const [reply] = await this.#store.leases.acquire([request], call);
    if (reply?.kind !== 'granted') {
      await this.advance(session.id, 'ENDED', BUSY);
      return;
    }
    await this.advance(session.id, 'STARTING');
    await this.advance(session.id, 'RUNNING', { slot: 'tuner-0' });
  }
}

/** Writes `session.advanced` with these facts into the log that all instances share, as an instance does. */
export async function tell({ log, signals }: Store, facts: Record<string, unknown>): Promise<void> {
  const common = { at: Date.now(), instance: 'worker-1', event: 'session.advanced' };
  await log.append([{ ...common, ...facts }], CALL);
  await signals.publish(LOG_TOPIC, '');
}
