/**
 * One route of the API: its access, its input and its output. The server mounts it,
 * validates requests by it and describes it in `/openapi.json`, so the three cannot differ.
 */
import type { z } from 'zod';
import type { ProblemName } from './problem.ts';

/** Each scope includes those before it. */
export const SCOPES = ['v3:read', 'v3:write', 'v3:admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** The client of a request, by its token. */
export interface Caller {
  /** Names the token in logs, and a client that sends no `clientId`. Never the token itself. */
  readonly tokenId: string;
  readonly scope: Scope;
  /** Null: the token belongs to no tenant. */
  readonly tenant: string | null;
  /** When the token expires, in milliseconds since 1970; Infinity for never. */
  readonly expiresAtMs: number;
}

/** A validated request. */
export interface RouteRequest<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** On open routes, `ANONYMOUS`. */
  readonly caller: Caller;
  readonly headers: Headers;
  /** The path that the app is mounted at, to be put before paths in links; empty at the root. */
  readonly base: string;
  /** Fires when the client closes the connection. */
  readonly gone: AbortSignal;
  /** Fires when the client closes the connection, or the server closes. */
  readonly signal: AbortSignal;
}

/** What a route answers, unless it returns a `Response` of its own. */
export interface RouteResult {
  readonly status?: 200 | 201 | 202 | 204 | 503 | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The change that was made, for the audit log. Intents have events of their own instead. */
  readonly audit?: AuditEntry | undefined;
}

export interface AuditEntry {
  readonly action: string;
  readonly subject: string;
  /** The instance that a target is moved to. */
  readonly to?: string | undefined;
  readonly reason?: string | undefined;
}

export interface Route<P = unknown, Q = unknown, B = unknown> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** In OpenAPI's notation: `/api/v3/sessions/{id}`. */
  readonly path: string;
  /** `open`: no token is needed. */
  readonly access: Scope | 'open';
  /** `no`: tokens of a tenant are refused, because the route is not limited to one tenant. */
  readonly tenants: 'yes' | 'no';
  /** For browsers: the route answers only under `pageHosts`, even if `hosts` is not configured. */
  readonly isPage?: true;
  /**
   * Its requests come by the thousand, and go around Hono: see `direct.ts`. It has a body, no other
   * input, and never answers with a `Response`.
   */
  readonly isDirect?: true;
  /** Another route replaces this one. Its responses have the headers `Deprecation` and `Link`. */
  readonly isDeprecated?: true;
  readonly summary: string;
  readonly description: string;
  readonly group:
    | 'intents'
    | 'sessions'
    | 'targets'
    | 'fleet'
    | 'leases'
    | 'workflows'
    | 'events'
    | 'operation';
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  readonly body?: z.ZodType<B>;
  /** By status. Problems are not listed here. */
  readonly responses: Readonly<Record<number, DocumentedResponse>>;
  /** Problems of this route, beyond those that every route may have. */
  readonly problems: readonly ProblemName[];
  handle(request: RouteRequest<P, Q, B>): Promise<RouteResult | Response>;
}

export interface DocumentedResponse {
  readonly description: string;
  readonly body?: z.ZodType;
  /** Default: JSON where there is a body. */
  readonly mediaType?: string;
}

/** Gives `handle` the types of the route's schemas. */
export function route<P, Q, B>(definition: Route<P, Q, B>): Route {
  return definition as Route;
}

/** For routes that are documented together and that tokens of a tenant all may, or may not, use. */
export function routeGroup(shared: Pick<Route, 'group' | 'tenants'>) {
  return <P, Q, B>(own: Omit<Route<P, Q, B>, keyof typeof shared>): Route =>
    route<P, Q, B>({ ...shared, ...own });
}
