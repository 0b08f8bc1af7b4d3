/**
 * Sends responses. Making a `Response`, reading it again and writing it takes as long as the rest
 * of a request. So a buffered response goes straight to Node where `serve` serves this app and no
 * other code is in between. Elsewhere, and for streams, it is a `Response`.
 */
import type { ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context, Hono } from 'hono';
import { COMMON_HEADERS } from './problem.ts';
import type { RouteResult } from './route.ts';

/** A response whose body is complete. */
export interface BufferedResponse {
  readonly status: number;
  /** Owned by this response: `send` adds to them. */
  readonly headers: Record<string, string>;
  readonly body: string | null;
}

/** Marks in Hono's `env`: the request that `serve` received, and that nothing has replaced it. */
const SERVED = Symbol('served');
const DIRECT = Symbol('direct');

interface Marks {
  outgoing?: ServerResponse;
  [SERVED]?: Request;
  [DIRECT]?: true;
}

/** For `serve`: each request has its own `env`, so it can be marked. */
export function markServed<E extends object>(env: E, request: Request): E {
  return Object.assign(env, { [SERVED]: request });
}

/** The `fetch` of an app. An app that mounts this one does not call it, or with another request. */
export function directFetch({ fetch }: Hono): Hono['fetch'] {
  return (request, env, context) => {
    const marks = env as Marks | undefined;
    if (marks?.[SERVED] === request) marks[DIRECT] = true;
    return fetch(request, env, context);
  };
}

const JSON_HEADERS = { ...COMMON_HEADERS, 'Content-Type': 'application/json' };

/** `Object.assign`: a spread takes several times as long, and every request comes by here. */
export function bufferedResponse({ status = 200, body, headers }: RouteResult): BufferedResponse {
  if (body === undefined)
    return { status, headers: Object.assign({}, COMMON_HEADERS, headers), body: null };
  const all = Object.assign({}, JSON_HEADERS, headers);
  return { status, headers: all, body: JSON.stringify(body) };
}

/** Adds the request id and sends the response, or returns it to Hono. */
export async function send(
  c: Context,
  response: BufferedResponse | Response,
  requestId: string,
): Promise<Response> {
  if (response instanceof Response) return withHeaders(c, response, requestId);
  const outgoing = outgoingOf(c);
  if (outgoing !== null) {
    sendTo(outgoing, response, requestId);
    return RESPONSE_ALREADY_SENT;
  }
  const { status, headers, body } = response;
  headers['X-Request-Id'] = requestId;
  return new Response(body, { status, headers });
}

/** The same straight to Node. */
export function sendTo(
  outgoing: ServerResponse,
  { status, headers, body }: BufferedResponse,
  requestId: string,
): void {
  headers['X-Request-Id'] = requestId;
  if (body !== null) headers['Content-Length'] = String(Buffer.byteLength(body));
  outgoing.writeHead(status, headers).end(body ?? undefined);
}

async function withHeaders(c: Context, response: Response, requestId: string): Promise<Response> {
  for (const [name, value] of Object.entries(COMMON_HEADERS))
    if (!response.headers.has(name)) response.headers.set(name, value);
  response.headers.set('X-Request-Id', requestId);
  // The body of a HEAD response is never read, so a stream must be ended here.
  if (c.req.method === 'HEAD') await response.body?.cancel();
  return response;
}

function outgoingOf(c: Context): ServerResponse | null {
  const env = c.env as Marks | undefined;
  return env?.[DIRECT] === true ? (env.outgoing ?? null) : null;
}
