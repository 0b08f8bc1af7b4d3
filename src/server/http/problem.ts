/**
 * Everything that can be wrong with a request, as problems of RFC 9457. Problem types are stable:
 * clients may rely on them. `docs/reference/problems.md` and the server's own pages are made of
 * them.
 *
 * A problem names fields and rules of the request. It never repeats a value that was sent.
 */
export interface ProblemKind {
  readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 409 | 413 | 415 | 429 | 500 | 503;
  readonly title: string;
  /** When it occurs. */
  readonly when: string;
  /** What the client should do. */
  readonly advice: string;
}

export const PROBLEMS = {
  'invalid-request': {
    status: 400,
    title: 'Invalid request',
    when: 'The path, the query or the body does not match what the route accepts: a field is missing, unknown, of the wrong type or out of range. Or the body is JSON that parsers read differently (a duplicate key, a byte order mark, invalid Unicode).',
    advice:
      '`errors` lists every field that is wrong and the rule it breaks. Nothing was changed: correct the request and send it again.',
  },
  unauthenticated: {
    status: 401,
    title: 'No valid token',
    when: 'The header `Authorization: Bearer …` is missing or sent twice, or the token is unknown or has expired.',
    advice:
      'Send a token that is configured on this server. While tokens are being rotated, the old and the new one both work.',
  },
  forbidden: {
    status: 403,
    title: 'The token does not allow this',
    when: 'The token is valid, but its scope does not include the one that the route needs. Or the token belongs to a tenant, and the route is not limited to one tenant.',
    advice: 'Use a token with the scope named in `scope`, or a token without a tenant.',
  },
  'outside-lan': {
    status: 403,
    title: 'The client is outside the allowed networks',
    when: 'The server only accepts clients of certain networks (`api.lan`), and the address of this client is in none of them or cannot be determined.',
    advice:
      'Send the request from an allowed network. Behind a proxy: list the proxy in `trustedProxies`, and let it send one well-formed `X-Forwarded-For`.',
  },
  'foreign-host': {
    status: 403,
    title: 'The request is for another host',
    when: 'The `Host` header names a host that is not configured for this server.',
    advice:
      'Use a configured host name, or add this one to `api.hosts`. The check stops web pages of other sites from reaching the server through a visitor’s browser (DNS rebinding).',
  },
  'foreign-origin': {
    status: 403,
    title: 'The request comes from another site',
    when: 'The `Origin` header says that a page of another site sent a request that would change something.',
    advice:
      'Nothing was changed. Use the page that this server serves, or a program. Behind a proxy: let it pass `Host` on unchanged.',
  },
  'not-found': {
    status: 404,
    title: 'Not found',
    when: 'There is no such path, session, target, instance or problem. Something that belongs to another tenant is not found either.',
    advice: 'Check the id. Sessions that have ended are removed after the retention time.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method not allowed',
    when: 'The path exists, but not with this HTTP method.',
    advice: 'The header `Allow` lists the methods of this path.',
  },
  'request-timeout': {
    status: 408,
    title: 'The request took too long to arrive',
    when: 'Headers or body took too long to arrive; the server closes the connection. In logs and metrics it also means: the client closed the connection before its intent was accepted, and nothing was changed.',
    advice: 'Send the request again, without pauses.',
  },
  'session-exists': {
    status: 409,
    title: 'The id is already in use',
    when: 'A target was added under an id that another target has.',
    advice: 'Nothing was changed. Choose another id, or leave it out to get a random one.',
  },
  'session-of-intent': {
    status: 409,
    title: 'The session was started by an intent',
    when: 'A request tried to pause, resume or delete a session that an intent started.',
    advice: 'Send an intent of type `stream.stop` with the session’s id.',
  },
  'lease-held': {
    status: 409,
    title: 'Another holder has the lease',
    when: 'A client asked for a lease whose key is held, or blocked after a revocation.',
    advice:
      '`holder`, `fence` and `expiresInMs` say who has it and for how long. Try again after `Retry-After`, or pass `wait`.',
  },
  'lease-not-held': {
    status: 409,
    title: 'The lease is no longer held',
    when: 'A client renewed or transferred a lease that has expired, was released or revoked, or belongs to another holder by now.',
    advice:
      'Stop the work under the lease, then acquire it again. `current` and `currentFence` say who has the key now.',
  },
  'lease-busy': {
    status: 409,
    title: 'Another session has the channel',
    when: 'The API takes leases itself (`HOLDFAST_V3_API_LEASES`), and another session holds the channel.',
    advice:
      'Try again after `Retry-After`. With the flag off, which is the default, intents are always accepted, and the session shows the outcome.',
  },
  conflict: {
    status: 409,
    title: 'Conflict',
    when: 'Another client changed the same thing at the same time. Or a non-Holdfast program wrote a record that Holdfast cannot read.',
    advice:
      'Read it again and decide again. Correct an unreadable record where it was written, or delete it.',
  },
  'body-too-large': {
    status: 413,
    title: 'The body is too large',
    when: 'The body has more than 16 KiB.',
    advice: 'No route needs a body of that size: check what your program sends.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'The body is not JSON',
    when: 'The body is not `application/json` in UTF-8.',
    advice: 'Send the header `Content-Type: application/json`.',
  },
  'too-many-requests': {
    status: 429,
    title: 'Too many requests',
    when: 'The server is handling as many requests as it may, the token exceeds its rate, or the limit of clients that watch a stream is reached.',
    advice: 'Wait for the time in `Retry-After`. Nothing was changed.',
  },
  'session-crowded': {
    status: 429,
    title: 'Too many clients share the session',
    when: 'The session has reached its limit of clients.',
    advice:
      'Use one `clientId` for all requests of the same client, and send `stream.stop` for clients that are gone.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    when: 'The server has a bug, or met a state that it does not handle.',
    advice: 'The server’s log has the error under the id in `X-Request-Id`. Please report it.',
  },
  'store-unavailable': {
    status: 503,
    title: 'The store is unavailable',
    when: 'The store did not answer, or refused the request. Nothing was changed.',
    advice:
      'Try again after `Retry-After`. The server reconnects automatically; `holdfast doctor` shows what is wrong with the store.',
  },
  'store-quarantined': {
    status: 503,
    title: 'The store grants no leases yet',
    when: 'A request needs a new lease, and the store has just started or has lost data. It may have lost leases that are still held, so it grants none during the quarantine. Nothing was changed.',
    advice:
      'Try again after `Retry-After`, when the quarantine ends. Leases that are held can be renewed. Intents need no lease unless `HOLDFAST_V3_API_LEASES` is on.',
  },
  'outcome-unknown': {
    status: 503,
    title: 'It is unknown whether the request took effect',
    when: 'The store received the request but did not answer in time. The change may have happened or not.',
    advice:
      'An intent is safe to send again: it leads to the same session. For any other request, read the current state first.',
  },
  'not-ready': {
    status: 503,
    title: 'This instance cannot take work',
    when: 'The instance cannot take work now: its store does not answer, it is closing, or a part of it is stalled.',
    advice:
      '`reasons` lists everything that is wrong. Use another instance; this one recovers automatically unless it is closing.',
  },
} as const satisfies Readonly<Record<string, ProblemKind>>;

