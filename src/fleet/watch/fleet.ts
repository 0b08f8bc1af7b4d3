/**
 * The fleet as operators see and steer it. Everything is read from the store, so it works from any
 * process, even from one without a poller.
 */

import { ClosedError, ConfigError } from '../../core/errors.ts';
import { checkTargetId } from '../../core/ids.ts';
import { LEASE_CLASSES } from '../../lease/timings.ts';
import type { Runtime } from '../../store/runtime.ts';
import { MemberNotFoundError, TransferRefusedError } from '../errors.ts';
import { DRAIN_COLLECTION, FLEET_TOPIC, orderFor } from '../member/heartbeat.ts';
import { type Explanation, explain } from '../plan/explain.ts';
import { hashMember } from '../plan/hash.ts';
import { DEFAULT_COMMAND, hasCommand } from '../plan/plan.ts';
import { readRecent } from '../poll/poll-history.ts';
import type { StoredResult } from '../poll/result-writer.ts';
import { SessionNotFoundError } from '../targets/errors.ts';
import { RESULT_COLLECTION, type TargetIds } from '../targets/target-record.ts';
import type { TargetStore } from '../targets/target-store.ts';
import { type FleetMember, fleetMember } from '../view/member.ts';
import { PINS_COLLECTION, PinSet, type StoredPin } from '../view/pin-set.ts';
import type { FleetPicture, FleetSighting, MemberView, PicturedTarget } from './fleet-picture.ts';
import { FleetState } from './fleet-state.ts';
import { FleetWatch } from './fleet-watch.ts';

export type {
  FleetChange,
  FleetPicture,
  FleetSighting,
  MemberView,
  PicturedTarget,
  TargetReason,
} from './fleet-picture.ts';

const CALL = { timeoutMs: 5_000 };
/** How many results one request reads. */
const RESULTS_CHUNK = 1_000;
const MAX_REASON_CHARS = 500;
type TransferRefusal = TransferRefusedError['why'];
/** The member in an order that concerns all plans. */
const EVERY_MEMBER = '*';

export interface FleetView {
  readonly members: readonly MemberView[];
  /** Every target that is not paused, in order of id, and why it is where it is. */
  readonly targets: readonly Explanation[];
}

/** Everything that the store has about one target. */
export interface TargetView extends PicturedTarget {
  /** The reason in words. */
  readonly why: string;
  readonly url: string | null;
  readonly everyMs: number | null;
  /** How long one poll may take; null: as its instance is configured. */
  readonly timeoutMs: number | null;
  /** The name of its command; null: the runner's own, or it is polled. */
  readonly command: string | null;
  /** Of its lease; 0 if it was never held. */
  readonly fence: number;
  readonly lastResult: StoredResult | null;
  /** The last polls of its owner, the oldest first. */
  readonly recent: readonly PollSample[];
}

/** One of the last polls of a target. */
export interface PollSample {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly tookMs: number;
  readonly ok: boolean;
}

export interface TransferOptions {
  /** Why, for the record. */
  reason?: string;
}

export interface Transfer {
  /** The owner before; null for none. */
  readonly from: string | null;
  readonly to: string;
}

export class Fleet {
  readonly #rt: Runtime;
  readonly #targets: TargetStore;
  readonly #targetIds: TargetIds;
  /** Shared by all subscribers; over after the last of them. */
  #watch: FleetWatch | null = null;
  #isClosed = false;

  constructor(rt: Runtime, targets: TargetStore, targetIds: TargetIds) {
    this.#rt = rt;
    this.#targets = targets;
    this.#targetIds = targetIds;
  }

  /** The members, the owners of all targets, and why, in words. */
  async view(): Promise<FleetView> {
    const state = await this.#readState();
    const fleet = state.explained;
    const polled = state.targets.filter(({ isPaused }) => !isPaused);
    return {
      members: state.picture().members,
      targets: polled.map((target) => explain(target, fleet)),
    };
  }

