/**
 * The log as a list, the latest first: what happens is put on top, what happened before is fetched when somebody scrolls that far. While it is
 * held, new entries are counted and kept aside: nothing moves under the eyes of who reads.
 */
import type { ApiEvent } from '../../../../src/client/messages.ts';

/** Beyond that the oldest are dropped; they can be fetched again. */
const MOST_SHOWN = 20_000;

export type Item =
  | { readonly kind: 'event'; readonly event: ApiEvent }
  /** Something is missing between its neighbours. */
  | { readonly kind: 'gap'; readonly behind: string };

export class Strip {
  items: readonly Item[] = [];
  /** Where older ones are to be asked for; undefined: from the latest on. */
  before: string | undefined;
  /** There is nothing older. */
  isWhole = false;
  readonly #positions = new Set<string>();
  #aside: Item[] = [];
  #isHeld = false;

  get aside(): number {
    return this.#aside.length;
  }

  /** What is new, the oldest first; `gaps`: behind these positions something is missing. */
  push(events: readonly ApiEvent[], gaps: ReadonlySet<string>): void {
    const fresh = events.flatMap((event): Item[] => {
      if (this.#isKnown(event)) return [];
      const { position } = event;
      const item: Item = { kind: 'event', event };
      return gaps.has(position) ? [item, { kind: 'gap', behind: position }] : [item];
    });
    if (fresh.length === 0) return;
    this.#aside.push(...fresh);
    if (!this.#isHeld) this.#show();
  }

  /** A page of the past, the latest first, and where the next begins. */
  append(events: readonly ApiEvent[], before: string | undefined): void {
    this.before = before;
    this.isWhole = before === undefined;
    const fresh = events.filter((event) => !this.#isKnown(event));
    this.items = [...this.items, ...fresh.map((event): Item => ({ kind: 'event', event }))];
  }

  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (!isHeld) this.#show();
  }

  #show(): void {
    if (this.#aside.length === 0) return;
    const all = [...this.#aside.reverse(), ...this.items];
    this.#aside = [];
    this.items = all.slice(0, MOST_SHOWN);
    if (all.length > MOST_SHOWN) this.#forget(all.slice(MOST_SHOWN));
  }

  #forget(items: readonly Item[]): void {
    for (const item of items)
      if (item.kind === 'event') this.#positions.delete(item.event.position);
    const last = this.items.findLast((item) => item.kind === 'event');
    this.before = last?.event.position;
    this.isWhole = false;
  }

  #isKnown({ position }: ApiEvent): boolean {
    if (this.#positions.has(position)) return true;
    this.#positions.add(position);
    return false;
  }
}