export type ProblemName = keyof typeof PROBLEMS;

export interface ProblemFacts {
  /** What happened, and what to do. */
  readonly detail: string;
  /** Sent as `Retry-After`, in whole seconds. */
  readonly retryAfterMs?: number;
  /** The fields that are wrong, and the rule that each breaks. */
  readonly errors?: readonly { readonly field: string; readonly rule: string }[];
  /** Further members of the problem. They never contain values of the request. */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** Further headers: `Allow`, `WWW-Authenticate`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown by any step of the request pipeline, or by a route: the server answers with it. */
export class Problem extends Error {
  readonly kind: ProblemName;
  readonly facts: ProblemFacts;

  constructor(kind: ProblemName, facts: ProblemFacts) {
    super(facts.detail);
    this.kind = kind;
    this.facts = facts;
  }
}

/** The headers of every response. */
export const COMMON_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
} as const;

/** A problem as it is sent, without `COMMON_HEADERS`. */
export interface ProblemResponse {
  readonly status: ProblemKind['status'];
  readonly body: string;
  readonly headers: Record<string, string>;
}

/** `base` is the path that the server is mounted at: the page of each problem is below it. */
export function problemResponse({ kind, facts }: Problem, base: string): ProblemResponse {
  const { status, title } = PROBLEMS[kind];
  const { detail, errors, retryAfterMs } = facts;
  const body = {
    type: `${base}/problems/${kind}`,
    title,
    status,
    detail,
    code: kind.toUpperCase().replaceAll('-', '_'),
    errors,
    ...facts.facts,
  };
  const headers: Record<string, string> = { 'Content-Type': 'application/problem+json' };
  if (retryAfterMs !== undefined) headers['Retry-After'] = wholeSeconds(retryAfterMs);
  Object.assign(headers, facts.headers);
  return { status, body: JSON.stringify(body), headers };
}

/** Rounded up: a client that came back early would be refused again. */
function wholeSeconds(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1_000)));
}
