/**
 * A call with retries. Every call is idempotent: starting or stopping a session twice changes
 * nothing. So transient failures are retried within one time limit for all attempts: no response,
 * an incomplete one, too many requests, an unavailable server or store. Other failures are thrown
 * at once.
 */
import type { PortableClock } from '../core/portable-clock.ts';
import type { Random } from '../core/random.ts';
import { sleepOn } from '../core/sleep.ts';
import { apiErrorOf, HoldfastApiError, NoAnswerError, unexpectedAnswer } from './api-error.ts';
import {
  type ClientRequest,
  type ClientSettings,
  reasonOf,
  send,
  throwNoAnswer,
} from './request.ts';
import { TimeoutWatch } from './timeout-watch.ts';

/** Sent by a server or proxy that is overloaded or unavailable. */
const TRANSIENT_STATUSES = new Set([429, 502, 503, 504]);
/** A pause is random between 0 and a limit, which doubles up to the maximum. */
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5_000;

export function isTransient(error: unknown): boolean {
  return error instanceof HoldfastApiError
    ? TRANSIENT_STATUSES.has(error.status)
    : error instanceof NoAnswerError;
}

export function retryAfterOf(error: unknown): number {
  return (error instanceof HoldfastApiError && error.retryAfterMs) || 0;
}

/** Full jitter, so that clients that failed together do not retry together. */
export function backoffMs(
  failures: number,
  random: Pick<Random, 'next'>,
  firstMs = FIRST_PAUSE_MS,
): number {
  return random.next() * Math.min(MAX_PAUSE_MS, firstMs * 2 ** Math.min(failures - 1, 30));
}

/** Resolves with the JSON of the response. */
export async function call(
  settings: ClientSettings,
  request: ClientRequest,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { clock, random, retries } = settings;
  const untilMs = clock.monotonicMs() + settings.timeoutMs;
  for (let attempts = 1; ; attempts++) {
    signal?.throwIfAborted();
    const leftMs = untilMs - clock.monotonicMs();
    try {
      return await attempt(settings, request, signal, Math.min(settings.attemptMs, leftMs));
    } catch (error) {
      signal?.throwIfAborted();
      const pauseMs = retryAfterOf(error) + backoffMs(attempts, random);
      // A retry after the time limit would be useless, so the call fails now.
      const isTooLate = clock.monotonicMs() + pauseMs >= untilMs;
      if (!isTransient(error) || attempts > retries || isTooLate)
        throw withAttempts(error, attempts);
      await sleepOn(clock, pauseMs, signal);
    }
  }
}

function withAttempts(error: unknown, attempts: number): unknown {
  if (!(error instanceof NoAnswerError)) return error;
  const { cause } = error;
  return new NoAnswerError({ attempts, why: reasonOf(cause) }, { cause });
}

async function attempt(
  settings: ClientSettings,
  request: ClientRequest,
  signal: AbortSignal | undefined,
  withinMs: number,
): Promise<unknown> {
  const timeout = new TimeoutWatch(settings.clock, signal);
  timeout.restart(withinMs);
  try {
    const response = await send(settings, request, timeout.signal);
    const text = await response.text().catch(throwNoAnswer);
    if (!response.ok) throw refusalFrom(response, text, settings.clock);
    if (request.isText === true) return text;
    return response.status === 204 ? null : jsonOf(text, response.status);
  } finally {
    timeout.end();
  }
}

export function refusalFrom(
  response: Response,
  text: string,
  clock: PortableClock,
): HoldfastApiError {
  return apiErrorOf(response.status, text, retryAfterMs(response.headers, clock));
}

/** The text is complete: an incomplete response fails earlier. */
export function jsonOf(text: string, status: number): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unexpectedAnswer(status);
  }
}

/** `Retry-After` is in seconds, or a date. */
function retryAfterMs(headers: Headers, clock: PortableClock): number | null {
  const text = headers.get('retry-after');
  if (text === null) return null;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - clock.wallMs();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}
