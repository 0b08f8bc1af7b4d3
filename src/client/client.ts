import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { type PortableClock, portableClock, portableRandom } from '../core/portable-clock.ts';
import type { Random } from '../core/random.ts';
import { sleepOn } from '../core/sleep.ts';
import { HoldfastApiError, WaitedError } from './api-error.ts';
import { call, isTransient } from './calls.ts';
import { feed } from './event-feed.ts';
import type {
  AcceptedIntent,
  ApiSession,
  BatchResult,
  EventsQuery,
  FollowedEvent,
  RunSession,
  SessionState,
  SessionsPage,
  SessionsQuery,
  StartKindRequest,
  StartRequest,
  StartVodRequest,
  StoppedKey,
  StopRequest,
} from './messages.ts';
import { type ClientSettings, type Token, withSearch } from './request.ts';

export interface ClientOptions {
  /** The address of the server: `http://127.0.0.1:4747`, with the path it is mounted at. */
  url: string;
  /** A token, or a function that is called before every request, for tokens that change. */
  token?: Token;
  /** Default the runtime's own. */
  fetch?: typeof fetch;
  /** The time limit of a call with all its retries; default 30 s. */
  timeout?: Duration;
  /** The time limit of one attempt; default a third of `timeout`. */
  attemptTimeout?: Duration;
  /** The maximum number of retries; default 5. */
  retries?: number;
  clock?: PortableClock;
  random?: Pick<Random, 'next'>;
}

export interface CallOptions {
  /** Aborts the call, which rejects with the signal's reason. The server may have accepted it. */
  readonly signal?: AbortSignal | undefined;
}

export interface WaitOptions extends CallOptions {
  readonly until: 'RUNNING' | 'ENDED';
  /** The maximum time to wait; default a minute. */
  readonly timeout?: Duration | undefined;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 5;
const MAX_RETRIES = 100;
const DEFAULT_WAIT_MS = 60_000;
/** What the server accepts in one request. */
const MAX_BATCH = 100;
const MAX_BATCH_BYTES = 16_000;
/** The polling interval of `waitFor` doubles from the minimum to the maximum. */
const MIN_WAIT_POLL_MS = 100;
const MAX_WAIT_POLL_MS = 2_000;

/** A client of a Holdfast server. Calls are idempotent and retried: see `calls.ts`. */
export class HoldfastClient {
  readonly #settings: ClientSettings;

  constructor(options: ClientOptions) {
    this.#settings = settingsOf(options);
  }

  /** Starts a channel, or joins its session if it runs already. `waitFor` waits for the outcome. */
  start(request: StartRequest, options: CallOptions = {}): Promise<AcceptedIntent> {
    return this.#submit({ type: 'stream.start', ...request }, options);
  }

  /** Plays a recording. */
  startVod(request: StartVodRequest, options: CallOptions = {}): Promise<AcceptedIntent> {
    return this.#submit({ type: 'vod.start', ...request }, options);
  }

  /** Starts a session of a declared kind, or finds the one that the same request started. */
  startKind(request: StartKindRequest, options: CallOptions = {}): Promise<AcceptedIntent> {
    return this.#submit({ type: 'start', ...request }, options);
  }

