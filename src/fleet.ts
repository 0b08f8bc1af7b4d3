/**
 * The fleet as operators see and steer it: everything is read from the store, so it works from any process, also from
 * one that takes no part.
 */
import type { Clock } from './base/clock.ts';
import { MemberNotFoundError } from './base/errors.ts';
import { type FleetMember, fleetMember } from './cluster/attributes.ts';
import { type Explanation, explain, loadsOf } from './cluster/explain.ts';
import { hashMember } from './cluster/hash.ts';
import { plan } from './cluster/plan.ts';
import { DRAIN_COLLECTION, FLEET_TOPIC, orderFor } from './cluster/presence.ts';
import { Survey } from './cluster/survey.ts';
import { TargetEntry } from './cluster/target-entry.ts';
import type { StoredResult } from './polling/results.ts';
import { RESULTS } from './session/session.ts';
import type { SessionStore } from './session/session-store.ts';
import type { Store } from './store/store.ts';

const CALL = { timeoutMs: 5_000 };
/** A walk over a large keyspace takes its time. */
const WALK = { timeoutMs: 30_000 };
/** Results asked for in one request. */
const RESULTS_CHUNK = 1_000;

export interface MemberView {
  readonly id: string;
  /** The readable part of its id. */
  readonly name: string;
  readonly weight: number;
  readonly isDraining: boolean;
  readonly isForeign: boolean;
  /** How many targets it owns according to the store, and how many it should. */
  readonly owned: number;
  readonly quota: number;
  readonly expiresInMs: number;
  /** Of Holdfast; null where it does not say. */
  readonly version: string | null;
}

export interface FleetView {
  readonly members: readonly MemberView[];
  /** Every session that is polled, in order of id, and why it is where it is. */
  readonly targets: readonly Explanation[];
}

interface FleetParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly sessions: SessionStore;
}

export class Fleet {
  readonly #parts: FleetParts;

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  /** Who takes part, and who owns what. */
  async view(): Promise<FleetView> {
    const { store, clock, sessions } = this.#parts;
    let live = await store.members.list(CALL);
    // Instances look for what other programs wrote from time to time. Where none runs, nobody has.
    const thorough = live.every(({ attributes }) => attributes === null);
    if (thorough) live = await store.members.list({ ...WALK, thorough });
    const { sessions: all } = await sessions.list({ thorough });
    const nowMs = clock.monotonicMs();
    const members = live
      .map((member) => fleetMember(member, hashMember(member.id), nowMs))
      .sort(byId);
    const entries = all
      .filter(({ kind, isPaused }) => kind === 'poll' && !isPaused)
      .map(({ id }) => new TargetEntry(id));
    await new Survey({ store, clock, onLapse: () => {} }).look(entries, CALL.timeoutMs);
    return describe(members, entries, nowMs);
  }

  /** What the last poll of each of these targets gave, by id; a target without a result is not among them. */
  async results(ids: readonly string[]): Promise<ReadonlyMap<string, StoredResult>> {
    const found = new Map<string, StoredResult>();
    for (let at = 0; at < ids.length; at += RESULTS_CHUNK) {
      const chunk = ids.slice(at, at + RESULTS_CHUNK);
      const replies = await this.#parts.store.records.get(RESULTS, chunk, CALL);
      for (const [i, reply] of replies.entries()) {
        if (reply.kind === 'found' && isResult(reply.value))
          found.set(chunk[i] as string, reply.value);
      }
    }
    return found;
  }

  /** Tells a member to hand over everything it owns, and to take nothing new. */
  async drain(member: string): Promise<{ changed: boolean }> {
    const { store, clock } = this.#parts;
    const live = await this.#live();
    if (!live.includes(member)) throw new MemberNotFoundError(member);
    await this.#forgetTheDead(live);
    const write = { id: member, value: { sinceMs: clock.wallMs() }, ifRevision: 0 };
    const [reply] = await store.records.put(DRAIN_COLLECTION, [write], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    await this.#announce(member);
    return { changed: reply?.kind === 'written' };
  }

  /** Takes that back. */
  async undrain(member: string): Promise<{ changed: boolean }> {
    const [reply] = await this.#parts.store.records.remove(
      DRAIN_COLLECTION,
      [{ id: member }],
      CALL,
    );
    if (reply?.kind === 'failed') throw reply.error;
    const changed = reply?.kind === 'removed';
    if (!changed && !(await this.#live()).includes(member)) throw new MemberNotFoundError(member);
    await this.#announce(member);
    return { changed };
  }

  async #live(): Promise<string[]> {
    return (await this.#parts.store.members.list(CALL)).map(({ id }) => id);
  }

  /** Orders for instances that are gone: their ids never come back. */
  async #forgetTheDead(live: readonly string[]): Promise<void> {
    const { records } = this.#parts.store;
    const { written } = await records.changes(DRAIN_COLLECTION, { ...CALL, since: 0 });
    const dead = written.filter((id) => !live.includes(id)).map((id) => ({ id }));
    if (dead.length > 0) await records.remove(DRAIN_COLLECTION, dead, CALL);
  }

  /** Not by the member's id alone: that is what the member itself says, and does not listen to. */
  async #announce(member: string): Promise<void> {
    await this.#parts.store.signals.publish(FLEET_TOPIC, orderFor(member)).catch(() => {});
  }
}

function describe(
  members: readonly FleetMember[],
  entries: readonly TargetEntry[],
  nowMs: number,
): FleetView {
  const { planned, quotas } = plan(members, entries);
  for (const [t, entry] of entries.entries())
    entry.planned = members[planned[t] as number]?.id ?? null;
  const loads = loadsOf(entries);
  const targets = entries.map((entry) => explain(entry, { members, quotas, loads, nowMs }));
  return {
    members: members.map(({ id, weight, isDraining, isForeign, version, expiresAtMs }, m) => ({
      ...{ id, name: nameOf(id), weight, isDraining, isForeign },
      owned: loads.get(id) ?? 0,
      quota: quotas[m] ?? 0,
      expiresInMs: expiresAtMs - nowMs,
      version,
    })),
    targets,
  };
}

/** Others may write there, too. */
function isResult(value: unknown): value is StoredResult {
  if (typeof value !== 'object' || value === null) return false;
  const { at, by, ok, tookMs } = value as Record<string, unknown>;
  const isTimed = typeof at === 'number' && typeof tookMs === 'number';
  return isTimed && typeof by === 'string' && typeof ok === 'boolean';
}

/** Instance ids are read from the right: the name may contain dashes. */
function nameOf(id: string): string {
  return /^(.+)-\d+-[0-9a-f]{8}$/.exec(id)?.[1] ?? id;
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}
