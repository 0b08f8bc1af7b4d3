import { HoldfastError } from '../core/errors.ts';
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

/** The server has answered, and it is no success. `type` and `code` are stable: go by them, and show `detail` to people. */
export class HoldfastApiError extends HoldfastError {
  readonly code: string;
  readonly status: number;
  /** A URL with a page about it. */
  readonly type: string;
  readonly detail: string;
  /** What is wrong with which field of the request. */
  readonly errors: readonly FieldError[];
  /** Asking sooner is no use. Null where the server does not say. */
  readonly retryAfterMs: number | null;

  constructor({ status, type, code, title, detail, errors, retryAfterMs }: ApiErrorFacts) {
    const fields = errors.map(({ field, rule }) => ` ${field}: ${rule}.`).join('');
    super(`${title} (${code}, ${status}): ${detail}${fields}`);
    this.code = code;
    this.status = status;
    this.type = type;
    this.detail = detail;
    this.errors = errors;
    this.retryAfterMs = retryAfterMs;
  }
}

/** No answer came, however often it was asked: it may have been accepted, or not. To ask for the same again is safe. */
export class NoAnswerError extends HoldfastError {
  readonly code = 'NO_ANSWER';
  readonly attempts: number;

  constructor({ attempts, why }: { attempts: number; why: string }, options?: ErrorOptions) {
    const times = attempts === 1 ? 'once' : `${attempts} times`;
    super(
      `the server was asked ${times}, and did not answer: ${why}. ` +
        'Check that it runs and that the url is right; to ask for the same again is safe.',
      options,
    );
    this.attempts = attempts;
  }
}

/** The session did not get there in time; it may yet. */
export class WaitedError extends HoldfastError {
  readonly code = 'WAITED';
  readonly sessionId: string;
  /** As it was last seen; null if the server never said. */
  readonly state: string | null;

  constructor(facts: { sessionId: string; until: string; state: string | null; afterMs: number }) {
    super(
      `session '${facts.sessionId}' is not ${facts.until} after ${Math.round(facts.afterMs)} ms: it is ${facts.state ?? 'not known what it is'}. ` +
        'Wait longer (timeout), or see what its worker does.',
    );
    this.sessionId = facts.sessionId;
    this.state = facts.state;
  }
}

/** A problem as RFC 9457 has it, if the body is one; whatever stands between us and the server may answer, too. */
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
    title: text('title', 'The answer is not one of the server'),
    detail: text('detail', 'Check the url, and what is between here and there.'),
    errors: Array.isArray(problem.errors) ? problem.errors.filter(isFieldError) : [],
  });
}

/** Something answers, and it is not our server. */
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
