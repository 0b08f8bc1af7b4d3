/**
 * The keepalive of one lease policy, as its process knows it: one row in the store that renews
 * every lease attached to it. The store's side is in docs/decisions/0035-keepalives.md.
 *
 * **New.** In: leases of the policy are due, and there is no keepalive for them. A renewal that
 * makes the keepalive is in flight, and no other request names its id. Out: the store has attached
 * leases → alive; any other answer, or none → retired.
 *
 * **Alive.** `keepAlive` renews the tenures whose attachment the store has confirmed. A tenure that
 * the store has detached leaves, and is renewed by its row. Out: the store says that the keepalive
 * is gone, or shows an older version than it has told before → retired; a lease of this process is
 * to expire alone → retired.
 *
 * **Retired.** An end: it is not renewed again, so it lapses. Its tenures are renewed by their
 * rows.
 */
import { assert } from '../core/assert.ts';
import type { Attachment, KeepAliveCall, KeepAliveReply } from '../store/port/lease-store.ts';
import type { Tenure } from './tenure.ts';
import type { LeasePolicy } from './timings.ts';

type State = 'new' | 'alive' | 'retired';

export class KeepaliveState {
  readonly id: string;
  readonly policy: LeasePolicy;
  #state: State = 'new';
  #version = 0;
  /** The tenures whose attachment the store has confirmed. */
  readonly #tenures = new Set<Tenure>();
  /** Detachments that were told, and whose acknowledgement the store has not confirmed. */
  #told = new Set<number>();
  /** When the last request that the store confirmed was sent. */
  #confirmedAtMs = Number.NEGATIVE_INFINITY;
  #isRenewing = false;

  constructor(id: string, policy: LeasePolicy) {
    this.id = id;
    this.policy = policy;
  }

  get state(): State {
    return this.#state;
  }

  get isRenewing(): boolean {
    return this.#isRenewing;
  }

  /** What a renewal by rows presents, so that its leases are attached. */
  get attachment(): Attachment {
    return { id: this.id, isNew: this.#state === 'new' };
  }

  /** Whether the store has it, as far as this process can know. */
  isAlive(nowMs: number): boolean {
    const { validMs } = this.policy.timings;
    return this.#state === 'alive' && nowMs < this.#confirmedAtMs + validMs;
  }

  /**
   * The store has answered a renewal by rows: these tenures are attached since these versions. A
   * version that was told before means that the store went back, and may lack earlier attachments.
   */
  attach(tenures: ReadonlyMap<Tenure, number>, sentAtMs: number): void {
    const versions = [...tenures.values()];
    if (versions.length === 0 || Math.min(...new Set(versions)) <= this.#version) {
      // A renewal that attaches nothing to a keepalive that is alive says nothing about it.
      if (versions.length > 0 || this.#state === 'new') this.retire();
      return;
    }
    if (this.#state === 'retired') return;
    this.#state = 'alive';
    this.#version = Math.max(...new Set(versions));
    this.#confirmedAtMs = Math.max(this.#confirmedAtMs, sentAtMs);
    for (const tenure of tenures.keys()) {
      this.#tenures.add(tenure);
      tenure.keepalive = this;
    }
  }

  remove(tenure: Tenure): void {
    this.#tenures.delete(tenure);
    if (tenure.keepalive === this) tenure.keepalive = null;
  }

  retire(): void {
    this.#state = 'retired';
  }

  /** The facts of a `keepAlive` that is about to be sent. */
  beginRenewal(): Pick<KeepAliveCall, 'version' | 'acknowledged'> {
    assert(this.#state === 'alive' && !this.#isRenewing, 'a keepalive has one renewal at a time');
    this.#isRenewing = true;
    return { version: this.#version, acknowledged: [...this.#told] };
  }

  /** The renewal was not answered. Returns the tenures that it was for. */
  failRenewal(): Tenure[] {
    this.#isRenewing = false;
    return [...this.#tenures];
  }

  /**
   * The renewal was answered. Returns the tenures that it has renewed, and those that have to be
   * renewed by their rows.
   */
  endRenewal(
    reply: KeepAliveReply,
    acknowledged: readonly number[],
    sentAtMs: number,
  ): { renewed: Tenure[]; rest: Tenure[] } {
    this.#isRenewing = false;
    if (reply.kind === 'gone') this.retire();
    if (reply.kind === 'gone' || this.#state === 'retired') {
      const rest = [...this.#tenures];
      for (const tenure of rest) this.remove(tenure);
      return { renewed: [], rest };
    }
    this.#confirmedAtMs = Math.max(this.#confirmedAtMs, sentAtMs);
    for (const number of acknowledged) this.#told.delete(number);
    if (reply.detached.length === 0) return { renewed: [...this.#tenures], rest: [] };
    for (const { number } of reply.detached) this.#told.add(number);
    const detached = new Set(reply.detached.map(({ key }) => key));
    const rest = [...this.#tenures].filter(({ storeKey }) => detached.has(storeKey));
    for (const tenure of rest) this.remove(tenure);
    return { renewed: [...this.#tenures], rest };
  }
}
