/** Moving targets by hand, and letting them go their way again. What that means to the fleet is said in `cluster/pins.ts`. */
import type { Clock } from '../../core/clock.ts';
import { ConfigError } from '../../core/errors.ts';
import { checkTargetId } from '../../core/ids.ts';
import { LEASE_CLASSES } from '../../lease/classes.ts';
import type { Store } from '../../store/port/store.ts';
import { MemberNotFoundError, TransferRefusedError } from '../errors.ts';
import { FLEET_TOPIC, orderFor } from '../member/heartbeat.ts';
import { hashMember } from '../plan/hash.ts';
import { SessionNotFoundError } from '../targets/errors.ts';
import type { TargetStore } from '../targets/target-store.ts';
import { fleetMember } from '../view/member.ts';
import { PINS_COLLECTION, Pins, type StoredPin } from '../view/pins.ts';

const CALL = { timeoutMs: 5_000 };
const LONGEST_REASON = 500;
/** Whom an order is for that concerns all plans alike. */
const EVERYBODY = '*';

export interface TransferOptions {
  /** Why, for those who come after. */
  reason?: string;
}

export interface Transfer {
  /** Who had it; null for nobody. */
  readonly from: string | null;
  readonly to: string;
}

export class TransferCommand {
  readonly #parts: { store: Store; clock: Clock; sessions: TargetStore };

  constructor(parts: { store: Store; clock: Clock; sessions: TargetStore }) {
    this.#parts = parts;
  }

  async transfer(target: string, member: string, { reason }: TransferOptions): Promise<Transfer> {
    checkTargetId(target, 'target');
    checkReason(reason);
    const { store, clock } = this.#parts;
    const [from, live] = await Promise.all([this.#holderOf(target), store.members.list(CALL)]);
    const found = live.find(({ id }) => id === member);
    if (found === undefined) throw new MemberNotFoundError({ member });
    const { isForeign, isDraining } = fleetMember(found, hashMember(member), clock.monotonicMs());
    if (isForeign || isDraining)
      throw new TransferRefusedError({ target, member, why: isForeign ? 'foreign' : 'draining' });
    await this.#forgetTheDead(live.map(({ id }) => id));
    const value: StoredPin = {
      ...{ member, sinceMs: clock.wallMs() },
      ...(reason !== undefined && { reason }),
    };
    const [reply] = await store.records.put(PINS_COLLECTION, [{ id: target, value }], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    await this.#announce(from ?? member);
    return { from, to: member };
  }

  async unpin(target: string): Promise<{ changed: boolean }> {
    checkTargetId(target, 'target');
    const removals = [{ id: target }];
    const [reply] = await this.#parts.store.records.remove(PINS_COLLECTION, removals, CALL);
    if (reply?.kind === 'failed') throw reply.error;
    const changed = reply?.kind === 'removed';
    if (changed) await this.#announce(EVERYBODY);
    else await this.#holderOf(target);
    return { changed };
  }

  /** Who has the target now; null for nobody. Throws where there is no such target. */
  async #holderOf(target: string): Promise<string | null> {
    const { store, sessions } = this.#parts;
    const [session, [lease]] = await Promise.all([
      sessions.get(target),
      store.leases.read([LEASE_CLASSES.poll.keyspace + target], CALL),
    ]);
    if (lease?.kind === 'failed') throw lease.error;
    const holder = lease?.kind === 'held' ? lease.holder : null;
    // Pollers may be given targets that are no sessions: one that somebody holds is one.
    if (holder === null && session?.kind !== 'poll')
      throw new SessionNotFoundError({ session: target });
    return holder;
  }

  /** Pins to instances that are gone, whose ids never come back. */
  async #forgetTheDead(live: readonly string[]): Promise<void> {
    const pins = new Pins(this.#parts.store);
    await pins.refresh(CALL.timeoutMs);
    const dead = [...pins.all].flatMap(([id, { member }]) => (live.includes(member) ? [] : [id]));
    if (dead.length > 0) await pins.forget(dead, CALL.timeoutMs);
  }

  /** A hint: who misses it finds out by itself. */
  async #announce(whom: string): Promise<void> {
    await this.#parts.store.signals.publish(FLEET_TOPIC, orderFor(whom)).catch(() => {});
  }
}

function checkReason(reason: unknown): void {
  if (reason === undefined) return;
  const isText = typeof reason === 'string' && reason.length > 0;
  if (isText && reason.length <= LONGEST_REASON) return;
  const rule = `it is text of 1 to ${LONGEST_REASON} characters`;
  throw new ConfigError({ field: 'reason', value: reason, rule });
}
