/**
 * Where operators have moved targets: one record per target that names the member it is to stay with. Every instance plans by all of them,
 * so that what was moved is not moved back for the sake of balance: another target goes instead.
 *
 * A pin is told of by a signal; one that was not heard of is found by a look now and then. Each look asks only for what has changed.
 */
import { KeyForeignError } from '../../core/errors.ts';
import { ChangeReader } from '../../store/change-reader.ts';
import type { GetReply } from '../../store/port/record-store.ts';
import type { Call, Store } from '../../store/port/store.ts';

/** Where they are kept, by the target's id. */
export const PINS_COLLECTION = 'pins';

export interface Pin {
  readonly member: string;
  /** Of the record, so that nobody forgets one that was made anew meanwhile. */
  readonly revision: number;
}

/** What a pin is stored as. */
export interface StoredPin {
  readonly member: string;
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
  readonly reason?: string;
}

export class Pins {
  readonly #store: Store;
  readonly #pins = new Map<string, Pin>();
  readonly #reader: ChangeReader;
  /** Whether the refresh that is under way, or those that failed before it, have changed anything. */
  #isChanged = false;

  constructor(store: Store) {
    this.#store = store;
    this.#reader = new ChangeReader(store, PINS_COLLECTION, {
      read: (ids, call) => this.#read(ids, call),
      drop: (id) => this.#note(id, undefined),
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

  /** The store may have lost some: the next refresh looks at all of them. */
  beginAnew(): void {
    this.#reader.beginAgain();
  }

  /** Says whether anything is otherwise than it was. */
  async refresh(timeoutMs: number): Promise<boolean> {
    await this.#reader.refresh({ timeoutMs });
    const isChanged = this.#isChanged;
    this.#isChanged = false;
    return isChanged;
  }

  /** Forgets the pins of these targets, unless they were made anew. */
  async forget(targets: readonly string[], timeoutMs: number): Promise<void> {
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
    for (const [i, reply] of replies.entries()) this.#note(ids[i] as string, pinOf(reply));
  }

  #note(id: string, pin: Pin | undefined): void {
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

/** Others may write there, too: what names no member pins nothing. */
function pinOf(reply: GetReply): Pin | undefined {
  if (reply.kind !== 'found') return undefined;
  const { member } = (reply.value ?? {}) as { [field: string]: unknown };
  return typeof member === 'string' ? { member, revision: reply.revision } : undefined;
}
