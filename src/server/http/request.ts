/**
 * One request, from its arrival to its answer, in an order that is the same for all: is its client to be served at all, is there such a
 * thing, who asks, may it, does it ask too often, is what it says readable, does it make sense, is there room. Nothing before the last step
 * touches the store, so that whoever is refused has cost nobody anything; and only what has arrived takes a place.
 */
import type { Context } from 'hono';
import { baseRoutePath } from 'hono/route';
import type { ServerParts } from '../parts.ts';
import { authorize } from './auth.ts';
import { readBody, refuseBody } from './body.ts';
import { checkOrigin } from './csrf.ts';
import type { HostGuard } from './host-guard.ts';
import { type Input, validated } from './input.ts';
import type { IpRestriction } from './ip-restriction.ts';
import type { Limits } from './limits.ts';
import { Problem } from './problem.ts';
import { ANSWER_HEADERS, problemAnswer } from './problem-answer.ts';
import type { Answer, Asked, Caller, Route } from './route.ts';
import { sent, type WholeAnswer, wholeAnswer } from './sending.ts';
import type { Tokens } from './tokens.ts';
import { clientGone, outcomeUnknown, problemOf, storeUnavailable } from './translation.ts';

export interface Terms {
  readonly parts: ServerParts;
  readonly tokens: Tokens;
  readonly limits: Limits;
  readonly lan: IpRestriction | null;
  /** Null: programs are answered under any name. The page never is. */
  readonly hosts: HostGuard | null;
  readonly pageHosts: HostGuard;
  readonly bodyTimeoutMs: number;
  readonly handlerTimeoutMs: number;
  onError(error: unknown, where: FailedRequest): void;
}

export interface FailedRequest {
  /** As its answer has it in `X-Request-Id`. */
  readonly requestId: string;
  readonly method: string;
  /** As the table has it; null where there is none. */
  readonly path: string | null;
}

/** A route, or why there is none. */
export type Destination = Route | Problem;

const REQUEST_ID_DIGITS = 16;

export class RequestHandler {
  readonly #terms: Terms;

  constructor(terms: Terms) {
    this.#terms = terms;
  }