  /**
   * Starts many sessions of declared kinds, in as few requests as possible. Each start is accepted
   * or refused for itself: the results are in the order of the starts.
   */
  async startAll(
    requests: readonly StartKindRequest[],
    { signal }: CallOptions = {},
  ): Promise<BatchResult[]> {
    const path = '/api/v3/intents/batch';
    const results: BatchResult[] = [];
    for (const starts of batchesOf(requests)) {
      const sent = { method: 'POST', path, body: { starts } } as const;
      const reply = (await call(this.#settings, sent, signal)) as { results: BatchResult[] };
      results.push(...reply.results);
    }
    return results;
  }

  /**
   * Tells that this client no longer needs the open sessions of a kind with this key. Each ends
   * when
   * no client needs it. Throws `NOT_FOUND` if there is none.
   */
  stopKey(kind: string, key: string, options: StopRequest & CallOptions = {}): Promise<StoppedKey> {
    const { signal, ...request } = options;
    const body = { type: 'stop', kind, key, ...request };
    const sent = { method: 'POST', path: '/api/v3/intents', body } as const;
    return call(this.#settings, sent, signal) as Promise<StoppedKey>;
  }

  /** Tells that this client no longer needs the session. It ends when no client needs it. */
  stop(sessionId: string, options: StopRequest & CallOptions = {}): Promise<AcceptedIntent> {
    const { signal, ...request } = options;
    return this.#submit({ type: 'stream.stop', sessionId, ...request }, { signal });
  }

  /** Null where there is no such session. */
  async session(id: string, { signal }: CallOptions = {}): Promise<ApiSession | null> {
    try {
      return await this.#read(id, this.#settings, signal);
    } catch (error) {
      if (error instanceof HoldfastApiError && error.code === 'NOT_FOUND') return null;
      throw error;
    }
  }

  /** All sessions, the latest first, over as many pages as needed. */
  async *sessions(
    query: SessionsQuery & CallOptions = {},
  ): AsyncGenerator<ApiSession, void, undefined> {
    const { kind, key, state, limit, signal } = query;
    const search = new URLSearchParams();
    if (kind !== undefined) search.set('kind', kind);
    if (key !== undefined) search.set('key', key);
    for (const each of [state ?? []].flat()) search.append('state', each);
    if (limit !== undefined) search.set('limit', String(limit));
    let page: SessionsPage;
    do {
      const path = withSearch('/api/v3/sessions', search);
      page = (await call(this.#settings, { method: 'GET', path }, signal)) as SessionsPage;
      yield* page.sessions;
      search.set('cursor', page.cursor ?? '');
    } while (page.cursor !== undefined);
  }

  /**
   * Resolves with the session when it is in that state or has ended: check its `state`. Throws
   * `WAITED` after the timeout. While the server is unavailable, it keeps trying until then.
   */
  async waitFor(id: string, { until, signal, timeout }: WaitOptions): Promise<RunSession> {
    const { clock, random } = this.#settings;
    const withinMs = durationMs(timeout ?? DEFAULT_WAIT_MS, 'timeout');
    const startMs = clock.monotonicMs();
    let state: SessionState | null = null;
    for (let polls = 0; ; polls++) {
      const leftMs = withinMs - (clock.monotonicMs() - startMs);
      const timeoutMs = Math.min(this.#settings.timeoutMs, leftMs);
      const session = await this.#read(id, { ...this.#settings, timeoutMs }, signal).catch(
        nullIfTransient,
      );
      if (session !== null && !('state' in session)) {
        const rule = 'is a target, which no intent started: a target does not end';
        throw new ConfigError({ field: 'id', value: id, rule });
      }
      state = session?.state ?? state;
      if (session !== null && (state === until || state === 'ENDED')) return session;
      const maxMs = Math.min(MAX_WAIT_POLL_MS, MIN_WAIT_POLL_MS * 2 ** Math.min(polls, 10));
      const pauseMs = maxMs * (0.5 + random.next() / 2);
      const afterMs = clock.monotonicMs() - startMs;
      if (afterMs + pauseMs > withinMs)
        throw new WaitedError({ sessionId: id, until, state, afterMs });
      await sleepOn(clock, pauseMs, signal);
    }
  }

  /**
   * Events as they happen, until the signal fires. The client reconnects automatically and
   * continues where it was. To continue after a restart of your program, store the `position` of
   * the last event and pass it as `after`.
   */
  events(query: EventsQuery = {}): AsyncGenerator<FollowedEvent, void, undefined> {
    return feed(this.#settings, query);
  }

  #submit(body: object, { signal }: CallOptions): Promise<AcceptedIntent> {
    const sent = { method: 'POST', path: '/api/v3/intents', body } as const;
    return call(this.#settings, sent, signal) as Promise<AcceptedIntent>;
  }

  #read(
    id: string,
    settings: ClientSettings,
    signal: AbortSignal | undefined,
  ): Promise<ApiSession> {
    const path = `/api/v3/sessions/${encodeURIComponent(id)}`;
    return call(settings, { method: 'GET', path }, signal) as Promise<ApiSession>;
  }
}

/** Starts that fit into one request each. A start that is too large is sent alone, and refused. */
function* batchesOf(requests: readonly StartKindRequest[]): Generator<object[], void> {
  const encoder = new TextEncoder();
  let batch: object[] = [];
  let bytes = 0;
  for (const request of requests) {
    const start = { type: 'start', ...request };
    const size = encoder.encode(JSON.stringify(start)).length + 1;
    if (batch.length === MAX_BATCH || (batch.length > 0 && bytes + size > MAX_BATCH_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(start);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Validates the options. */
export function settingsOf(options: ClientOptions): ClientSettings {
  const { timeout = DEFAULT_TIMEOUT_MS, retries = DEFAULT_RETRIES, token } = options;
  const timeoutMs = durationMs(timeout, 'timeout');
  const { attemptTimeout = timeoutMs / 3 } = options;
  if (!Number.isInteger(retries) || retries < 0 || retries > MAX_RETRIES) {
    const rule = `must be a whole number from 0 to ${MAX_RETRIES}`;
    throw new ConfigError({ field: 'retries', value: retries, rule });
  }
  return {
    url: baseOf(options.url),
    token,
    timeoutMs,
    retries,
    attemptMs: durationMs(attemptTimeout, 'attemptTimeout'),
    // Looked up for each request: a test or a tracer may replace it.
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    clock: options.clock ?? portableClock,
    random: options.random ?? portableRandom,
  };
}

/** Null for a transient failure; throws others again. */
function nullIfTransient(error: unknown): null {
  if (isTransient(error)) return null;
  throw error;
}

function baseOf(url: unknown): string {
  const rule =
    'must be the http or https address of a server, without credentials, query and fragment';
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : null;
  const isPlain = parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.username === '';
  if (!isPlain || parsed.password !== '' || parsed.search !== '' || parsed.hash !== '')
    throw new ConfigError({ field: 'url', value: parsed === null ? url : parsed.origin, rule });
  return parsed.href.replace(/\/+$/, '');
}
