/**
 * Streams events to all clients of this process, behind one tail of the log: a thousand clients
 * cost the store as much as one.
 *
 * The tail runs from the first client until some seconds after the last. It keeps the latest events
 * in a cache. Each client starts at a position of its choice and is **behind**: it gets pages from
 * the cache, or from the store where the cache does not reach back so far. When the cache has no
 * more for it, it **joins** in the same step: from then on the tail sends it every new page. So no
 * event is lost or sent twice, and no two positions are ever compared.
 *
 * A client may be further than the tail, which reads when it is hinted at. Such a client waits for
 * the tail's next page.
 */
import type { Clock, Timer } from '../../core/clock.ts';
import type { EventLog, EventPage, FollowedPage } from '../../telemetry/event-log.ts';
import type { Caller } from '../http/route.ts';
import { ClientSet, type StreamOptions } from './client-set.ts';
import { BEGINNING, EventCache, type Item } from './event-cache.ts';
import type { EventFilter } from './event-filter.ts';
import { CATCH_UP_PAGE, LogReader } from './log-reader.ts';
import { commentFrame, eventFrame, GAP, positionFrame } from './sse-frames.ts';
import { StreamClient, type StreamClientOptions } from './stream-client.ts';

/** Clients reconnect after a second, so the tail outlives the last client by this much. */
const LINGER_MS = 5_000;
/**
 * After a page the tail pauses this long for each client that it wrote to, and later events share
 * the next page: a write to a thousand clients takes some 30 ms of CPU, however small it is.
 */
const PAUSE_PER_WRITE_MS = 0.1;

export interface Watching {
  readonly filter: EventFilter;
  readonly caller: Caller;
  /** The client gets events after this position, or from the `BEGINNING`; null: from now on. */
  readonly position: string | null;
  /** Ends the stream: the client closes the connection, or the server closes. */
  readonly signal: AbortSignal;
}

/** One run of the tail, from the first client to the last. */
interface Tail {
  readonly end: AbortController;
  /** Null until the end of the log is known. */
  cache: EventCache | null;
  isStalled: boolean;
}

/** Clients with equal filters. Each page is encoded once for all of them. */
interface Audience {
  readonly filter: EventFilter;
  readonly clients: Set<EventClient>;
}

/**
 * A client that watches events.
 *
 * **Behind.** In: it connected. Out: the cache has no more for it → joined.
 *
 * **Joined.** In: it has every event that the tail has read. Out: it ends, as every stream does.
 */
class EventClient extends StreamClient {
  readonly filter: EventFilter;
  /** The position up to which it has events, while it is behind; null: wait for the tail's. */
  position: string | null;
  #hasJoined = false;

  constructor(
    clock: Clock,
    options: StreamClientOptions,
    { filter, position }: Pick<Watching, 'filter' | 'position'>,
  ) {
    super(clock, options);
    this.filter = filter;
    this.position = position;
  }

  get state(): 'behind' | 'joined' | 'ended' {
    if (this.isEnded) return 'ended';
    return this.#hasJoined ? 'joined' : 'behind';
  }

  join(): void {
    this.#hasJoined = true;
  }
}

export class EventStream {
  readonly #log: Pick<EventLog, 'pages' | 'read'>;
  readonly #clock: Clock;
  readonly #reader: LogReader;
  readonly #clients: ClientSet<EventClient>;
  readonly #audiences = new Map<string, Audience>();
  /** Clients that wait for the tail's next page. */
  readonly #waiting = new Map<EventClient, () => void>();
  /** Callers of `untilPositioned`. */
  #positioning: (() => void)[] = [];
  #tail: Tail | null = null;
  #linger: Timer | null = null;

  constructor(log: Pick<EventLog, 'pages' | 'read'>, clock: Clock, options: StreamOptions = {}) {
    this.#log = log;
    this.#clock = clock;
    this.#clients = new ClientSet(clock, options, 'events', (client) =>
      client.state === 'joined' ? (this.#tail?.cache?.head ?? null) : client.position,
    );
    this.#reader = new LogReader(log);
  }

  /** The number of clients. */
  get size(): number {
    return this.#clients.size;
  }

  /** Whether the tail runs. */
  get isFollowing(): boolean {
    return this.#tail !== null;
  }

  /** The stream for a new client. Throws a problem where there are too many clients. */
  watch({ filter, caller, position, signal }: Watching): ReadableStream<Uint8Array> {
    this.#clients.enter(caller.tokenId);
    const onAbort = () => client.end('closing');
    const onEnd = () => {
      signal.removeEventListener('abort', onAbort);
      this.#remove(client);
    };
    const maxQueuedBytes = this.#clients.queuedBytes;
    const client = new EventClient(
      this.#clock,
      { caller, maxQueuedBytes, onEnd },
      { filter, position },
    );
    this.#clients.add(client);
    signal.addEventListener('abort', onAbort, { once: true });
    client.start();
    if (signal.aborted) onAbort();
    const tail = this.#follow();
    if (tail.isStalled) client.sendText(STALLED);
    this.#catchUp(client, tail).catch(() => client.end('failed'));
    return client.stream;
  }

