/**
 * The latest part of the log, as this process has seen it: who comes back within it needs no store.
 *
 * Positions are opaque and can not be compared. But whoever has a position that was passed here can be told exactly what came behind it.
 */
import type { EventPage, LoggedEvent } from '../../telemetry/event-log.ts';
import { eventFrame, GAP } from './event-frames.ts';

/** Before everything; what a log without entries has instead of a position. No position of a store reads so. */
export const BEGINNING = 'oldest';

/** So many entries are kept, of so many characters together; the oldest go first. */
const MOST_ITEMS = 10_000;
const MOST_CHARACTERS = 4 * 1_024 * 1_024;

/** An event, or that something is missing (null), encoded once for all who get it. */
export interface Item {
  readonly event: LoggedEvent | null;
  readonly frame: string;
}

export class EventWindow {
  #items: Item[] = [];
  /** How many items have been dropped at the front. */
  #dropped = 0;
  #characters = 0;
  /** How many items had passed by when a position was reached, in the order of the log. */
  readonly #passed = new Map<string, number>();
  #head: string;

  constructor(head: string) {
    this.#head = head;
    this.#reach(head);
  }

  /** How far it has come. */
  get head(): string {
    return this.#head;
  }

  /** Takes the page that comes next, and gives what is new. */
  add(page: EventPage): readonly Item[] {
    const from = this.#items.length;
    if (page.gap) this.#push({ event: null, frame: GAP });
    for (const event of page.entries) {
      this.#push({ event, frame: eventFrame(event) });
      this.#reach(event.position);
    }
    const added = this.#items.slice(from);
    this.#head = page.position ?? (page.gap ? BEGINNING : this.#head);
    this.#reach(this.#head);
    this.#dropOld();
    return added;
  }

  /** What came behind a position, at most so much of it; null where that is not known here. */
  after(position: string, most: number): { items: readonly Item[]; more: boolean } | null {
    const passed = this.#passed.get(position);
    if (passed === undefined) return null;
    const from = passed - this.#dropped;
    let until = from + most;
    // Behind a gap there is no position to go on from, only behind what follows it.
    while (until < this.#items.length && this.#items[until - 1]?.event === null) until++;
    return { items: this.#items.slice(from, until), more: until < this.#items.length };
  }

  #push(item: Item): void {
    this.#items.push(item);
    this.#characters += item.frame.length;
  }

  /** A position that comes again, as `BEGINNING` does when a log has lost everything, is where it was last. */
  #reach(position: string): void {
    this.#passed.delete(position);
    this.#passed.set(position, this.#dropped + this.#items.length);
  }

  #dropOld(): void {
    let count = 0;
    while (
      this.#items.length - count > MOST_ITEMS ||
      (this.#characters > MOST_CHARACTERS && count < this.#items.length)
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
