/**
 * The latest events of the log, in memory: a client that reconnects soon does not read the
 * store.
 *
 * Positions are opaque and cannot be compared. The cache knows which events follow each position
 * that it has passed.
 */
import type { EventPage, LoggedEvent } from '../../telemetry/event-log.ts';
import { eventFrame, GAP } from './sse-frames.ts';

/** The position before the first entry, and that of an empty log. No store uses this text. */
export const BEGINNING = 'oldest';

/** Above these limits the oldest entries are dropped. */
const MAX_ITEMS = 10_000;
const MAX_CHARACTERS = 4 * 1_024 * 1_024;

/** An event, or a gap (null), encoded once for all clients. */
export interface Item {
  readonly event: LoggedEvent | null;
  readonly frame: string;
}

export class EventCache {
  #items: Item[] = [];
  /** Items dropped at the front. */
  #dropped = 0;
  #characters = 0;
  /** By position: the number of items up to it, dropped ones included; in the order of the log. */
  readonly #passed = new Map<string, number>();
  #head: string;

  constructor(head: string) {
    this.#head = head;
    this.#setPosition(head);
  }

  /** The position of the last entry. */
  get head(): string {
    return this.#head;
  }

  /** Adds the next page, and returns its items. */
  add(page: EventPage): readonly Item[] {
    const from = this.#items.length;
    if (page.gap) this.#push({ event: null, frame: GAP });
    for (const event of page.entries) {
      this.#push({ event, frame: eventFrame(event) });
      this.#setPosition(event.position);
    }
    const added = this.#items.slice(from);
    this.#head = page.position ?? (page.gap ? BEGINNING : this.#head);
    this.#setPosition(this.#head);
    this.#dropOld();
    return added;
  }

  /** Up to `limit` items after a position; null where the cache does not know the position. */
  after(position: string, limit: number): { items: readonly Item[]; more: boolean } | null {
    const passed = this.#passed.get(position);
    if (passed === undefined) return null;
    const from = passed - this.#dropped;
    let until = from + limit;
    // A gap has no position to continue from, so the event after it is included.
    while (until < this.#items.length && this.#items[until - 1]?.event === null) until++;
    return { items: this.#items.slice(from, until), more: until < this.#items.length };
  }

  #push(item: Item): void {
    this.#items.push(item);
    this.#characters += item.frame.length;
  }

  /** A position may come again, as `BEGINNING` does after the log was lost: the last counts. */
  #setPosition(position: string): void {
    this.#passed.delete(position);
    this.#passed.set(position, this.#dropped + this.#items.length);
  }

  #dropOld(): void {
    let count = 0;
    while (
      this.#items.length - count > MAX_ITEMS ||
      (this.#characters > MAX_CHARACTERS && count < this.#items.length)
    ) {
      this.#characters -= this.#items[count]?.frame.length ?? 0;
      count++;
    }
    if (count === 0) return;
    this.#items = this.#items.slice(count);
    this.#dropped += count;
    for (const [position, passed] of this.#passed) {
      if (passed >= this.#dropped) break;
      this.#passed.delete(position);
    }
  }
}