  /**
   * Resolves when the tail knows the end of the log, or cannot read the store now. A client that
   * began at the end gets every event from then on.
   */
  untilPositioned(): Promise<void> {
    const tail = this.#tail;
    if (tail === null || tail.cache !== null || tail.isStalled) return Promise.resolve();
    return new Promise((resolve) => this.#positioning.push(resolve));
  }

  /** Ends all streams, and admits no more clients. */
  close(): void {
    this.#clients.close();
    this.#endTail();
  }

  #remove(client: EventClient): void {
    this.#clients.remove(client);
    this.#waiting.get(client)?.();
    const audience = this.#audiences.get(client.filter.key);
    if (audience?.clients.delete(client) && audience.clients.size === 0)
      this.#audiences.delete(client.filter.key);
    this.#clients.leave(client.tokenId);
    if (this.#clients.size > 0) return;
    this.#linger ??= this.#clock.after(LINGER_MS, () => this.#endTail());
  }

  #follow(): Tail {
    this.#linger?.cancel();
    this.#linger = null;
    if (this.#tail !== null) return this.#tail;
    const tail: Tail = { end: new AbortController(), cache: null, isStalled: false };
    this.#tail = tail;
    this.#run(tail).catch(() => {
      // `pages` survives every failure of the store. If it fails, clients must not wait for it.
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
    for await (const followed of this.#log.pages({ from: 'now', signal })) {
      if (signal.aborted) return;
      const writes = this.#distribute(tail, followed);
      this.#wake();
      const pauseMs = writes * PAUSE_PER_WRITE_MS;
      if (pauseMs >= 1) await this.#clock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  /** Sends what the tail has read to joined clients, and returns the number of writes. */
  #distribute(tail: Tail, followed: FollowedPage): number {
    if (followed.kind !== 'page') {
      tail.isStalled = followed.kind === 'stalled';
      for (const client of this.#clients) client.sendText(tail.isStalled ? STALLED : RESUMED);
      return this.#clients.size;
    }
    tail.cache ??= new EventCache(followed.after ?? BEGINNING);
    const added = tail.cache.add(followed.page);
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

  /** Brings a client from its position to the tail's. */
  async #catchUp(client: EventClient, tail: Tail): Promise<void> {
    while (client.state === 'behind') {
      await client.untilRoom();
      if (this.#sendFromCache(client, tail)) continue;
      if (client.position === null) {
        await this.#nextPage(client);
        continue;
      }
      // A failed read is repeated when the tail can read again.
      const page = await this.#reader.read(client.position).catch(() => null);
      if (client.isEnded) return;
      if (page !== null) sendPage(client, page);
      if (page?.more !== true && !this.#sendFromCache(client, tail)) await this.#nextPage(client);
    }
  }

  /**
   * Sends the next items of the cache, and lets the client join where they are the last. False
   * where the cache does not know the client's position.
   */
  #sendFromCache(client: EventClient, { cache }: Tail): boolean {
    if (cache === null || client.state !== 'behind') return false;
    client.position ??= cache.head;
    const next = cache.after(client.position, CATCH_UP_PAGE);
    if (next === null) return false;
    if (next.more) client.position = next.items.at(-1)?.event?.position ?? client.position;
    else client.position = cache.head;
    client.sendText(textFor(client.filter, next.items) || positionFrame(client.position));
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

  /** Resolves when the tail has read again, or the client has ended. */
  #nextPage(client: EventClient): Promise<void> {
    if (client.isEnded) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.set(client, () => {
        this.#waiting.delete(client);
        resolve();
      });
    });
  }

  #wake(): void {
    for (const wake of this.#waiting.values()) wake();
    for (const resolve of this.#positioning.splice(0)) resolve();
  }
}

const encoder = new TextEncoder();
const STALLED = commentFrame('stalled: the store does not answer; the server retries');
const RESUMED = commentFrame('resumed: the store answers again');

/** The frames that a filter passes, as one text. Gaps pass every filter. */
function textFor(filter: EventFilter, items: readonly Item[]): string {
  let text = '';
  for (const { event, frame } of items) if (event === null || filter.passes(event)) text += frame;
  return text;
}

/** Sends a page that was read for this client. */
function sendPage(client: EventClient, page: EventPage): void {
  const { filter } = client;
  const frames = page.entries.filter((event) => filter.passes(event)).map(eventFrame);
  client.position = page.position ?? (page.gap ? BEGINNING : client.position);
  const text = (page.gap ? GAP : '') + frames.join('');
  if (text !== '') client.sendText(text);
}
