import { HoldfastError } from '../core/errors.ts';
import { spanOf } from '../core/time-text.ts';
import type { FieldError } from './messages.ts';

export interface ApiErrorFacts {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly errors: readonly FieldError[];
  readonly retryAfterMs: number | null;
}

/** The server answered with an error. `type` and `code` are stable; `detail` is for people. */
export class HoldfastApiError extends HoldfastError {
  readonly code: string;
  readonly status: number;
  /** The URL of a page that explains the problem. */
  readonly type: string;
  readonly detail: string;
  /** The wrong fields of the request, and the rule that each breaks. */
  readonly errors: readonly FieldError[];
  /** A retry before this time fails again. Null where the server does not say. */
  readonly retryAfterMs: number | null;

  constructor({ status, type, code, title, detail, errors, retryAfterMs }: ApiErrorFacts) {
    const fields = errors
      .filter(({ rule }) => !detail.includes(rule))
      .map(({ field, rule }) => ` ${field}: ${rule}.`)
      .join('');
    super(`${title} (${code}, ${status}): ${detail}${fields}`);
    this.code = code;
    this.status = status;
    this.type = type;
    this.detail = detail;
    this.errors = errors;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The server did not answer any attempt. The request may have been accepted. A retry is safe. */
export class NoAnswerError extends HoldfastError {
  readonly code = 'NO_ANSWER';
  readonly attempts: number;

  constructor({ attempts, why }: { attempts: number; why: string }, options?: ErrorOptions) {
    const times = attempts === 1 ? 'once' : `${attempts} times`;
    super(
      `the server did not answer (tried ${times}): ${why}. ` +
        'Check the url and that the server runs. The request may have been carried out; it is safe to send the same one again.',
      options,
    );
    this.attempts = attempts;
  }
}

/** The session did not reach the state in time. It may still do so. */
export class WaitedError extends HoldfastError {
  readonly code = 'WAITED';
  readonly sessionId: string;
  /** The last known state; null if the server never answered. */
  readonly state: string | null;

  constructor(facts: { sessionId: string; until: string; state: string | null; afterMs: number }) {
    super(
      `waited ${spanOf(facts.afterMs)} for session '${facts.sessionId}' to be ${facts.until}: it is ${facts.state ?? 'in a state that the server did not tell'}. ` +
        "It may get there yet. Wait longer (timeout), or read the log of its worker ('holdfast sessions get' names it).",
    );
    this.sessionId = facts.sessionId;
    this.state = facts.state;
  }
}

/** The error for a response. Its body is a problem (RFC 9457), unless a proxy answered. */
export function apiErrorOf(
  status: number,
  body: string,
  retryAfterMs: number | null,
): HoldfastApiError {
  const problem = parse(body);
  const text = (name: string, otherwise: string) => {
    const value = problem[name];
    return typeof value === 'string' ? value : otherwise;
  };
  return new HoldfastApiError({
    status,
    retryAfterMs,
    type: text('type', 'about:blank'),
    code: text('code', 'UNEXPECTED_ANSWER'),
    title: text('title', 'Unexpected response'),
    detail: text(
      'detail',
      'The response is not from a Holdfast server. Check the url and any proxy in between.',
    ),
    errors: Array.isArray(problem.errors) ? problem.errors.filter(isFieldError) : [],
  });
}

/** The response is not from a Holdfast server. */
export function unexpectedAnswer(status: number): HoldfastApiError {
  return apiErrorOf(status, '', null);
}

function parse(body: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function isFieldError(value: unknown): value is FieldError {
  const { field, rule } = (value ?? {}) as Record<string, unknown>;
  return typeof field === 'string' && typeof rule === 'string';
}
