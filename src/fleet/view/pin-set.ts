/**
 * The pins: one record for each target that an operator has moved, which names the member it stays
 * with. Every instance plans with all of them, so that a moved target is not moved back for
 * balance: another target goes instead.
 *
 * Signals announce changes; a missed one is found by a refresh now and then. A refresh reads only
 * the pins that changed.
 */
import { KeyForeignError } from '../../core/errors.ts';
import { ChangeReader } from '../../store/change-reader.ts';
import type { GetReply } from '../../store/port/record-store.ts';
import type { Call, Store } from '../../store/port/store.ts';

/** The collection of the records, by the target's id. */
export const PINS_COLLECTION = 'pins';

export interface Pin {
  readonly member: string;
  /** Of the record: a pin that was made again meanwhile is not removed. */
  readonly revision: number;
}

/** The record of a pin. */
export interface StoredPin {
  readonly member: string;
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
  readonly reason?: string | undefined;
}

export class PinSet {
  readonly #store: Store;
  readonly #pins = new Map<string, Pin>();
  readonly #reader: ChangeReader;
  /** Whether this refresh, or failed ones before it, have changed a pin. */
  #isChanged = false;
  #refreshAtMs = Number.NEGATIVE_INFINITY;

  constructor(store: Store) {
    this.#store = store;
    this.#reader = new ChangeReader(store, PINS_COLLECTION, {
      read: (ids, call) => this.#read(ids, call),
      drop: (id) => this.#set(id, undefined),
      known: () => this.#pins.keys(),
    });
  }

  /** By target. */
  get all(): ReadonlyMap<string, Pin> {
    return this.#pins;
  }

  memberOf(target: string): string | null {
    return this.#pins.get(target)?.member ?? null;
  }

  /** After data loss: the next refresh reads all pins. */
  reset(): void {
    this.#reader.beginAgain();
    this.expect();
  }

  /** A pin may have changed: the next `refreshIfDue` is due. */
  expect(): void {
    this.#refreshAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Refreshes if a pin may have changed, or the last time was `everyMs` ago. */
  async refreshIfDue(nowMs: number, everyMs: number, timeoutMs: number): Promise<boolean> {
    if (nowMs < this.#refreshAtMs) return false;
    // Set before the read: a pin that changes meanwhile is read again.
    this.#refreshAtMs = nowMs + everyMs;
    try {
      return await this.refresh(timeoutMs);
    } catch (error) {
      this.expect();
      throw error;
    }
  }

  /** Returns whether any pin has changed. */
  async refresh(timeoutMs: number): Promise<boolean> {
    await this.#reader.refresh({ timeoutMs });
    const isChanged = this.#isChanged;
    this.#isChanged = false;
    return isChanged;
  }

  /** Removes the pins of these targets, except those that were made again. */
  async remove(targets: readonly string[], timeoutMs: number): Promise<void> {
    const removals = targets.flatMap((id) => {
      const pin = this.#pins.get(id);
      return pin === undefined ? [] : [{ id, ifRevision: pin.revision }];
    });
    await this.#store.records.remove(PINS_COLLECTION, removals, { timeoutMs });
  }

  async #read(ids: readonly string[], call: Call): Promise<void> {
    if (ids.length === 0) return;
    const replies = await this.#store.records.get(PINS_COLLECTION, ids, call);
    const failed = replies.find(isUnread);
    if (failed !== undefined) throw failed.error;
    for (const [i, reply] of replies.entries()) this.#set(ids[i] as string, pinOf(reply));
  }

  #set(id: string, pin: Pin | undefined): void {
    const before = this.#pins.get(id);
    if (before?.member !== pin?.member || before?.revision !== pin?.revision)
      this.#isChanged = true;
    if (pin === undefined) this.#pins.delete(id);
    else this.#pins.set(id, pin);
  }
}

function isUnread(reply: GetReply): reply is GetReply & { kind: 'failed' } {
  return reply.kind === 'failed' && !(reply.error instanceof KeyForeignError);
}

/** Other programs may write there too: a record that names no member pins nothing. */
function pinOf(reply: GetReply): Pin | undefined {
  if (reply.kind !== 'found') return undefined;
  const { member } = (reply.value ?? {}) as { [field: string]: unknown };
  return typeof member === 'string' ? { member, revision: reply.revision } : undefined;
}
