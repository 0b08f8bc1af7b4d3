/**
 * The fleet as operators see and steer it: everything is read from the store, so it works from any process, also from
 * one that takes no part.
 */

import { LEASE_CLASSES } from '../../lease/classes.ts';
import { MemberNotFoundError } from '../errors.ts';
import { DRAIN_COLLECTION, FLEET_TOPIC, orderFor } from '../member/heartbeat.ts';
import { type Explanation, explain } from '../plan/explain.ts';
import { readRecent } from '../poll/recent-polls.ts';
import type { StoredResult } from '../poll/results.ts';
import { RESULT_COLLECTION } from '../targets/target-record.ts';
import type { TargetStore } from '../targets/target-store.ts';
import type { FleetPicture, FleetSighting, MemberView, PicturedTarget } from './fleet-picture.ts';
import type { RoundsParts } from './fleet-rounds.ts';
import { FleetState } from './fleet-state.ts';
import { FleetWatch } from './fleet-watch.ts';
import { type Transfer, TransferCommand, type TransferOptions } from './transfer-command.ts';

export type {
  FleetChange,
  FleetPicture,
  FleetSighting,
  MemberView,
  PicturedTarget,
  TargetReason,
} from './fleet-picture.ts';

const CALL = { timeoutMs: 5_000 };
/** Results asked for in one request. */
const RESULTS_CHUNK = 1_000;

export interface FleetView {
  readonly members: readonly MemberView[];
  /** Every session that is polled, in order of id, and why it is where it is. */
  readonly targets: readonly Explanation[];
}

/** One target, with everything there is to know of it. */
export interface TargetView extends PicturedTarget {
  /** The reason in words. */
  readonly why: string;
  readonly url: string | null;
  readonly everyMs: number | null;
  /** 0: it was never held. */
  readonly fence: number;
  readonly lastResult: StoredResult | null;
  /** The last polls of its owner, the oldest first. */
  readonly recent: readonly PollSample[];
}

/** One poll, of those that the record of a target's last result has. */
export interface PollSample {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly tookMs: number;
  readonly ok: boolean;
}

export interface FleetParts extends RoundsParts {
  readonly sessions: TargetStore;
}

