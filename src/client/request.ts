/** Sends one request. Resolves with the head of the response, or throws a `NoAnswerError`. */
import { ConfigError } from '../core/errors.ts';
import type { PortableClock } from '../core/portable-clock.ts';
import type { Random } from '../core/random.ts';
import { NoAnswerError } from './api-error.ts';

export type Token = string | (() => string | Promise<string>);

/** The validated options of a client. */
export interface ClientSettings {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: Token | undefined;
  readonly fetch: typeof fetch;
  readonly clock: PortableClock;
  readonly random: Pick<Random, 'next'>;
  /** For all attempts of a call together. */
  readonly timeoutMs: number;
  /** For one attempt. */
  readonly attemptMs: number;
  readonly retries: number;
}

export interface ClientRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The response is text, not JSON. */
  readonly isText?: true;
}

export async function send(
  settings: ClientSettings,
  request: ClientRequest,
  signal: AbortSignal,
): Promise<Response> {
  const token = typeof settings.token === 'function' ? await settings.token() : settings.token;
  if (token !== undefined) checkToken(token);
  const { fetch } = settings;
  const { method, path, body } = request;
  const headers: Record<string, string> = { accept: 'application/json' };
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  Object.assign(headers, request.headers);
  return fetch(`${settings.url}${path}`, {
    method,
    signal,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    // A redirect would send the token to another server.
    redirect: 'manual',
  }).catch(throwNoAnswer);
}

export function withSearch(path: string, search: URLSearchParams): string {
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** `fetch` throws the same for an invalid header as for an unreachable server, which is retried. */
function checkToken(token: unknown): void {
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return;
  const rule = 'must be printable ASCII text without spaces, as configured on the server';
  throw new ConfigError({ field: 'token', value: 'a token', rule });
}

/** For a failed request, or a failed read of its body. */
export function throwNoAnswer(cause: unknown): never {
  throw new NoAnswerError({ attempts: 1, why: reasonOf(cause) }, { cause });
}

/** A failed `fetch` has its reason in `cause`. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}
