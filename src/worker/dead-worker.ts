/** What an instance that is dead has left behind: process groups, leases that it can not release any more, and sessions that it will not end. */
import type { Emitter } from '../core/events.ts';
import { dedupKey } from '../intents/dedup-key.ts';
import { openSessions } from '../intents/open-sessions.ts';
import { readable } from '../intents/session-reading.ts';
import { LEASE_CLASSES } from '../lease/classes.ts';
import type { Pool } from '../lease/pool/pool.ts';
import type { Store } from '../store/port/store.ts';
import { SessionRecord } from './session-record.ts';
import type { Host } from './supervisor/host.ts';

/** Keys in one request. */
const BATCH = 500;
const CALL = { timeoutMs: 5_000 };
const { keyspace } = LEASE_CLASSES.resource;

export interface EstateParts {
  readonly store: Store;
  readonly host: Host;
  readonly events: Emitter;
  readonly instanceId: string;
}

export class DeadWorker {
  readonly #parts: EstateParts;
  readonly #pools: readonly Pool[];

  constructor(parts: EstateParts, pools: readonly Pool[]) {
    this.#parts = parts;
    this.#pools = pools;
  }

  /** Kills what is left of the groups that ran for the instance's sessions. False if some may still be there. */
  async endGroups(instance: string): Promise<boolean> {
    let areGone = true;
    for await (const { session } of this.#openSessions()) {
      const { id, worker, group } = session;
      if (worker === instance && group !== undefined)
        areGone = (await this.#parts.host.endGroup(group, id)) && areGone;
    }
    return areGone;
  }

  /** Takes the instance's name off its sessions: nobody need wait to see whether it is really dead. */
  async disown(instance: string): Promise<void> {
    for await (const file of this.#openSessions()) {
      const { worker, state, losses = 0 } = file.session;
      const isTheirs = () => file.session.worker === instance;
      if (worker !== instance) continue;
      // Whoever else was faster has seen to it.
      await file.write(state, { worker: null, slot: null, losses: losses + 1 }, isTheirs);
    }
  }

  /**
   * Releases the leases of the instance, and only these: those of open sessions, of slots, and the keys named besides. What it held of
   * pools that are not configured any more runs out. So does what it had taken as an interface, for a session that another worker may have
   * gone on with under that name. Says how many there were.
   */
  async release(instance: string, besides: readonly string[]): Promise<number> {
    const keys = new Set(besides);
    for (const pool of this.#pools) for (const slot of pool.slots) keys.add(pool.keyOf(slot));
    // What runs for a session that cannot be read has not been ended: its leases run out.
    const spared = new Set<string>();
    const spare = (id: string) => {
      for (const holder of [`${instance}/${id}`, `${instance}/again/${id}`]) spared.add(holder);
    };
    for await (const { session } of this.#openSessions(spare)) {
      keys.add(dedupKey(session));
      const { worker, tenure } = session;
      if (tenure !== undefined && worker !== instance) spared.add(tenure.holder);
    }
    const all = [...keys].map((key) => keyspace + key);
    let released = 0;
    for (let i = 0; i < all.length; i += BATCH)
      released += await this.#releaseOf(instance, all.slice(i, i + BATCH), spared);
    return released;
  }

  async #releaseOf(
    instance: string,
    keys: readonly string[],
    spared: ReadonlySet<string>,
  ): Promise<number> {
    const shown = await this.#parts.store.leases.read(keys, CALL);
    const tenancies = keys.flatMap((key, i) => {
      const lease = shown[i];
      if (lease?.kind !== 'held') return [];
      const { holder, fence } = lease;
      const isTheirs = holder === instance || holder.startsWith(`${instance}/`);
      return isTheirs && !spared.has(holder) ? [{ key, holder, fence }] : [];
    });
    if (tenancies.length === 0) return 0;
    const replies = await this.#parts.store.leases.release(tenancies, CALL);
    return replies.filter(({ kind }) => kind === 'released').length;
  }

  /** `skipped` is called with the ids of those that cannot be read. */
  async *#openSessions(skipped: (id: string) => void = () => {}): AsyncGenerator<SessionRecord> {
    const { events } = this.#parts;
    for await (const { sessions, foreign } of openSessions(this.#parts)) {
      for (const id of foreign) skipped(id);
      for (const stored of sessions)
        if (readable(events, stored) === null) skipped(stored.id);
        else yield new SessionRecord(this.#parts, stored);
    }
  }
}