  /** The members and the owners of all targets, paused ones too. */
  async picture(): Promise<FleetPicture> {
    return (await this.#readState()).picture();
  }

  /**
   * The same, and then each change until the signal fires: within moments where instances report
   * it, within seconds otherwise. All watchers of a process share their reads of the store, which
   * cost next to nothing while nothing happens.
   */
  async *watch({
    signal,
  }: {
    signal: AbortSignal;
  }): AsyncGenerator<FleetSighting, void, undefined> {
    if (this.#isClosed) throw new ClosedError({ operation: 'watch' });
    if (signal.aborted) return;
    let watch = this.#watch;
    if (watch === null || watch.isOver) watch = new FleetWatch(this.#rt, this.#targetIds);
    this.#watch = watch;
    try {
      yield* watch.follow(signal);
    } finally {
      // It keeps the whole fleet in memory.
      if (watch.isOver && this.#watch === watch) this.#watch = null;
    }
  }

  /** Everything that the store has about one target; null where there is none of this id. */
  async target(id: string): Promise<TargetView | null> {
    const { store } = this.#rt;
    const record = await this.#targets.get(id);
    if (record?.kind !== 'poll') return null;
    // If the fleet is being watched, its state is recent enough to plan this target.
    const watched = this.#watch?.state ?? null;
    const isKnown = watched?.target(id) !== undefined;
    const state = isKnown ? watched : await this.#readState();
    const [lease] = await store.leases.read([LEASE_CLASSES.poll.keyspace + id], CALL);
    if (lease === undefined) throw new Error('the store gave no reply');
    const lastResult = (await this.results([id])).get(id) ?? null;
    return {
      ...state.describe(record, lease),
      url: record.url ?? null,
      everyMs: record.everyMs ?? null,
      timeoutMs: record.timeoutMs ?? null,
      command: record.command ?? null,
      fence: lease.kind === 'failed' ? 0 : lease.fence,
      lastResult,
      recent: (lastResult?.recent ?? []).map(([at, tookMs, ok]) => ({ at, tookMs, ok: ok === 1 })),
    };
  }

  /** The result of the last poll of each of these targets, by id; only of those that have one. */
  async results(ids: readonly string[]): Promise<ReadonlyMap<string, StoredResult>> {
    const found = new Map<string, StoredResult>();
    for (let at = 0; at < ids.length; at += RESULTS_CHUNK) {
      const chunk = ids.slice(at, at + RESULTS_CHUNK);
      const replies = await this.#rt.store.records.get(RESULT_COLLECTION, chunk, CALL);
      for (const [i, reply] of replies.entries()) {
        if (reply.kind === 'found' && isResult(reply.value))
          found.set(chunk[i] as string, { ...reply.value, recent: readRecent(reply.value.recent) });
      }
    }
    return found;
  }

  /** Orders a member to hand over everything it owns, and to take nothing new. */
  async drain(member: string): Promise<{ changed: boolean }> {
    const { store, clock } = this.#rt;
    const live = await this.#live();
    if (!live.includes(member)) throw new MemberNotFoundError({ member });
    await this.#removeDeadOrders(live);
    const write = { id: member, value: { sinceMs: clock.wallMs() }, ifRevision: 0 };
    const [reply] = await store.records.put(DRAIN_COLLECTION, [write], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    await this.#announce(member);
    return { changed: reply?.kind === 'written' };
  }

  /** Takes that back. */
  async undrain(member: string): Promise<{ changed: boolean }> {
    const { records } = this.#rt.store;
    const [reply] = await records.remove(DRAIN_COLLECTION, [{ id: member }], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    const changed = reply?.kind === 'removed';
    if (!changed && !(await this.#live()).includes(member))
      throw new MemberNotFoundError({ member });
    await this.#announce(member);
    return { changed };
  }

  /**
   * Moves a target to a member permanently: pins it there. Its owner hands it over when its work
   * has settled. It stays there while that member takes part, or until `unpin`. Nothing is forced;
   * `view` shows when it has arrived.
   */
  async transfer(
    target: string,
    member: string,
    { reason }: TransferOptions = {},
  ): Promise<Transfer> {
    checkTargetId(target, 'target');
    checkReason(reason);
    const { store, clock } = this.#rt;
    const [{ owner: from, command }, live] = await Promise.all([
      this.#ownerOf(target),
      store.members.list(CALL),
    ]);
    const found = live.find(({ id }) => id === member);
    if (found === undefined) throw new MemberNotFoundError({ member });
    const to = fleetMember(found, hashMember(member), clock.monotonicMs());
    const why = whyNotTo(to, command);
    if (why !== null) throw new TransferRefusedError({ target, member, why });
    await this.#removeDeadPins(live.map(({ id }) => id));
    const value: StoredPin = { member, sinceMs: clock.wallMs(), reason };
    const [reply] = await store.records.put(PINS_COLLECTION, [{ id: target, value }], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    await this.#announce(from ?? member);
    return { from, to: member };
  }

  /**
   * Throws if instances run and none of them has this command: the name may be misspelt. A check of
   * what operators type; targets may name a command before an instance has it.
   */
  async checkCommand(command: string, field = 'command'): Promise<void> {
    const live = await this.#rt.store.members.list(CALL);
    const instances = live
      .filter(({ attributes }) => attributes !== null)
      .map((member) => fleetMember(member, hashMember(member.id), 0));
    if (instances.length === 0 || instances.some((one) => hasCommand(one, { command }))) return;
    const names = new Set(instances.flatMap(({ commands = [] }) => commands));
    names.delete(DEFAULT_COMMAND);
    const known = names.size === 0 ? 'They have none' : `They have ${[...names].sort().join(', ')}`;
    const rule = `no running instance has a command of this name. ${known}. Declare it in the configuration of an instance, under runner.commands, and start that first`;
    throw new ConfigError({ field, value: command, rule });
  }

  /** The plan alone places the target again, and leaves it there as long as that is even. */
  async unpin(target: string): Promise<{ changed: boolean }> {
    checkTargetId(target, 'target');
    const { records } = this.#rt.store;
    const [reply] = await records.remove(PINS_COLLECTION, [{ id: target }], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    const changed = reply?.kind === 'removed';
    if (changed) await this.#announce(EVERY_MEMBER);
    else await this.#ownerOf(target);
    return { changed };
  }

  /** Ends all watching. */
  close(): void {
    this.#isClosed = true;
    this.#watch?.close();
  }

  async #readState(): Promise<FleetState> {
    const state = new FleetState(this.#rt, this.#targetIds);
    await state.refreshAll();
    state.publish();
    return state;
  }

  async #live(): Promise<string[]> {
    return (await this.#rt.store.members.list(CALL)).map(({ id }) => id);
  }

  /** The owner of the target and its command. Throws where there is no such target. */
  async #ownerOf(target: string): Promise<{ owner: string | null; command: string | undefined }> {
    const { store } = this.#rt;
    const [record, [lease]] = await Promise.all([
      this.#targets.get(target),
      store.leases.read([LEASE_CLASSES.poll.keyspace + target], CALL),
    ]);
    if (lease?.kind === 'failed') throw lease.error;
    const owner = lease?.kind === 'held' ? lease.holder : null;
    // A poller may be given a list of targets without records: one that has an owner is a target.
    if (owner === null && record?.kind !== 'poll')
      throw new SessionNotFoundError({ session: target });
    return { owner, command: record?.command };
  }

  /** Removes the orders for instances that are gone: their ids never come back. */
  async #removeDeadOrders(live: readonly string[]): Promise<void> {
    const { records } = this.#rt.store;
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

  /** Removes the pins to instances that are gone. */
  async #removeDeadPins(live: readonly string[]): Promise<void> {
    const pins = new PinSet(this.#rt.store);
    await pins.refresh(CALL.timeoutMs);
    const dead = [...pins.all].flatMap(([id, { member }]) => (live.includes(member) ? [] : [id]));
    if (dead.length > 0) await pins.remove(dead, CALL.timeoutMs);
  }

  /**
   * A hint; an instance that misses it finds the order later. Not by the member's id alone: that is
   * what the member itself publishes, and ignores.
   */
  async #announce(member: string): Promise<void> {
    await this.#rt.store.signals.publish(FLEET_TOPIC, orderFor(member)).catch(() => {});
  }
}

function whyNotTo(member: FleetMember, command: string | undefined): TransferRefusal | null {
  if (member.isForeign) return 'foreign';
  if (member.isDraining) return 'draining';
  return hasCommand(member, { command }) ? null : 'command';
}

function checkReason(reason: unknown): void {
  if (reason === undefined) return;
  const isText = typeof reason === 'string' && reason.length > 0;
  if (isText && reason.length <= MAX_REASON_CHARS) return;
  const rule = `it must be text of 1 to ${MAX_REASON_CHARS} characters`;
  throw new ConfigError({ field: 'reason', value: reason, rule });
}

/** Other programs may write there too. */
function isResult(value: unknown): value is StoredResult {
  if (typeof value !== 'object' || value === null) return false;
  const { at, by, ok, tookMs } = value as Record<string, unknown>;
  const isTimed = typeof at === 'number' && typeof tookMs === 'number';
  return isTimed && typeof by === 'string' && typeof ok === 'boolean';
}
