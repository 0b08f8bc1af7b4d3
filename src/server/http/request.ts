/**
 * Handles one request, in a fixed order that is the same for all routes: `runPipeline`.
 *
 * No step before the route's handler touches the store, so a refused request costs the store
 * nothing. A request counts as in flight only after its body has arrived.
 */
import type { Context } from 'hono';
import type { AnsweredRequest, ServerContext } from '../server-context.ts';
import { authorize } from './auth.ts';
import { refuseBody } from './body.ts';
import {
  clientClosedRequest,
  outcomeUnknown,
  problemFor,
  storeUnavailable,
} from './error-mapping.ts';
import { checkHost, checkOrigin } from './foreign-pages.ts';
import { type Exchange, HonoRequest } from './hono-request.ts';
import { type Input, validateInput } from './input.ts';
import { checkClient, type Lan } from './lan.ts';
import { COMMON_HEADERS, Problem, problemResponse } from './problem.ts';
import type { RequestGate } from './request-gate.ts';
import { type BufferedResponse, bufferedResponse } from './response.ts';
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
  const exchange = new HonoRequest(c);
  const { response, requestId } = await answer(policy, exchange, destination);
  return exchange.send(response, requestId);
}

/** The answer to a request, and its id. */
export async function answer(
  policy: RequestPolicy,
  exchange: Exchange,
  destination: Destination,
): Promise<{ response: BufferedResponse | Response; requestId: string }> {
  const { clock, random } = policy.server;
  const startedAtMs = clock.monotonicMs();
  const requestId = random.hex(REQUEST_ID_DIGITS);
  const path = destination instanceof Problem ? null : destination.path;
  const { method } = exchange;
  let response: BufferedResponse | Response;
  try {
    response = await runPipeline(policy, exchange, destination);
  } catch (error) {
    response = problemToSend(policy, exchange, error, { requestId, method, path });
  }
  const tookMs = clock.monotonicMs() - startedAtMs;
  policy.onAnswered({ path, method, status: response.status, tookMs });
  return { response, requestId };
}

async function runPipeline(
  policy: RequestPolicy,
  exchange: Exchange,
  destination: Destination,
): Promise<BufferedResponse | Response> {
  const { server, limits } = policy;
  const { headers } = exchange;
  if (policy.hosts !== null) checkHost(policy.hosts, exchange.url);
  if (!(destination instanceof Problem) && destination.isPage === true)
    checkHost(policy.pageHosts, exchange.url);
  checkOrigin(exchange);
  if (policy.lan !== null) checkClient(policy.lan, exchange.peer, headers.get('x-forwarded-for'));
  if (destination instanceof Problem) throw destination;
  const caller = authorize(destination, headers, policy.tokens);
  // Open routes are cheap and include the health checks, which must answer under load: no limits.
  const isLimited = destination.access !== 'open';
  if (isLimited) limits.countRequest(caller.tokenId);
  const input = await readInput(policy, exchange, destination, caller);
  const endRequest = isLimited ? limits.startRequest() : noLimit;
  try {
    const request = new PipelineRequest(exchange, input, caller, server.closing);
    const result = await withTimeout(policy, destination, request);
    return result instanceof Response ? result : bufferedResponse(result);
  } finally {
    endRequest();
  }
}

async function readInput(
  { server, bodyTimeoutMs, limits }: RequestPolicy,
  exchange: Exchange,
  route: Route,
  caller: Caller,
): Promise<Input> {
  let body: Input['body'];
  if (route.body === undefined) {
    refuseBody(exchange.headers);
  } else {
    const bodyLimits = { clock: server.clock, timeoutMs: bodyTimeoutMs };
    const endBody = route.access === 'open' ? noLimit : limits.startBody(caller.tokenId);
    try {
      body = await exchange.readBody(bodyLimits);
    } finally {
      endBody();
    }
  }
  return validateInput(route, { params: exchange.params(route), search: exchange.search, body });
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
    runHandler(server, route, request).then(
      (result) => {
        timer.cancel();
        if (isLate && result instanceof Response) result.body?.cancel().catch(() => {});
        resolve(result);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error);
      },
    );
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
  exchange: Exchange,
  error: unknown,
  where: FailedRequest,
): BufferedResponse {
  const { aborted, reason } = exchange.gone;
  let problem = aborted && error === reason ? clientClosedRequest() : problemFor(error);
  if (problem === null) {
    policy.onError(error, where);
    problem = new Problem('internal', {
      detail: 'The server’s log has the error, under the id in X-Request-Id.',
    });
  }
  const { status, body, headers } = problemResponse(problem, exchange.base);
  return { status, headers: Object.assign({}, COMMON_HEADERS, headers), body };
}

/** A class, because a literal with getters is made from scratch for every request. */
class PipelineRequest implements RouteRequest<unknown, unknown, unknown> {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly caller: Caller;
  readonly base: string;
  readonly #exchange: Exchange;
  readonly #closing: AbortSignal;

  constructor(exchange: Exchange, input: Input, caller: Caller, closing: AbortSignal) {
    this.params = input.params;
    this.query = input.query;
    this.body = input.body;
    this.caller = caller;
    this.base = exchange.base;
    this.#exchange = exchange;
    this.#closing = closing;
  }

  get headers(): Headers {
    return this.#exchange.allHeaders;
  }

  get gone(): AbortSignal {
    return this.#exchange.gone;
  }

  /** Made on demand: most requests are answered before a signal could fire. */
  get signal(): AbortSignal {
    return AbortSignal.any([this.gone, this.#closing]);
  }
}
