/**
 * Where operators have moved targets: one record per target that names the member it is to stay with. Every instance plans by all of them,
 * so that what was moved is not moved back for the sake of balance: another target goes instead.
 *
 * A pin is told of by a signal; one that was not heard of is found by a look now and then. Each look asks only for what has changed.
 */
import { KeyForeignError } from '../base/errors.ts';
import type { Store } from '../store/store.ts';

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
  #pins = new Map<string, Pin>();
  #version = 0;
  /** What was seen on the way through all of them; null when that is done. */
  #listed: Map<string, Pin> | null = new Map();

  constructor(store: Store) {
    this.#store = store;
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
    this.#version = 0;
    this.#listed = new Map();
  }

  /** Says whether anything is otherwise than it was. */
  async refresh(timeoutMs: number): Promise<boolean> {
    let isChanged = false;
    for (;;) {
      const since = this.#version;
      const call = { timeoutMs, since };
      const page = await this.#store.records.changes(PINS_COLLECTION, call);
      if (page.reset && since > 0) {
        this.beginAnew();
        continue;
      }
      const pins = this.#listed ?? this.#pins;
      const found = await this.#read(page.written, timeoutMs);
      for (const id of [...page.written, ...page.removed]) {
        const pin = found.get(id);
        isChanged ||= pins.get(id)?.revision !== pin?.revision;
        if (pin === undefined) pins.delete(id);
        else pins.set(id, pin);
      }
      this.#version = page.version;
      if (page.more) continue;
      if (this.#listed === null) return isChanged;
      const isOther = !isSame(this.#pins, this.#listed);
      this.#pins = this.#listed;
      this.#listed = null;
      return isOther;
    }
  }

  /** Forgets the pins of these targets, unless they were made anew. */
  async forget(targets: readonly string[], timeoutMs: number): Promise<void> {
    const removals = targets.flatMap((id) => {
      const pin = this.#pins.get(id);
      return pin === undefined ? [] : [{ id, ifRevision: pin.revision }];
    });
    await this.#store.records.remove(PINS_COLLECTION, removals, { timeoutMs });
  }

  async #read(ids: readonly string[], timeoutMs: number): Promise<Map<string, Pin>> {
    const found = new Map<string, Pin>();
    if (ids.length === 0) return found;
    const replies = await this.#store.records.get(PINS_COLLECTION, ids, { timeoutMs });
    for (const [i, reply] of replies.entries()) {
      if (reply.kind === 'failed' && !(reply.error instanceof KeyForeignError)) throw reply.error;
      if (reply.kind !== 'found') continue;
      // Others may write there, too: what names no member pins nothing.
      const { member } = (reply.value ?? {}) as { [field: string]: unknown };
      const { revision } = reply;
      if (typeof member === 'string') found.set(ids[i] as string, { member, revision });
    }
    return found;
  }
}

function isSame(a: ReadonlyMap<string, Pin>, b: ReadonlyMap<string, Pin>): boolean {
  return a.size === b.size && [...a].every(([id, pin]) => b.get(id)?.member === pin.member);
}
