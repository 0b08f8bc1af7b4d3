/**
 * The log as a list in order of time, the latest first. New entries come on top; older ones are fetched when the user scrolls down. While the
 * list is held, new entries are counted and kept aside, so that nothing moves while the user reads.
 */
import type { ApiEvent } from '../../../../src/client/messages.ts';

/** Beyond this the oldest entries are dropped; they can be fetched again. */
const MOST_SHOWN = 20_000;

export type Item =
  | { readonly kind: 'event'; readonly event: ApiEvent }
  /** Entries are missing between its neighbours: after the one at `behind`, which happened at `at`. */
  | { readonly kind: 'gap'; readonly behind: string; readonly at: number };

export class Strip {
  /** In order of time. Instances write in batches, so the log is not. */
  items: readonly Item[] = [];
  /** Where older ones are to be asked for; undefined: from the latest on. */
  before: string | undefined;
  /** There is nothing older. */
  isWhole = false;
  readonly #positions = new Set<string>();
  /** In the order of the log, the latest first: pages are fetched by that. */
  #log: readonly Item[] = [];
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
      return gaps.has(position) ? [item, { kind: 'gap', behind: position, at: event.at }] : [item];
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
    this.#keep([...this.#log, ...fresh.map((event): Item => ({ kind: 'event', event }))]);
  }

  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (!isHeld) this.#show();
  }

  #show(): void {
    if (this.#aside.length === 0) return;
    const all = [...this.#aside.reverse(), ...this.#log];
    this.#aside = [];
    this.#keep(all.slice(0, MOST_SHOWN));
    if (all.length > MOST_SHOWN) this.#forget(all.slice(MOST_SHOWN));
  }

  /** Entries of the same millisecond stay in the order of the log. */
  #keep(log: readonly Item[]): void {
    this.#log = log;
    this.items = [...log].sort((a, b) => timeOf(b) - timeOf(a));
  }

  #forget(items: readonly Item[]): void {
    for (const item of items)
      if (item.kind === 'event') this.#positions.delete(item.event.position);
    const last = this.#log.findLast((item) => item.kind === 'event');
    this.before = last?.event.position;
    this.isWhole = false;
  }

  #isKnown({ position }: ApiEvent): boolean {
    if (this.#positions.has(position)) return true;
    this.#positions.add(position);
    return false;
  }
}

function timeOf(item: Item): number {
  return item.kind === 'event' ? item.event.at : item.at;
}
