/**
 * One call, asked as often as it takes. That is safe for all there are: to start or stop what was started or stopped before changes
 * nothing. So whatever may pass is tried again, within one time limit for all attempts: no answer, one that broke off, too many
 * requests, a server or a store that is away. What will not get better by waiting is thrown at once.
 */
import type { PortableClock } from '../core/portable-clock.ts';
import { sleepOn } from '../core/sleep.ts';
import { apiErrorOf, HoldfastApiError, NoAnswerError, unexpectedAnswer } from './api-error.ts';
import { backoffMs } from './backoff.ts';
import { type ClientParts, noAnswer, Patience, type Sent, send, whyOf } from './exchange.ts';

/** What a server, or somebody before it, says while it is away or has too much to do. */
const PASSING = new Set([429, 502, 503, 504]);

export function mayPass(error: unknown): boolean {
  return error instanceof HoldfastApiError
    ? PASSING.has(error.status)
    : error instanceof NoAnswerError;
}

export function waitAdvisedMs(error: unknown): number {
  return (error instanceof HoldfastApiError && error.retryAfterMs) || 0;
}

/** What the server says to it, as JSON. */
export async function call(
  parts: ClientParts,
  sent: Sent,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { clock, random, retries } = parts;
  const untilMs = clock.monotonicMs() + parts.timeoutMs;
  for (let attempts = 1; ; attempts++) {
    signal?.throwIfAborted();
    const leftMs = untilMs - clock.monotonicMs();
    try {
      return await attempt(parts, sent, signal, Math.min(parts.attemptMs, leftMs));
    } catch (error) {
      signal?.throwIfAborted();
      const pauseMs = waitAdvisedMs(error) + backoffMs(attempts, random);
      // Whoever can be asked only when the time is over need not be waited for.
      const isTooLate = clock.monotonicMs() + pauseMs >= untilMs;
      if (!mayPass(error) || attempts > retries || isTooLate) throw counted(error, attempts);
      await sleepOn(clock, pauseMs, signal);
    }
  }
}

function counted(error: unknown, attempts: number): unknown {
  if (!(error instanceof NoAnswerError)) return error;
  const { cause } = error;
  return new NoAnswerError({ attempts, why: whyOf(cause) }, { cause });
}

async function attempt(
  parts: ClientParts,
  sent: Sent,
  signal: AbortSignal | undefined,
  withinMs: number,
): Promise<unknown> {
  const patience = new Patience(parts.clock, signal);
  patience.last(withinMs);
  try {
    const response = await send(parts, sent, patience.signal);
    const text = await response.text().catch(noAnswer);
    if (!response.ok) throw refusalOf(response, text, parts.clock);
    return parsed(response, text);
  } finally {
    patience.end();
  }
}

export function refusalOf(
  response: Response,
  text: string,
  clock: PortableClock,
): HoldfastApiError {
  return apiErrorOf(response.status, text, retryAfterMs(response.headers, clock));
}

function parsed({ status }: Response, text: string): unknown {
  if (status === 204) return null;
  try {
    return JSON.parse(text);
  } catch {
    // Whole, and not of our server: an answer that broke off has failed before this.
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
