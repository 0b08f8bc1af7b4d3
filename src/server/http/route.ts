/**
 * One route of the interface, and all there is to know of it: who may, what it takes, what it gives. The server mounts it, validates by it and
 * describes it in `/openapi.json`, so that none of the three can say something else than the others.
 */
import type { z } from 'zod';
import type { ProblemName } from './problem.ts';

/** Each includes those before it. */
export const SCOPES = ['v3:read', 'v3:write', 'v3:admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** Who asks, as its token says. */
export interface Caller {
  /** Names the token in logs, and the client where it names none. Never the token itself. */
  readonly tokenId: string;
  readonly scope: Scope;
  /** Null: its token is of no tenant. */
  readonly tenant: string | null;
  /** When the token is over, in milliseconds since 1970; Infinity for never. */
  readonly expiresAtMs: number;
}

export interface Asked<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** For routes that are open to all, nobody in particular. */
  readonly caller: Caller;
  readonly headers: Headers;
  /** Where all of this is mounted, to be put before paths in links; empty at the root. */
  readonly base: string;
  /** Fires when the client has gone. */
  readonly gone: AbortSignal;
  /** Fires when the client has gone, or the server ends. */
  readonly signal: AbortSignal;
}

export interface Answer {
  readonly status?: 200 | 201 | 202 | 204 | 503;
  /** Becomes JSON; a `Response` goes out as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** What has been done, for the record: whatever changes something says it, but for intents, which tell of themselves. */
  readonly act?: Act;
}

interface Act {
  readonly action: string;
  readonly subject: string;
  /** To whom something goes by it. */
  readonly to?: string;
  readonly reason?: string | undefined;
}

export interface Route<P = unknown, Q = unknown, B = unknown> {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** As OpenAPI writes it: `/api/v3/sessions/{id}`. */
  readonly path: string;
  /** `open`: also without a token. */
  readonly access: Scope | 'open';
  /** `no`: a token of a tenant is refused, because what it would see or do is not of one tenant. */
  readonly tenants: 'yes' | 'no';
  /** For browsers, and for people in them: it answers only under names that are ours, whether some are configured or not. */
  readonly isPage?: true;
  readonly summary: string;
  readonly description: string;
  readonly group:
    | 'intents'
    | 'sessions'
    | 'fleet'
    | 'leases'
    | 'workflows'
    | 'events'
    | 'operation';
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  readonly body?: z.ZodType<B>;
  /** By status; problems that every route has are not named. */
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  readonly problems: readonly ProblemName[];
  handle(asked: Asked<P, Q, B>): Promise<Answer | Response>;
}

export interface RouteAnswer {
  readonly description: string;
  readonly body?: z.ZodType;
  /** Default: JSON where there is a body. */
  readonly mediaType?: string;
}

/** For editors and the compiler: what the schemas say is what `handle` gets. */
export function route<P, Q, B>(definition: Route<P, Q, B>): Route {
  return definition as Route;
}
