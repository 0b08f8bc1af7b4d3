/**
 * Everybody who watches events through this process, behind one tail of the log: a thousand who watch are one who reads the store.
 *
 * The tail runs from the first client to some seconds after the last. What it has read lately stands in a window. A client begins where it
 * wants to, and is **behind**: it is given what comes next out of the window, or, where that does not reach back so far, out of the store.
 * When the window has no more for it, it **joins**, in the same step: from then on the tail gives it what comes. So nothing is lost and
 * nothing told twice, and no position has to be compared with another: either the tail has passed it, or it has not yet.
 *
 * A client may be further than the tail, which reads when it has been told of something, not all the time. Then it waits for the tail's next page.
 */
import type { Clock, Timer } from '../../core/clock.ts';
import type { EventLog, EventPage, FollowedPage } from '../../telemetry/event-log.ts';
import type { Caller } from '../http/route.ts';
import { EventClient } from './event-client.ts';
import type { EventFilter } from './event-filter.ts';
import { comment, eventFrame, GAP, placeFrame } from './event-frames.ts';
import { BEGINNING, EventWindow, type Item } from './event-window.ts';
import { CATCH_UP_PAGE, PageReader } from './page-reader.ts';
import { StreamLimits } from './stream-limits.ts';

/** Proxies take a connection for dead after a minute or less without a byte. */
const BEAT_MS = 15_000;
/** Who is cut off comes back after a second; the window is kept for the last one, too. */
const LINGER_MS = 5_000;
/**
 * A page is followed by a pause of so long for each client it was written to, and what comes meanwhile goes in one page: a write to a
 * thousand takes some 30 ms of a processor, however little is in it.
 */
const PAUSE_PER_WRITE_MS = 0.1;
export interface EventHubOptions {
  /** Who may watch at the same time; default 5,000. */
  readonly clients?: number;
  /** With one token; default 100. */
  readonly clientsPerToken?: number;
  /** What may lie unread in the queue of one who does not keep up; default 1 MiB. */
  readonly queuedBytes?: number;
}

export const STREAM_LIMITS = { clients: 5_000, clientsPerToken: 100, queuedBytes: 1_048_576 };

export interface EventHubParts {
  readonly log: Pick<EventLog, 'pages' | 'read'>;
  readonly clock: Clock;
  readonly options?: EventHubOptions;
}

export interface Watching {
  readonly filter: EventFilter;
  readonly caller: Caller;
  /** Behind which position it begins, or at the `BEGINNING`; null: where the tail is. */
  readonly position: string | null;
  /** Ends it: the client has gone, or the server goes. */
  readonly signal: AbortSignal;
}

/** One run of the tail, from the first client to the last. */
interface Tail {
  readonly end: AbortController;
  /** Null until it is known where the log ends. */
  window: EventWindow | null;
  isStalled: boolean;
}

/** Clients that see the same: what they get is put together once. */
interface Audience {
  readonly filter: EventFilter;
  readonly clients: Set<EventClient>;
}

export class EventHub {
  readonly #log: EventHubParts['log'];
  readonly #clock: Clock;
  readonly #limits: Required<EventHubOptions>;
  readonly #reader: PageReader;
  readonly #clients = new Set<EventClient>();
  readonly #places: StreamLimits;
  readonly #audiences = new Map<string, Audience>();
  /** Clients that wait for the tail's next page. */
  readonly #waiting = new Map<EventClient, () => void>();
  /** Who wants to know that the tail has its place. */
  #placing: (() => void)[] = [];
  #tail: Tail | null = null;
  #beat: Timer | null = null;
  #linger: Timer | null = null;

  constructor({ log, clock, options = {} }: EventHubParts) {
    this.#log = log;
    this.#clock = clock;
    this.#limits = { ...STREAM_LIMITS, ...options };
    this.#places = new StreamLimits(this.#limits, 'events');
    this.#reader = new PageReader(log);
  }

  /** How many watch. */
  get size(): number {
    return this.#clients.size;
  }

  /** Whether the log is being followed. */
  get isFollowing(): boolean {
    return this.#tail !== null;
  }

  /** The stream for a new client; a problem where there are too many. */
  watch({ filter, caller, position, signal }: Watching): ReadableStream<Uint8Array> {
    this.#places.take(caller.tokenId);
    const onAbort = () => client.end('closing');
    const client = new EventClient({
      clock: this.#clock,
      filter,
      tokenId: caller.tokenId,
      expiresAtMs: caller.expiresAtMs,
      position,
      mostQueuedBytes: this.#limits.queuedBytes,
      onEnd: () => {
        signal.removeEventListener('abort', onAbort);
        this.#forget(client);
      },
    });
    this.#clients.add(client);
    signal.addEventListener('abort', onAbort, { once: true });
    client.begin();
    if (signal.aborted) onAbort();
    const tail = this.#follow();
    if (tail.isStalled) client.say(STALLED);
    this.#bring(client, tail).catch(() => client.end('failed'));
    return client.stream;
  }

