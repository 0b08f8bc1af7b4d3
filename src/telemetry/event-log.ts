/** Reads the log that all instances share: the events of all of them, in one order. */
import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { isName } from '../core/ids.ts';
import type { LogEntry, LogPage } from '../store/port/log-store.ts';
import type { Store } from '../store/port/store.ts';
import { LOG_TOPIC } from './history.ts';

/** A hint announces new entries. Hints may be lost, so followers also read this often. */
const READ_EVERY_MS = 2_000;
const CALL = { timeoutMs: 5_000 };

/** One event, with its facts as further fields; fences as text. */
export interface LoggedEvent {
  /** Opaque; reading can continue from here. */
  readonly position: string;
  /** When it happened, in milliseconds since 1970, by the clock of the instance. */
  readonly at: number;
  /** The id of the instance that recorded it. */
  readonly instance: string;
  readonly event: string;
  readonly [fact: string]: unknown;
}

export interface EventPage {
  readonly entries: readonly LoggedEvent[];
  /** There are more in this direction. */
  readonly more: boolean;
  /** Entries right after `after` were dropped or lost: the page begins with the oldest left. */
  readonly gap: boolean;
  /** The position of the last entry that was read, to continue from. Absent if there was none. */
  readonly position?: string | undefined;
}

/** What `follow` yields. */
export type Followed =
  | { readonly kind: 'event'; readonly event: LoggedEvent }
  /** Events are missing here. */
  | { readonly kind: 'gap' }
  /** The store does not answer; the read is repeated. */
  | { readonly kind: 'stalled'; readonly error: unknown }
  | { readonly kind: 'resumed' };

/** What `pages` yields. */
export type FollowedPage =
  /** Every page, even an empty one. `after`: the position before it; absent for the oldest. */
  | { readonly kind: 'page'; readonly page: EventPage; readonly after?: string | undefined }
  | Extract<Followed, { kind: 'stalled' | 'resumed' }>;

export interface FollowOptions {
  readonly after?: string;
  readonly from?: 'now' | 'oldest';
  readonly signal: AbortSignal;
}

export class EventLog {
  readonly #store: Store;
  readonly #clock: Clock;
  /** Null after `log.unreadable` was emitted: it is emitted once. */
  #events: Emitter | null;

  /** Without `events`, skipped entries are not reported. */
  constructor(rt: { store: Store; clock: Clock; events?: Emitter | undefined }) {
    this.#store = rt.store;
    this.#clock = rt.clock;
    this.#events = rt.events ?? null;
  }

  /** Events after a position, the oldest first; without one, from the oldest. At most 1,000. */
  async read(
    range: { after?: string | undefined; most?: number | undefined } = {},
  ): Promise<EventPage> {
    const { after, most } = range;
    return this.#pageOf(await this.#store.log.read({ ...CALL, after, most }));
  }

  /** Events before a position, the newest first; without one, from the newest. At most 1,000. */
  async recall(
    range: { before?: string | undefined; most?: number | undefined } = {},
  ): Promise<EventPage> {
    const { before, most } = range;
    return this.#pageOf(await this.#store.log.recall({ ...CALL, before, most }));
  }

  /**
   * Events as they happen, until the signal fires: after a position, or else from now on or from
   * the oldest.
   */
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

  /** The same in pages, for a caller that passes them on to many. */
  async *pages({
    after,
    from = 'now',
    signal,
  }: FollowOptions): AsyncGenerator<FollowedPage, void, undefined> {
    // Ends a wait when a hint arrives. A hint that arrives before the wait ends it at once.
    let hinted = new AbortController();
    const onHint = () => hinted.abort();
    // One listener for all waits, so that following for days does not collect listeners.
    signal.addEventListener('abort', onHint, { once: true });
    let unsubscribe: (() => void) | null = null;
    let position: string | undefined = after;
    let isPositioned = after !== undefined || from === 'oldest';
    let isStalled = false;
    try {
      while (!signal.aborted) {
        try {
          unsubscribe ??= await this.#store.signals.subscribe(LOG_TOPIC, {
            onMessage: onHint,
            onGap: onHint,
          });
          if (!isPositioned) position = (await this.recall({ most: 1 })).position;
          isPositioned = true;
          const after = position;
          const page = await this.read({ after });
          // A log that has lost everything begins again: its entries follow no known position.
          position = page.position ?? (page.gap ? undefined : position);
          if (isStalled) yield { kind: 'resumed' };
          isStalled = false;
          yield { kind: 'page', page, after };
          if (page.more) continue;
        } catch (error) {
          if (!isStalled) yield { kind: 'stalled', error };
          isStalled = true;
        }
        await this.#clock.sleep(READ_EVERY_MS, hinted.signal).catch(() => {});
        hinted = new AbortController();
      }
    } finally {
      unsubscribe?.();
    }
  }

  /** Entries that are not events are skipped, so that they cannot block the others. */
  #pageOf({ entries: found, more, gap }: LogPage): EventPage {
    const entries: LoggedEvent[] = [];
    for (const entry of found) {
      const event = eventOf(entry);
      if (event !== null) entries.push(event);
      else this.#reportUnreadable(entry.position);
    }
    const position = found.at(-1)?.position;
    return { entries, more, gap, position };
  }

  #reportUnreadable(position: string): void {
    this.#events?.emit('log.unreadable', { position });
    this.#events = null;
  }
}

/** The form of event names, including those of later versions. */
const EVENT_NAME = /^[a-z][a-z-]*(\.[a-z][a-z-]*)+$/;
const FACT_NAME = /^[A-Za-z][A-Za-z0-9]*$/;
/** The latest time of a `Date`. */
const LATEST_MS = 8_640_000_000_000_000;

/** Null for an entry of another program. Facts that no instance would write are left out. */
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

/** The form that `plainFacts` makes. */
function isFact(name: string, fact: unknown): boolean {
  if (!FACT_NAME.test(name)) return false;
  return typeof fact === 'number' ? Number.isFinite(fact) : fact === null || isScalar(fact);
}

function isScalar(fact: unknown): boolean {
  return typeof fact === 'string' || typeof fact === 'boolean';
}