  async answer(c: Context, destination: Destination): Promise<Response> {
    const { clock, random, observers } = this.#terms.parts;
    const startedAtMs = clock.monotonicMs();
    const requestId = random.hex(REQUEST_ID_DIGITS);
    const path = destination instanceof Problem ? null : destination.path;
    const answer = await this.#answer(c, destination).catch((error: unknown) =>
      this.#refusal(c, error, { requestId, method: c.req.method, path }),
    );
    const { status } = answer;
    const tookMs = clock.monotonicMs() - startedAtMs;
    for (const observe of observers) observe({ path, method: c.req.method, status, tookMs });
    return sent(c, answer, requestId);
  }

  async #answer(c: Context, destination: Destination): Promise<WholeAnswer | Response> {
    const { lan, limits, tokens } = this.#terms;
    this.#checkPlace(c, destination);
    lan?.check(peerOf(c), c.req.raw.headers.get('x-forwarded-for'));
    if (destination instanceof Problem) throw destination;
    const caller = authorize(destination, c.req.raw.headers, tokens);
    if (destination.access !== 'open') limits.spend(caller.tokenId);
    const input = await this.#read(c, destination, caller);
    // What is open to all costs next to nothing, and says whether we live: that has to be heard just when there is too much to do.
    const leave = destination.access === 'open' ? () => {} : limits.enter();
    try {
      const asked = new Question(c, { input, caller, closing: this.#terms.parts.closing });
      const answer = await this.#handled(destination, asked);
      return answer instanceof Response ? answer : wholeAnswer(answer);
    } finally {
      leave();
    }
  }

  /** Whether it was sent to us, and not by the page of a stranger. */
  #checkPlace({ req }: Context, destination: Destination): void {
    const { hosts, pageHosts } = this.#terms;
    const url = new URL(req.url);
    hosts?.check(url);
    if (!(destination instanceof Problem) && destination.isPage === true) pageHosts.check(url);
    checkOrigin(req.method, req.raw.headers, url);
  }

  async #read(c: Context, route: Route, caller: Caller): Promise<Input> {
    const { parts, bodyTimeoutMs, limits } = this.#terms;
    const request = c.req.raw;
    if (route.body === undefined) refuseBody(request.headers);
    const isFramed = peerOf(c) !== undefined;
    const terms = { clock: parts.clock, timeoutMs: bodyTimeoutMs, isFramed };
    let body: Input['body'];
    if (route.body !== undefined) {
      const arrived = route.access === 'open' ? () => {} : limits.receive(caller.tokenId);
      body = await readBody(request, terms).finally(arrived);
    }
    const search = searchOf(request.url);
    return validated(route, { params: paramsOf(c, route), search, body });
  }

  /** Whoever waits is told in time, also where something below does not keep its own. */
  #handled(route: Route, asked: Asked<unknown, unknown, unknown>): Promise<Answer | Response> {
    const { parts, handlerTimeoutMs } = this.#terms;
    return new Promise((resolve, reject) => {
      let isLate = false;
      const timer = parts.clock.after(handlerTimeoutMs, () => {
        isLate = true;
        reject(route.method === 'GET' ? storeUnavailable() : outcomeUnknown());
      });
      this.#act(route, asked)
        .then((answer) => {
          if (isLate && answer instanceof Response) answer.body?.cancel().catch(() => {});
          resolve(answer);
        }, reject)
        .finally(() => timer.cancel());
    });
  }

  /** Also where nobody waits for it any more: what was done, was done. */
  async #act(route: Route, asked: Asked<unknown, unknown, unknown>): Promise<Answer | Response> {
    const answer = await route.handle(asked);
    if (answer instanceof Response || answer.act === undefined) return answer;
    const { reason = null, ...act } = answer.act;
    const by = `api:${asked.caller.tokenId}`;
    this.#terms.parts.holdfast.audit({ ...act, by, reason });
    return answer;
  }

  #refusal(c: Context, error: unknown, where: FailedRequest): WholeAnswer {
    const { aborted, reason } = c.req.raw.signal;
    let problem = aborted && error === reason ? clientGone() : problemOf(error);
    if (problem === null) {
      this.#terms.onError(error, where);
      problem = new Problem('internal', {
        detail: 'It has been written down, under the id in X-Request-Id.',
      });
    }
    const { status, body, headers } = problemAnswer(problem, baseOf(c));
    return { status, headers: { ...ANSWER_HEADERS, ...headers }, body };
  }
}

/** What a handler is asked. A class, because a literal with a getter would be made from scratch for every request. */
class Question implements Asked<unknown, unknown, unknown> {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly caller: Caller;
  readonly headers: Headers;
  readonly base: string;
  readonly #request: Request;
  readonly #closing: AbortSignal;

  constructor(
    c: Context,
    { input, caller, closing }: { input: Input; caller: Caller; closing: AbortSignal },
  ) {
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

  /** Made for those who ask for it: most are answered before anybody could go. */
  get signal(): AbortSignal {
    return AbortSignal.any([this.gone, this.#closing]);
  }
}

/** The other end of the connection, where the server that serves this tells us: that of `@hono/node-server` does. */
function peerOf(c: Context): string | undefined {
  const env = c.env as { incoming?: { socket?: { remoteAddress?: unknown } } } | undefined;
  const address = env?.incoming?.socket?.remoteAddress;
  return typeof address === 'string' ? address : undefined;
}

/** As it was asked for, and still escaped: it goes into headers. */
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

/** Only those of the route: wherever it is mounted may have some of its own. */
function paramsOf(c: Context, route: Route): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [, name = ''] of route.path.matchAll(/\{(\w+)\}/g)) {
    checkEscapes(c.req.path);
    params[name] = c.req.param(name) ?? '';
  }
  return params;
}

/** What is wrongly escaped would be taken for what it looks like. */
function checkEscapes(path: string): void {
  if (!path.includes('%')) return;
  try {
    decodeURIComponent(path);
  } catch {
    throw new Problem('invalid-request', { detail: 'The path is wrongly percent-encoded.' });
  }
}