  /** Resolves when the tail knows where the log ends: whoever began there misses nothing of what happens from then on. Or where that can not be known now. */
  untilPlaced(): Promise<void> {
    const tail = this.#tail;
    if (tail === null || tail.window !== null || tail.isStalled) return Promise.resolve();
    return new Promise((resolve) => this.#placing.push(resolve));
  }

  /** Says good-bye to all, and takes no more. */
  close(): void {
    this.#places.close();
    for (const client of this.#clients) client.end('closing');
    this.#endTail();
  }

  #forget(client: EventClient): void {
    this.#clients.delete(client);
    this.#waiting.get(client)?.();
    const audience = this.#audiences.get(client.filter.key);
    if (audience?.clients.delete(client) && audience.clients.size === 0)
      this.#audiences.delete(client.filter.key);
    this.#places.leave(client.tokenId);
    if (this.#clients.size > 0) return;
    this.#beat?.cancel();
    this.#beat = null;
    this.#linger ??= this.#clock.after(LINGER_MS, () => this.#endTail());
  }

  #follow(): Tail {
    this.#linger?.cancel();
    this.#linger = null;
    this.#armBeat();
    if (this.#tail !== null) return this.#tail;
    const tail: Tail = { end: new AbortController(), window: null, isStalled: false };
    this.#tail = tail;
    this.#run(tail).catch(() => {
      // Following survives every failure of the store; who ended up here would wait for ever.
      for (const client of this.#clients) client.end('failed');
      this.#endTail();
    });
    return tail;
  }

  #endTail(): void {
    this.#linger?.cancel();
    this.#linger = null;
    this.#tail?.end.abort();
    this.#tail = null;
    this.#wake();
  }

  async #run(tail: Tail): Promise<void> {
    const { signal } = tail.end;
    for await (const one of this.#log.pages({ from: 'now', signal })) {
      if (signal.aborted) return;
      const writes = this.#pass(tail, one);
      this.#wake();
      const pauseMs = writes * PAUSE_PER_WRITE_MS;
      if (pauseMs >= 1) await this.#clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  /** Gives on what the tail has read; says how many were written to. */
  #pass(tail: Tail, one: FollowedPage): number {
    if (one.kind !== 'page') {
      tail.isStalled = one.kind === 'stalled';
      for (const client of this.#clients) client.say(tail.isStalled ? STALLED : RESUMED);
      return this.#clients.size;
    }
    tail.window ??= new EventWindow(one.after ?? BEGINNING);
    const added = tail.window.add(one.page);
    if (added.length === 0) return 0;
    let writes = 0;
    for (const { filter, clients } of this.#audiences.values()) {
      const text = textFor(filter, added);
      if (text === '') continue;
      const bytes = encoder.encode(text);
      writes += clients.size;
      for (const client of clients) client.send(bytes);
    }
    return writes;
  }

  /** Takes a client from where it begins to where the tail is. */
  async #bring(client: EventClient, tail: Tail): Promise<void> {
    while (client.state === 'behind') {
      await client.hasRoom();
      if (this.#fromWindow(client, tail)) continue;
      if (client.position === null) {
        await this.#nextPage(client);
        continue;
      }
      // What can not be read now can be when the tail can read again.
      const page = await this.#reader.read(client.position).catch(() => null);
      if (client.isOver) return;
      if (page !== null) show(client, page);
      if (page?.more !== true && !this.#fromWindow(client, tail)) await this.#nextPage(client);
    }
  }

  /** Gives a client what the window has for it, and lets it join where that is all. False where the window does not know its position. */
  #fromWindow(client: EventClient, { window }: Tail): boolean {
    if (window === null || client.state !== 'behind') return false;
    client.position ??= window.head;
    const next = window.after(client.position, CATCH_UP_PAGE);
    if (next === null) return false;
    if (next.more) client.position = next.items.at(-1)?.event?.position ?? client.position;
    else client.position = window.head;
    client.say(textFor(client.filter, next.items) || placeFrame(client.position));
    if (!next.more) this.#join(client);
    return true;
  }

  #join(client: EventClient): void {
    client.join();
    if (client.state !== 'joined') return;
    const { filter } = client;
    const audience = this.#audiences.get(filter.key) ?? { filter, clients: new Set() };
    audience.clients.add(client);
    this.#audiences.set(filter.key, audience);
  }

  /** When the tail has read again; or the client has ended. */
  #nextPage(client: EventClient): Promise<void> {
    if (client.isOver) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.set(client, () => {
        this.#waiting.delete(client);
        resolve();
      });
    });
  }

  #wake(): void {
    for (const wake of this.#waiting.values()) wake();
    for (const tell of this.#placing.splice(0)) tell();
  }

  #armBeat(): void {
    this.#beat ??= this.#clock.after(BEAT_MS, () => {
      this.#beat = null;
      const head = this.#tail?.window?.head ?? null;
      for (const client of this.#clients)
        client.beat(client.state === 'joined' ? head : client.position);
      if (this.#clients.size > 0) this.#armBeat();
    });
  }
}

const encoder = new TextEncoder();
const STALLED = comment('stalled: the store does not answer; it is asked again');
const RESUMED = comment('resumed: the store answers again');

/** Everything of these that a filter lets through, in one piece. Who looks at events of one session should know, too, where some are missing. */
function textFor(filter: EventFilter, items: readonly Item[]): string {
  let text = '';
  for (const { event, frame } of items) if (event === null || filter.isWanted(event)) text += frame;
  return text;
}

/** Gives a client what was read for it alone. */
function show(client: EventClient, page: EventPage): void {
  const { filter } = client;
  const frames = page.entries.filter((event) => filter.isWanted(event)).map(eventFrame);
  client.position = page.position ?? (page.gap ? BEGINNING : client.position);
  const text = (page.gap ? GAP : '') + frames.join('');
  if (text !== '') client.say(text);
}
