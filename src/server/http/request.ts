/**
 * Handles one request, in a fixed order that is the same for all routes: `runPipeline`.
 *
 * No step before the route's handler touches the store, so a refused request costs the store
 * nothing. A request counts as in flight only after its body has arrived.
 */
import type { Context } from 'hono';
import { baseRoutePath } from 'hono/route';
import type { AnsweredRequest, ServerContext } from '../server-context.ts';
import { authorize } from './auth.ts';
import { readBody, refuseBody } from './body.ts';
import {
  clientClosedRequest,
  outcomeUnknown,
  problemFor,
  storeUnavailable,
} from './error-mapping.ts';
import { checkHost, checkOrigin } from './foreign-pages.ts';
import { type Input, validateInput } from './input.ts';
import { checkClient, type Lan } from './lan.ts';
import { COMMON_HEADERS, Problem, problemResponse } from './problem.ts';
import type { RequestGate } from './request-gate.ts';
import { type BufferedResponse, bufferedResponse, send } from './response.ts';
import type { Caller, Route, RouteRequest, RouteResult } from './route.ts';
import type { TokenSet } from './token-set.ts';

/** What every request is checked against, whatever its route. */
export interface RequestPolicy {
  readonly server: ServerContext;
  readonly tokens: TokenSet;
  readonly limits: RequestGate;
  /** Null: clients of all networks are accepted. */
  readonly lan: Lan | null;
  /** Null: routes of the API answer under any host name. */
  readonly hosts: ReadonlySet<string> | null;
  /** The page answers only under these. */
  readonly pageHosts: ReadonlySet<string>;
  readonly bodyTimeoutMs: number;
  readonly handlerTimeoutMs: number;
  onError(error: unknown, where: FailedRequest): void;
  /** Called with every request after its response is known. */
  onAnswered(answered: AnsweredRequest): void;
}

export interface FailedRequest {
  /** The id in the response's `X-Request-Id`. */
  readonly requestId: string;
  readonly method: string;
  /** The path in the route table; null where no route matched. */
  readonly path: string | null;
}

/** A route, or the problem that says why no route matched. */
export type Destination = Route | Problem;

const REQUEST_ID_DIGITS = 16;

export async function handleRequest(
  policy: RequestPolicy,
  c: Context,
  destination: Destination,
): Promise<Response> {
  const { clock, random } = policy.server;
  const startedAtMs = clock.monotonicMs();
  const requestId = random.hex(REQUEST_ID_DIGITS);
  const path = destination instanceof Problem ? null : destination.path;
  const { method } = c.req;
  const response = await runPipeline(policy, c, destination).catch((error: unknown) =>
    problemToSend(policy, c, error, { requestId, method, path }),
  );
  const tookMs = clock.monotonicMs() - startedAtMs;
  policy.onAnswered({ path, method, status: response.status, tookMs });
  return send(c, response, requestId);
}

async function runPipeline(
  policy: RequestPolicy,
  c: Context,
  destination: Destination,
): Promise<BufferedResponse | Response> {
  const { server, limits } = policy;
  const { headers } = c.req.raw;
  const url = new URL(c.req.url);
  if (policy.hosts !== null) checkHost(policy.hosts, url);
  if (!(destination instanceof Problem) && destination.isPage === true)
    checkHost(policy.pageHosts, url);
  checkOrigin(c.req.method, headers, url);
  if (policy.lan !== null) checkClient(policy.lan, peerOf(c), headers.get('x-forwarded-for'));
  if (destination instanceof Problem) throw destination;
  const caller = authorize(destination, headers, policy.tokens);
  // Open routes are cheap and include the health checks, which must answer under load: no limits.
  const isLimited = destination.access !== 'open';
  if (isLimited) limits.countRequest(caller.tokenId);
  const input = await readInput(policy, c, destination, caller);
  const endRequest = isLimited ? limits.startRequest() : noLimit;
  try {
    const request = new PipelineRequest(c, input, caller, server.closing);
    const result = await withTimeout(policy, destination, request);
    return result instanceof Response ? result : bufferedResponse(result);
  } finally {
    endRequest();
  }
}