export class Fleet {
  readonly #parts: FleetParts;
  readonly #watch: FleetWatch;
  readonly #moving: TransferCommand;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#watch = new FleetWatch(parts);
    this.#moving = new TransferCommand(parts);
  }

  /** Who takes part, and who owns what; in words. */
  async view(): Promise<FleetView> {
    const lookout = await this.#look();
    const { sight } = lookout;
    const targets = lookout.targets.filter(({ isPaused }) => !isPaused);
    return {
      members: lookout.picture().members,
      targets: targets.map((target) => explain(target, sight)),
    };
  }

  /** Who takes part, and who owns what, also of what is paused. */
  async picture(): Promise<FleetPicture> {
    return (await this.#look()).picture();
  }

  /**
   * The same, and then what changes, until the signal fires: within moments where instances tell of it, within seconds where they do not.
   * All who watch in one process share one look at the store, which costs next to nothing while nothing happens.
   */
  watch({ signal }: { signal: AbortSignal }): AsyncGenerator<FleetSighting, void, undefined> {
    return this.#watch.watch({ signal });
  }

  /** Everything there is to know of one target; null where there is none of this id. */
  async target(id: string): Promise<TargetView | null> {
    const { store, sessions } = this.#parts;
    const session = await sessions.get(id);
    if (session?.kind !== 'poll') return null;
    // Where somebody watches the fleet, the others are known well enough to say who should have this one.
    const watched = this.#watch.lookout;
    const isKnown = watched?.target(id) !== undefined;
    const lookout = isKnown ? watched : await this.#look();
    const [reply] = await store.leases.read([LEASE_CLASSES.poll.keyspace + id], CALL);
    if (reply === undefined) throw new Error('the store gave no reply');
    const lastResult = (await this.results([id])).get(id) ?? null;
    return {
      ...lookout.describe(session, reply),
      url: session.url ?? null,
      everyMs: session.everyMs ?? null,
      fence: reply.kind === 'failed' ? 0 : reply.fence,
      lastResult,
      recent: (lastResult?.recent ?? []).map(([at, tookMs, ok]) => ({ at, tookMs, ok: ok === 1 })),
    };
  }

  /** What the last poll of each of these targets gave, by id; a target without a result is not among them. */
  async results(ids: readonly string[]): Promise<ReadonlyMap<string, StoredResult>> {
    const found = new Map<string, StoredResult>();
    for (let at = 0; at < ids.length; at += RESULTS_CHUNK) {
      const chunk = ids.slice(at, at + RESULTS_CHUNK);
      const replies = await this.#parts.store.records.get(RESULT_COLLECTION, chunk, CALL);
      for (const [i, reply] of replies.entries()) {
        if (reply.kind === 'found' && isResult(reply.value))
          found.set(chunk[i] as string, { ...reply.value, recent: readRecent(reply.value.recent) });
      }
    }
    return found;
  }

  /** Tells a member to hand over everything it owns, and to take nothing new. */
  async drain(member: string): Promise<{ changed: boolean }> {
    const { store, clock } = this.#parts;
    const live = await this.#live();
    if (!live.includes(member)) throw new MemberNotFoundError({ member });
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
    if (!changed && !(await this.#live()).includes(member))
      throw new MemberNotFoundError({ member });
    await this.#announce(member);
    return { changed };
  }

  /**
   * Moves a target to a member, for good: its owner hands it over when the work on it has settled, and it stays there while that member takes
   * part, or until `unpin`. Nothing is forced; `view` shows when it has arrived.
   */
  transfer(target: string, member: string, options: TransferOptions = {}): Promise<Transfer> {
    return this.#moving.transfer(target, member, options);
  }

  /** The target is placed by the plan alone again, which leaves it where it is as long as that is even. */
  unpin(target: string): Promise<{ changed: boolean }> {
    return this.#moving.unpin(target);
  }

  /** Ends all watching. */
  close(): void {
    this.#watch.close();
  }

  async #look(): Promise<FleetState> {
    const lookout = new FleetState(this.#parts);
    await lookout.lookAtAll();
    lookout.settle();
    lookout.close();
    return lookout;
  }

  async #live(): Promise<string[]> {
    return (await this.#parts.store.members.list(CALL)).map(({ id }) => id);
  }

  /** Orders for instances that are gone: their ids never come back. */
  async #forgetTheDead(live: readonly string[]): Promise<void> {
    const { records } = this.#parts.store;
    const dead = new Set<string>();
    let at: { since: number; began?: number | undefined } = { since: 0 };
    for (let more = true; more; ) {
      const page = await records.changes(DRAIN_COLLECTION, { ...CALL, ...at });
      for (const id of page.written) dead.add(id);
      at = { since: page.version, began: page.began };
      more = page.more;
    }
    for (const id of live) dead.delete(id);
    const removals = [...dead].map((id) => ({ id }));
    if (removals.length > 0) await records.remove(DRAIN_COLLECTION, removals, CALL);
  }

  /** Not by the member's id alone: that is what the member itself says, and does not listen to. */
  async #announce(member: string): Promise<void> {
    await this.#parts.store.signals.publish(FLEET_TOPIC, orderFor(member)).catch(() => {});
  }
}

/** Others may write there, too. */
function isResult(value: unknown): value is StoredResult {
  if (typeof value !== 'object' || value === null) return false;
  const { at, by, ok, tookMs } = value as Record<string, unknown>;
  const isTimed = typeof at === 'number' && typeof tookMs === 'number';
  return isTimed && typeof by === 'string' && typeof ok === 'boolean';
}
