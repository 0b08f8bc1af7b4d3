import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { type PortableClock, portableClock, portableRandom } from '../core/portable-clock.ts';
import type { Random } from '../core/random.ts';
import { sleepOn } from '../core/sleep.ts';
import { HoldfastApiError, WaitedError } from './api-error.ts';
import { call, mayPass } from './calls.ts';
import { feed } from './event-feed.ts';
import { type ClientParts, type Token, withSearch } from './exchange.ts';
import type {
  AcceptedIntent,
  ApiSession,
  EventsQuery,
  FollowedEvent,
  RunSession,
  SessionState,
  SessionsPage,
  SessionsQuery,
  StartRequest,
  StartVodRequest,
  StopRequest,
} from './messages.ts';

export interface ClientOptions {
  /** Where the server is: `http://127.0.0.1:4747`, or where it is mounted in another. */
  url: string;
  /** Or what gives one, asked before every request: tokens may change. */
  token?: Token;
  /** Default the one of this runtime. */
  fetch?: typeof fetch;
  /** How long a call may take in all, however often it is tried; default 30 s. */
  timeout?: Duration;
  /** How long one attempt may take; default a third of that. */
  attemptTimeout?: Duration;
  /** How often a call is tried again at most; default 5. */
  retries?: number;
  clock?: PortableClock;
  random?: Pick<Random, 'next'>;
}

export interface CallOptions {
  /** Ends the call; it then rejects with the signal's reason. What was asked for may have been accepted. */
  readonly signal?: AbortSignal | undefined;
}

export interface WaitOptions extends CallOptions {
  readonly until: 'RUNNING' | 'ENDED';
  /** How long to wait at most; default a minute. */
  readonly timeout?: Duration | undefined;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 5;
const MOST_RETRIES = 100;
const DEFAULT_WAIT_MS = 60_000;
/** How long until `waitFor` looks again: doubles from the first to the second. */
const LOOK_FIRST_MS = 100;
const LOOK_MOST_MS = 2_000;

/** Asks a Holdfast server. Every call may be repeated, and is, where that helps: `calls.ts` says when. */
export class HoldfastClient {
  readonly #parts: ClientParts;

  constructor(options: ClientOptions) {
    this.#parts = clientParts(options);
  }

  /** Has a channel run, or finds that it was started already. What comes of it shows in the session: `waitFor`. */
  start(request: StartRequest, options: CallOptions = {}): Promise<AcceptedIntent> {
    return this.#submit({ type: 'stream.start', ...request }, options);
  }

  /** Plays a recording. */
  startVod(request: StartVodRequest, options: CallOptions = {}): Promise<AcceptedIntent> {
    return this.#submit({ type: 'vod.start', ...request }, options);
  }

  /** Says that a session is not needed any more. It ends when the last one says so. */
  stop(sessionId: string, options: StopRequest & CallOptions = {}): Promise<AcceptedIntent> {
    const { signal, ...request } = options;
    return this.#submit({ type: 'stream.stop', sessionId, ...request }, { signal });
  }

  /** Null where there is none. */
  async session(id: string, { signal }: CallOptions = {}): Promise<ApiSession | null> {
    try {
      return await this.#read(id, this.#parts, signal);
    } catch (error) {
      if (error instanceof HoldfastApiError && error.code === 'NOT_FOUND') return null;
      throw error;
    }
  }

