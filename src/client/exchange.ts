/** One request and its answer's head, or a `NoAnswerError`. */
import { ConfigError } from '../core/errors.ts';
import type { PortableClock } from '../core/portable-clock.ts';
import type { Random } from '../core/random.ts';
import { NoAnswerError } from './api-error.ts';

export type Token = string | (() => string | Promise<string>);

/** What a client is made of. */
export interface ClientParts {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: Token | undefined;
  readonly fetch: typeof fetch;
  readonly clock: PortableClock;
  readonly random: Pick<Random, 'next'>;
  /** For all attempts of a call together. */
  readonly timeoutMs: number;
  /** For one. */
  readonly attemptMs: number;
  readonly retries: number;
}

export interface Sent {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export async function send(parts: ClientParts, sent: Sent, signal: AbortSignal): Promise<Response> {
  const token = typeof parts.token === 'function' ? await parts.token() : parts.token;
  if (token !== undefined) checkToken(token);
  const { fetch } = parts;
  const { method, path, body, headers } = sent;
  return fetch(`${parts.url}${path}`, {
    method,
    signal,
    headers: {
      accept: 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    // To follow one would take the token to where it was not meant for.
    redirect: 'manual',
  }).catch(noAnswer);
}

export function withSearch(path: string, search: URLSearchParams): string {
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** `fetch` would throw for it what it throws for a server that is away, and it would be tried again in vain. */
function checkToken(token: unknown): void {
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return;
  const rule = 'it is text of printable ASCII without spaces, as the server was given it';
  throw new ConfigError({ field: 'token', value: 'a token', rule });
}

/** For a promise of an answer, or of its rest, that fails. */
export function noAnswer(cause: unknown): never {
  throw new NoAnswerError({ attempts: 1, why: whyOf(cause) }, { cause });
}

/** Of a failed `fetch` the reason is often the cause of what is thrown. */
export function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

/** Ends with whoever asked, or by itself when it has taken too long since it was last put off. */
export class Patience {
  readonly signal: AbortSignal;
  readonly #over = new AbortController();
  readonly #clock: PortableClock;
  readonly #caller: AbortSignal | undefined;
  readonly #onAbort = () => this.#over.abort(this.#caller?.reason);
  #timer: { cancel(): void } | null = null;

  constructor(clock: PortableClock, caller: AbortSignal | undefined) {
    this.signal = this.#over.signal;
    this.#clock = clock;
    this.#caller = caller;
    if (caller?.aborted) this.#onAbort();
    caller?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** From now on it lasts so long. */
  last(ms: number): void {
    this.#timer?.cancel();
    const error = new Error(`nothing came for ${Math.round(ms)} ms`);
    this.#timer = this.#clock.after(Math.max(0, ms), () => this.#over.abort(error));
  }

  end(): void {
    this.#timer?.cancel();
    this.#caller?.removeEventListener('abort', this.#onAbort);
  }
}