async function readInput(
  { server, bodyTimeoutMs, limits }: RequestPolicy,
  c: Context,
  route: Route,
  caller: Caller,
): Promise<Input> {
  const request = c.req.raw;
  let body: Input['body'];
  if (route.body === undefined) {
    refuseBody(request.headers);
  } else {
    const isFramed = peerOf(c) !== undefined;
    const bodyLimits = { clock: server.clock, timeoutMs: bodyTimeoutMs, isFramed };
    const endBody = route.access === 'open' ? noLimit : limits.startBody(caller.tokenId);
    body = await readBody(request, bodyLimits).finally(endBody);
  }
  const search = searchOf(request.url);
  return validateInput(route, { params: paramsOf(c, route), search, body });
}

function noLimit(): void {}

/** Answers in time even if the route's handler does not. */
function withTimeout(
  { server, handlerTimeoutMs }: RequestPolicy,
  route: Route,
  request: PipelineRequest,
): Promise<RouteResult | Response> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = server.clock.after(handlerTimeoutMs, () => {
      isLate = true;
      reject(route.method === 'GET' ? storeUnavailable() : outcomeUnknown());
    });
    runHandler(server, route, request)
      .then((result) => {
        if (isLate && result instanceof Response) result.body?.cancel().catch(() => {});
        resolve(result);
      }, reject)
      .finally(() => timer.cancel());
  });
}

/** A change is audited even if its response came too late. */
async function runHandler(
  server: ServerContext,
  route: Route,
  request: PipelineRequest,
): Promise<RouteResult | Response> {
  const result = await route.handle(request);
  if (result instanceof Response || result.audit === undefined) return result;
  const { reason = null, ...audit } = result.audit;
  server.holdfast.audit({ ...audit, by: `api:${request.caller.tokenId}`, reason });
  return result;
}

function problemToSend(
  policy: RequestPolicy,
  c: Context,
  error: unknown,
  where: FailedRequest,
): BufferedResponse {
  const { aborted, reason } = c.req.raw.signal;
  let problem = aborted && error === reason ? clientClosedRequest() : problemFor(error);
  if (problem === null) {
    policy.onError(error, where);
    problem = new Problem('internal', {
      detail: 'The server’s log has the error, under the id in X-Request-Id.',
    });
  }
  const { status, body, headers } = problemResponse(problem, baseOf(c));
  return { status, headers: Object.assign({}, COMMON_HEADERS, headers), body };
}

/** A class, because a literal with getters is made from scratch for every request. */
class PipelineRequest implements RouteRequest<unknown, unknown, unknown> {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly caller: Caller;
  readonly headers: Headers;
  readonly base: string;
  readonly #request: Request;
  readonly #closing: AbortSignal;

  constructor(c: Context, input: Input, caller: Caller, closing: AbortSignal) {
    this.params = input.params;
    this.query = input.query;
    this.body = input.body;
    this.caller = caller;
    this.headers = c.req.raw.headers;
    this.base = baseOf(c);
    this.#request = c.req.raw;
    this.#closing = closing;
  }

  get gone(): AbortSignal {
    return this.#request.signal;
  }

  /** Made on demand: most requests are answered before a signal could fire. */
  get signal(): AbortSignal {
    return AbortSignal.any([this.gone, this.#closing]);
  }
}

/** The other end of the connection, where the HTTP server says so: `@hono/node-server` does. */
function peerOf(c: Context): string | undefined {
  const env = c.env as { incoming?: { socket?: { remoteAddress?: unknown } } } | undefined;
  const address = env?.incoming?.socket?.remoteAddress;
  return typeof address === 'string' ? address : undefined;
}

/** The path that the app is mounted at, still escaped, because headers repeat it. */
function baseOf(c: Context): string {
  const pattern = baseRoutePath(c);
  if (pattern === '/') return '';
  const { pathname } = new URL(c.req.url);
  return pathname.split('/').slice(0, pattern.split('/').length).join('/');
}

function searchOf(url: string): string {
  const at = url.indexOf('?');
  return at === -1 ? '' : url.slice(at + 1);
}

/** Only those of the route: an app that mounts this one may have parameters of its own. */
function paramsOf(c: Context, route: Route): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [, name = ''] of route.path.matchAll(/\{(\w+)\}/g)) {
    checkEscapes(c.req.path);
    params[name] = c.req.param(name) ?? '';
  }
  return params;
}

/** Hono would pass a wrong escape on as text. */
function checkEscapes(path: string): void {
  if (!path.includes('%')) return;
  try {
    decodeURIComponent(path);
  } catch {
    throw new Problem('invalid-request', { detail: 'The path has invalid percent-encoding.' });
  }
}
