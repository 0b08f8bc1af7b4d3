import type { Clock } from '../../core/clock.ts';
import { LEASE_CLASSES } from '../../lease/classes.ts';
import type { ReadReply } from '../../store/port/lease-store.ts';
import type { Store } from '../../store/port/store.ts';
import { GARBAGE_MS, type TargetEntry } from './target-entry.ts';

/** Targets looked at in one request. */
export const SURVEY_CHUNK = 1_000;
const { keyspace } = LEASE_CLASSES.poll;

/** Asks the store who owns what. What this instance owns itself it need not ask. */
export class LeaseScan {
  readonly #parts: {
    store: Store;
    clock: Clock;
    /** A member did not renew what it owned. */
    onLapse: (member: string) => void;
  };

  constructor(parts: { store: Store; clock: Clock; onLapse: (member: string) => void }) {
    this.#parts = parts;
  }

  async look(entries: readonly TargetEntry[], timeoutMs: number): Promise<void> {
    const { store, clock } = this.#parts;
    for (let at = 0; at < entries.length; at += SURVEY_CHUNK) {
      const chunk = entries.slice(at, at + SURVEY_CHUNK);
      const keys = chunk.map(({ id }) => keyspace + id);
      const replies = await store.leases.read(keys, { timeoutMs });
      const nowMs = clock.monotonicMs();
      for (const [i, entry] of chunk.entries()) {
        const reply = replies[i];
        // Taken, or being taken, while we asked: the answer to that is newer.
        if (entry.state !== 'watched' || reply === undefined) continue;
        const { owner } = entry;
        const isLapsed = reply.kind === 'free' && entry.expiresAtMs <= nowMs;
        if (owner !== null && isLapsed) this.#parts.onLapse(owner);
        see(entry, reply, nowMs);
      }
    }
  }
}

/** What the store says of its lease. */
export function see(entry: TargetEntry, reply: ReadReply, nowMs: number): void {
  if (reply.kind === 'held') entry.seenOwned(reply.holder, reply.expiresInMs, nowMs);
  else if (reply.kind === 'revoked') entry.seenBarred('revoked', reply.expiresInMs, nowMs);
  else if (reply.kind === 'free') entry.seenFree(nowMs);
  else entry.seenBarred('garbage', GARBAGE_MS, nowMs);
}
