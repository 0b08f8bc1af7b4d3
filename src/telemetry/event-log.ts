/** What has happened to all instances, in one order: the reading side of the log that they share. */
import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { isName } from '../core/ids.ts';
import type { LogEntry, LogPage } from '../store/port/log-store.ts';
import type { Store } from '../store/port/store.ts';
import { LOG_TOPIC } from './history.ts';

/** Entries are hinted at; where hints are lost, they are looked for this often. */
const LOOK_EVERY_MS = 2_000;
const CALL = { timeoutMs: 5_000 };

/** One event, with its facts as further fields; fences as text. */
export interface LoggedEvent {
  /** Opaque, and the way to go on from here. */
  readonly position: string;
  /** When it happened, in milliseconds since 1970, by the clock of the instance. */
  readonly at: number;
  /** The id of the instance that wrote it down. */
  readonly instance: string;
  readonly event: string;
  readonly [fact: string]: unknown;
}

export interface EventPage {
  readonly entries: readonly LoggedEvent[];
  /** There are more in this direction. */
  readonly more: boolean;
  /** What came right behind `after` has been dropped already, or lost: it begins with what there is. */
  readonly gap: boolean;
  /** Where to go on from: the position of the last entry looked at. Absent where there was none. */
  readonly position?: string;
}

/** What a follower gets to see. */
export type Followed =
  | { readonly kind: 'event'; readonly event: LoggedEvent }
  /** Something is missing here. */
  | { readonly kind: 'gap' }
  /** The store can not be asked; it is tried again. */
  | { readonly kind: 'stalled'; readonly error: unknown }
  | { readonly kind: 'resumed' };

/** What a follower of whole pages gets to see. */
export type FollowedPage =
  /** Every page that was read, also an empty one. `after`: the position it follows; absent where it begins with the oldest there is. */
  | { readonly kind: 'page'; readonly page: EventPage; readonly after?: string }
  | Extract<Followed, { kind: 'stalled' | 'resumed' }>;

interface FollowOptions {
  readonly after?: string;
  readonly from?: 'now' | 'oldest';
  readonly signal: AbortSignal;
}

export class EventLog {
  readonly #store: Store;
  readonly #clock: Clock;
  /** Null once it was told that there is something unreadable. */
  #events: Emitter | null;

  /** `events`: who is told, once, of entries that are skipped. */
  constructor({ store, clock, events }: { store: Store; clock: Clock; events?: Emitter }) {
    this.#store = store;
    this.#clock = clock;
    this.#events = events ?? null;
  }

  /** What came after a position, the oldest first; without one, from the oldest there is. At most 1,000. */
  async read({ after, most }: { after?: string; most?: number } = {}): Promise<EventPage> {
    const from = { ...(after !== undefined && { after }), ...(most !== undefined && { most }) };
    return this.#pageOf(await this.#store.log.read({ ...CALL, ...from }));
  }

  /** What came before a position, the newest first; without one, from the newest there is. At most 1,000. */
  async recall({ before, most }: { before?: string; most?: number } = {}): Promise<EventPage> {
    const from = { ...(before !== undefined && { before }), ...(most !== undefined && { most }) };
    return this.#pageOf(await this.#store.log.recall({ ...CALL, ...from }));
  }

  /** Everything after a position as it comes, without one everything from now on or from the oldest; until the signal fires. */
  async *follow(options: FollowOptions): AsyncGenerator<Followed, void, undefined> {
    for await (const one of this.pages(options)) {
      if (one.kind !== 'page') {
        yield one;
        continue;
      }
      if (one.page.gap) yield { kind: 'gap' };
      for (const event of one.page.entries) yield { kind: 'event', event };
    }
  }

  /** The same in pages, for who passes them on to many. */
  async *pages({
    after,
    from = 'now',
    signal,
  }: FollowOptions): AsyncGenerator<FollowedPage, void, undefined> {
    const bell = new Bell(this.#clock, signal);
    let unsubscribe: (() => void) | null = null;
    let position: string | undefined = after;
    let isPlaced = after !== undefined || from === 'oldest';
    let isStalled = false;
    try {
      while (!signal.aborted) {
        try {
          unsubscribe ??= await this.#store.signals.subscribe(LOG_TOPIC, bell);
          if (!isPlaced) position = (await this.recall({ most: 1 })).position;
          isPlaced = true;
          const place = position === undefined ? {} : { after: position };
          const page = await this.read(place);
          // A log that has lost everything begins anew: what it gets is behind no position that we know.
          position = page.position ?? (page.gap ? undefined : position);
          if (isStalled) yield { kind: 'resumed' };
          isStalled = false;
          yield { kind: 'page', page, ...place };
          if (page.more) continue;
        } catch (error) {
          if (!isStalled) yield { kind: 'stalled', error };
          isStalled = true;
        }
        await bell.wait(LOOK_EVERY_MS);
      }
    } finally {
      unsubscribe?.();
    }
  }

  /** What is no event is skipped: it must not keep anybody from the others. */
  #pageOf({ entries: found, more, gap }: LogPage): EventPage {
    const entries: LoggedEvent[] = [];
    for (const entry of found) {
      const event = eventOf(entry);
      if (event !== null) entries.push(event);
      else this.#tellUnreadable(entry.position);
    }
    const position = found.at(-1)?.position;
    return { entries, more, gap, ...(position !== undefined && { position }) };
  }

  #tellUnreadable(position: string): void {
    this.#events?.emit('log.unreadable', { position });
    this.#events = null;
  }
}

/** Rings when there may be something new, also for those who were not waiting just then. */
class Bell {
  readonly #clock: Clock;
  #hasRung = false;
  #wake: () => void = () => {};

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    // Once for all waits: one that is followed for days must not gather listeners.
    signal.addEventListener('abort', () => this.onMessage(), { once: true });
  }

  onMessage(): void {
    this.#hasRung = true;
    this.#wake();
  }

  onGap(): void {
    this.onMessage();
  }

  async wait(mostMs: number): Promise<void> {
    if (!this.#hasRung) {
      const rung = new AbortController();
      this.#wake = () => rung.abort();
      await this.#clock.sleep(mostMs, rung.signal).catch(() => {});
    }
    this.#hasRung = false;
  }
}

/** As all events are called, those of later versions too. */
const EVENT_NAME = /^[a-z][a-z-]*(\.[a-z][a-z-]*)+$/;
const FACT_NAME = /^[A-Za-z][A-Za-z0-9]*$/;
/** The latest that a date can say. */
const LATEST_MS = 8_640_000_000_000_000;

/** Null for what is no event: another program has written it. Of the facts, those that no instance would have written are left out. */
function eventOf({ position, value }: LogEntry): LoggedEvent | null {
  if (typeof value !== 'object' || value === null) return null;
  const { at, instance, event, ...facts } = value as Record<string, unknown>;
  if (!isMoment(at) || !isName(instance) || typeof event !== 'string' || !EVENT_NAME.test(event))
    return null;
  const kept = Object.entries(facts).filter(([name, fact]) => isFact(name, fact));
  return { at, instance, event, ...Object.fromEntries(kept), position };
}

function isMoment(at: unknown): at is number {
  return typeof at === 'number' && Math.abs(at) <= LATEST_MS;
}

/** As `plainFacts` makes them. */
function isFact(name: string, fact: unknown): boolean {
  if (!FACT_NAME.test(name)) return false;
  return typeof fact === 'number' ? Number.isFinite(fact) : fact === null || isScalar(fact);
}

function isScalar(fact: unknown): boolean {
  return typeof fact === 'string' || typeof fact === 'boolean';
}
