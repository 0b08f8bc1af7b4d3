/**
 * How an answer goes out. A `Response` is made of streams, and to make it, read it again and write it takes as long as all the rest of a request.
 * So what is whole goes straight to Node where `serve` serves us, and nobody stands between who might want to change it; elsewhere, and
 * where an answer goes on for long, it is a `Response`.
 */
import type { ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context, Hono } from 'hono';
import { ANSWER_HEADERS } from './problem-answer.ts';
import type { Answer } from './route.ts';

/** An answer that is known to its end. */
export interface WholeAnswer {
  readonly status: number;
  /** Its own: more is added on the way out. */
  readonly headers: Record<string, string>;
  readonly body: string | null;
}

/** In what goes with a request: the request as `serve` took it from Node; and that nobody has stood between since. */
const SERVED = Symbol('served');
const STRAIGHT = Symbol('straight');

interface Marks {
  outgoing?: ServerResponse;
  [SERVED]?: Request;
  [STRAIGHT]?: true;
}

/** What `serve` gives to an app besides the request: made for it, so it is ours to mark. */
export function servedEnv<E extends object>(env: E, request: Request): E {
  return Object.assign(env, { [SERVED]: request });
}

/** The `fetch` of an app. Where the app is mounted in another, requests do not come by here, or are not the same any more. */
export function straightFetch({ fetch }: Hono): Hono['fetch'] {
  return (request, env, context) => {
    const marks = env as Marks | undefined;
    if (marks?.[SERVED] === request) marks[STRAIGHT] = true;
    return fetch(request, env, context);
  };
}

const JSON_HEADERS = { ...ANSWER_HEADERS, 'Content-Type': 'application/json' };

export function wholeAnswer({ status = 200, body, headers }: Answer): WholeAnswer {
  if (body === undefined)
    return { status, headers: Object.assign({}, ANSWER_HEADERS, headers), body: null };
  // Not spread, here and above: that would take several times as long, and every request comes by.
  const all = Object.assign({}, JSON_HEADERS, headers);
  return { status, headers: all, body: JSON.stringify(body) };
}

/** Gives an answer the id of its request, and sends it, or gives it to who will. */
export async function sent(
  c: Context,
  answer: WholeAnswer | Response,
  requestId: string,
): Promise<Response> {
  if (answer instanceof Response) return withHeaders(c, answer, requestId);
  const { status, headers, body } = answer;
  headers['X-Request-Id'] = requestId;
  const outgoing = outgoingOf(c);
  if (outgoing === null) return new Response(body, { status, headers });
  if (body !== null) headers['Content-Length'] = String(Buffer.byteLength(body));
  outgoing.writeHead(status, headers).end(body ?? undefined);
  return RESPONSE_ALREADY_SENT;
}

async function withHeaders(c: Context, answer: Response, requestId: string): Promise<Response> {
  for (const [name, value] of Object.entries(ANSWER_HEADERS))
    if (!answer.headers.has(name)) answer.headers.set(name, value);
  answer.headers.set('X-Request-Id', requestId);
  // Nobody will read it: what would go on for long is let go.
  if (c.req.method === 'HEAD') await answer.body?.cancel();
  return answer;
}

function outgoingOf(c: Context): ServerResponse | null {
  const env = c.env as Marks | undefined;
  return env?.[STRAIGHT] === true ? (env.outgoing ?? null) : null;
}
