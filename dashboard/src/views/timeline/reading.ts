/** The log as far as a timeline needs it: from now back to where its window begins, page by page, and whatever happens meanwhile. */
import { effect, signal } from '@preact/signals';
import type { ApiEvent } from '../../../../src/client/messages.ts';
import { client, messageOf } from '../../data/access.ts';
import { events, eventVersion } from '../../data/events.ts';
import { wallOf } from '../../data/now.ts';
import { since } from '../../data/since.ts';
import { Story, TOLD } from '../../data/story.ts';

const PAGE = 1_000;

export class Reading {
  readonly story = new Story();
  /** Grows with what is known. */
  readonly version = signal(0);
  /** Everything since then has been read; null before the first page. */
  readonly readFrom = signal<number | null>(null);
  /** There is nothing older. */
  readonly isWhole = signal(false);
  readonly trouble = signal<string | null>(null);
  /** How far the server's clock is ahead of this device's: entries have the clocks of instances, which are nearer to that. */
  readonly aheadMs = signal(0);
  readonly #end = new AbortController();
  #before: string | undefined;
  #wanted = Number.POSITIVE_INFINITY;
  #isReading = false;
  #lastTaken: ApiEvent | undefined;

  start(): void {
    void this.#askTime();
    const stop = effect(() => {
      eventVersion.value;
      this.#takeNew();
    });
    this.#end.signal.addEventListener('abort', stop);
  }

  stop(): void {
    this.#end.abort();
  }

  /** Milliseconds since 1970 by the server's clock, for a moment of the browser's. */
  wall(monotonicMs: number): number {
    return wallOf(monotonicMs) + this.aheadMs.value;
  }

  /** Reads back until everything since `from` is known. */
  reach(from: number): void {
    this.#wanted = from;
    if (!this.#isReading) void this.#read();
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    const { signal } = this.#end;
    try {
      while (!signal.aborted && !this.isWhole.peek() && this.#isShort()) {
        const before = this.#before;
        const page = await client.history(
          { event: TOLD, limit: PAGE, ...(before !== undefined && { before }) },
          { signal },
        );
        this.#before = page.before;
        this.isWhole.value = page.before === undefined;
        const oldest = page.events.at(-1);
        if (oldest !== undefined) this.readFrom.value = oldest.at;
        if (this.story.add(page.events)) this.version.value++;
      }
      this.trouble.value = null;
    } catch (error) {
      if (!signal.aborted) this.trouble.value = messageOf(error);
    } finally {
      this.#isReading = false;
    }
  }

  #isShort(): boolean {
    const readFrom = this.readFrom.peek();
    return readFrom === null || readFrom > this.#wanted;
  }

  /** Only what came since: the list is changed in place, and its beginning is dropped now and then. */
  #takeNew(): void {
    const fresh = since(events, this.#lastTaken);
    this.#lastTaken = events.at(-1);
    if (this.story.add(fresh)) this.version.value++;
  }

  async #askTime(): Promise<void> {
    const { signal } = this.#end;
    const sentMs = performance.now();
    const about = await client.about({ signal }).catch(() => null);
    if (about === null) return;
    const halfMs = (performance.now() - sentMs) / 2;
    const aheadMs = about.now - wallOf(sentMs + halfMs);
    // Less than that is how long the answer took, not how late a clock is.
    this.aheadMs.value = Math.abs(aheadMs) > halfMs + 20 ? aheadMs : 0;
  }
}