  /** All there are, the latest first, however many pages that takes. */
  async *sessions(
    query: SessionsQuery & CallOptions = {},
  ): AsyncGenerator<ApiSession, void, undefined> {
    const { kind, state, limit, signal } = query;
    const search = new URLSearchParams();
    if (kind !== undefined) search.set('kind', kind);
    for (const each of [state ?? []].flat()) search.append('state', each);
    if (limit !== undefined) search.set('limit', String(limit));
    let page: SessionsPage;
    do {
      const path = withSearch('/api/v3/sessions', search);
      page = (await call(this.#parts, { method: 'GET', path }, signal)) as SessionsPage;
      yield* page.sessions;
      search.set('cursor', page.cursor ?? '');
    } while (page.cursor !== undefined);
  }

  /**
   * The session once it is in that state, or has ended: look at its `state`. Throws `WAITED` when it takes too long. While the
   * server is away it goes on trying until then.
   */
  async waitFor(id: string, { until, signal, timeout }: WaitOptions): Promise<RunSession> {
    const { clock, random } = this.#parts;
    const withinMs = durationMs(timeout ?? DEFAULT_WAIT_MS, 'timeout');
    const startMs = clock.monotonicMs();
    let state: SessionState | null = null;
    for (let looks = 0; ; looks++) {
      const leftMs = withinMs - (clock.monotonicMs() - startMs);
      const timeoutMs = Math.min(this.#parts.timeoutMs, leftMs);
      const session = await this.#read(id, { ...this.#parts, timeoutMs }, signal).catch(passed);
      if (session?.kind === 'poll') {
        const rule = 'it is polled, and was not started by an intent: it does not end';
        throw new ConfigError({ field: 'id', value: id, rule });
      }
      state = session?.state ?? state;
      if (session !== null && (state === until || state === 'ENDED')) return session;
      const mostMs = Math.min(LOOK_MOST_MS, LOOK_FIRST_MS * 2 ** Math.min(looks, 10));
      const pauseMs = mostMs * (0.5 + random.next() / 2);
      const afterMs = clock.monotonicMs() - startMs;
      if (afterMs + pauseMs > withinMs)
        throw new WaitedError({ sessionId: id, until, state, afterMs });
      await sleepOn(clock, pauseMs, signal);
    }
  }

  /**
   * What happens, as it happens, until the signal fires. Who is cut off is connected again, and goes on where it was. To go on after
   * a restart of your own, keep the `position` of the last event, and give it as `after`.
   */
  events(query: EventsQuery = {}): AsyncGenerator<FollowedEvent, void, undefined> {
    return feed(this.#parts, query);
  }

  #submit(body: object, { signal }: CallOptions): Promise<AcceptedIntent> {
    const sent = { method: 'POST', path: '/api/v3/intents', body } as const;
    return call(this.#parts, sent, signal) as Promise<AcceptedIntent>;
  }

  #read(id: string, parts: ClientParts, signal: AbortSignal | undefined): Promise<ApiSession> {
    const path = `/api/v3/sessions/${encodeURIComponent(id)}`;
    return call(parts, { method: 'GET', path }, signal) as Promise<ApiSession>;
  }
}

/** What a client is made of, if the options make sense. */
export function clientParts(options: ClientOptions): ClientParts {
  const { timeout = DEFAULT_TIMEOUT_MS, retries = DEFAULT_RETRIES, token } = options;
  const timeoutMs = durationMs(timeout, 'timeout');
  const { attemptTimeout = timeoutMs / 3 } = options;
  if (!Number.isInteger(retries) || retries < 0 || retries > MOST_RETRIES) {
    const rule = `it is a whole number from 0 to ${MOST_RETRIES}`;
    throw new ConfigError({ field: 'retries', value: retries, rule });
  }
  return {
    url: baseOf(options.url),
    token,
    timeoutMs,
    retries,
    attemptMs: durationMs(attemptTimeout, 'attemptTimeout'),
    // Looked up when it is needed: a test or a tracer may have put another in its place.
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    clock: options.clock ?? portableClock,
    random: options.random ?? portableRandom,
  };
}

/** Null for what may pass, else thrown again. */
function passed(error: unknown): null {
  if (mayPass(error)) return null;
  throw error;
}

function baseOf(url: unknown): string {
  const rule =
    'it is the http or https address of a server, without credentials, query and fragment';
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : null;
  const isPlain = parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.username === '';
  if (!isPlain || parsed.password !== '' || parsed.search !== '' || parsed.hash !== '')
    throw new ConfigError({ field: 'url', value: parsed === null ? url : parsed.origin, rule });
  return parsed.href.replace(/\/+$/, '');
}
