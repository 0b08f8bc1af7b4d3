/**
 * What can be wrong with a request, as RFC 9457 tells it. Types are stable: clients may go by them. `docs/problems.md` has a section
 * for each, and the server itself a page. What a problem says of the request are names of fields and rules, never what stood in them.
 */
export interface ProblemKind {
  readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 409 | 413 | 415 | 429 | 500 | 503;
  readonly title: string;
}

export const PROBLEMS = {
  'invalid-request': { status: 400, title: 'The request makes no sense' },
  unauthenticated: { status: 401, title: 'No valid token' },
  forbidden: { status: 403, title: 'The token does not allow this' },
  'outside-lan': { status: 403, title: 'The client is outside the networks that are allowed' },
  'foreign-host': { status: 403, title: 'The request is for another host' },
  'foreign-origin': { status: 403, title: 'The request is from the page of another' },
  'not-found': { status: 404, title: 'There is no such thing' },
  'method-not-allowed': { status: 405, title: 'This can not be done with it' },
  'request-timeout': { status: 408, title: 'The request took too long to arrive' },
  'session-exists': { status: 409, title: 'There is a session with this id' },
  'session-of-intent': { status: 409, title: 'The session is stopped by an intent' },
  'lease-busy': { status: 409, title: 'Another session has the channel' },
  conflict: { status: 409, title: 'Others have changed it meanwhile' },
  'body-too-large': { status: 413, title: 'The body is too large' },
  'unsupported-media-type': { status: 415, title: 'The body is no JSON' },
  'too-many-requests': { status: 429, title: 'Too many requests' },
  'session-crowded': { status: 429, title: 'Too many clients share the session' },
  internal: { status: 500, title: 'Something is wrong with the server' },
  'store-unavailable': { status: 503, title: 'The store can not be reached' },
  'store-quarantined': { status: 503, title: 'The store grants no leases yet' },
  'outcome-unknown': { status: 503, title: 'It may have been accepted, or not' },
  'not-ready': { status: 503, title: 'This instance can not take work' },
} as const satisfies Readonly<Record<string, ProblemKind>>;

export type ProblemName = keyof typeof PROBLEMS;

export interface ProblemFacts {
  /** What happened here, and what to do. */
  readonly detail: string;
  /** For `Retry-After`, which is in whole seconds. */
  readonly retryAfterMs?: number;
  /** What is wrong with which field. */
  readonly errors?: readonly { readonly field: string; readonly rule: string }[];
  /** What else to say; never what the request said. */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** More headers: `Allow`, `WWW-Authenticate`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown by whoever finds it; the server answers with it. */
export class Problem extends Error {
  readonly kind: ProblemName;
  readonly facts: ProblemFacts;

  constructor(kind: ProblemName, facts: ProblemFacts) {
    super(facts.detail);
    this.kind = kind;
    this.facts = facts;
  }
}
