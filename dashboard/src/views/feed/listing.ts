/** The part of the log that fits the filters, kept up to date. */
import { effect, signal } from '@preact/signals';
import type { ApiEvent } from '../../../../src/client/messages.ts';
import { client, messageOf } from '../../data/access.ts';
import { events, eventVersion, gaps } from '../../data/events.ts';
import { since } from '../../data/since.ts';
import { Strip } from './strip.ts';
import { historyQuery, isKnownEvent, isWanted, type Wish } from './wish.ts';

const PAGE = 500;
/** So many entries are fetched without being asked for, from so many pages at most. */
const ENOUGH = 60;
const MOST_PAGES = 8;

export class Listing {
  readonly strip = new Strip();
  readonly version = signal(0);
  readonly isReading = signal(false);
  readonly trouble = signal<string | null>(null);
  readonly #wish: Wish;
  readonly #end = new AbortController();
  #lastTaken: ApiEvent | undefined;

  constructor(wish: Wish) {
    this.#wish = wish;
  }

  start(): void {
    // The entries that the dashboard has have no gap; older ones are requested.
    this.strip.before = events[0]?.position;
    const stop = effect(() => {
      eventVersion.value;
      this.#takeNew();
    });
    this.#end.signal.addEventListener('abort', stop);
    if (this.strip.items.length < ENOUGH) void this.readOlder();
  }

  stop(): void {
    this.#end.abort();
  }

  hold(isHeld: boolean): void {
    this.strip.hold(isHeld);
    this.version.value++;
  }

  async readOlder(): Promise<void> {
    if (this.isReading.peek() || this.strip.isWhole || !isKnownEvent(this.#wish.event)) return;
    const { signal } = this.#end;
    const enough = this.strip.items.length + ENOUGH;
    this.isReading.value = true;
    try {
      for (let pages = 0; pages < MOST_PAGES && !this.strip.isWhole; pages++) {
        const { before } = this.strip;
        const query = { ...historyQuery(this.#wish), limit: PAGE, before };
        const page = await client.history(query, { signal });
        this.strip.append(
          page.events.filter((event) => isWanted(this.#wish, event)),
          page.before,
        );
        this.version.value++;
        if (this.strip.items.length >= enough) break;
      }
      this.trouble.value = null;
    } catch (error) {
      if (!signal.aborted) this.trouble.value = messageOf(error);
    } finally {
      this.isReading.value = false;
    }
  }

  #takeNew(): void {
    const fresh = since(events, this.#lastTaken);
    this.#lastTaken = events.at(-1);
    const wanted = fresh.filter((event) => isWanted(this.#wish, event));
    if (wanted.length === 0) return;
    this.strip.push(wanted, gaps);
    this.version.value++;
  }
}
