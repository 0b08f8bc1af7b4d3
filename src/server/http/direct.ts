/**
 * Answers the requests that come by the thousand over Node's own objects, without those of the web
 * (`Request`, `Headers`) and without a router: making these takes longer than the rest. The checks
 * and the handler are those of all requests (`request.ts`).
 *
 * Only a request in which nothing is unusual comes here. Any other takes the way over Hono: with a
 * header that is missing or there twice, a body of unknown length, an address with a query or an
 * odd host.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Hono } from 'hono';
import { assert } from '../../core/assert.ts';
import type { Clock } from '../../core/clock.ts';
import { type BodyLimits, JSON_TYPE, MAX_BODY_BYTES, readIncoming } from './body.ts';
import type { Exchange } from './hono-request.ts';
import { answer, type RequestPolicy } from './request.ts';
import { sendTo } from './response.ts';
import type { Route } from './route.ts';

/** False: the request is not for it, and untouched. */
export type DirectHandler = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

type Fetch = Hono['fetch'];

/** By the `fetch` of its app, so that a program that wraps `fetch` has every request pass there. */
const handlers = new WeakMap<Fetch, DirectHandler>();

export function offerDirect(fetch: Fetch, handler: DirectHandler): void {
  handlers.set(fetch, handler);
}

export function directOf(fetch: Fetch): DirectHandler | null {
  return handlers.get(fetch) ?? null;
}

/** Headers that decide something. One that is there twice is left to Hono. */
const NEEDED = new Set([
  'host',
  'authorization',
  'content-type',
  'content-length',
  'origin',
  'x-forwarded-for',
]);
const UNUSUAL = new Set(['content-encoding', 'transfer-encoding', 'expect', 'upgrade']);
const LENGTH = /^\d{1,5}$/;
/** How long the rest of a body may take to arrive after the answer, as with Hono. */
const UNREAD_WITHIN_MS = 500;
/** Host names that were found usual. Clients choose them, so there is a limit. */
const MAX_HOSTS = 100;

export function directHandler(routes: readonly Route[], policy: RequestPolicy): DirectHandler {
  const direct = new Map(routes.filter(({ isDirect }) => isDirect).map((one) => [one.path, one]));
  const hosts = new Set<string>();
  const isUsualHost = (host: string) => {
    if (hosts.has(host)) return true;
    const url = `http://${host}/`;
    const isUsual = URL.canParse(url) && new URL(url).href === url;
    if (isUsual && hosts.size < MAX_HOSTS) hosts.add(host);
    return isUsual;
  };
  return (incoming, outgoing) => {
    const route = direct.get(incoming.url ?? '');
    if (route === undefined || route.method !== incoming.method) return false;
    if (incoming.httpVersion !== '1.1') return false;
    const headers = usualHeaders(incoming.rawHeaders);
    if (headers === null || !isUsualHost(headers.get('host') ?? '')) return false;
    const exchange = new NodeRequest(incoming, headers);
    void answer(policy, exchange, route).then(
      ({ response, requestId }) => {
        // A direct route has no such response.
        if (response instanceof Response) outgoing.destroy();
        else sendTo(outgoing, response, requestId);
        dropRest(incoming, policy.server.clock);
      },
      () => outgoing.destroy(),
    );
    return true;
  };
}

/** Discards the rest of a body that was answered early: the next request comes behind it. */
function dropRest(incoming: IncomingMessage, clock: Clock): void {
  if (incoming.complete) return;
  incoming.resume();
  const timer = clock.after(UNREAD_WITHIN_MS, () => incoming.destroy());
  for (const event of ['end', 'close']) incoming.once(event, () => timer.cancel());
}

/** Null: something is unusual. */
function usualHeaders(raw: readonly string[]): HeaderSet | null {
  const headers = new Map<string, string>();
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    if (UNUSUAL.has(name)) return null;
    if (!NEEDED.has(name)) continue;
    if (headers.has(name)) return null;
    headers.set(name, raw[i + 1] ?? '');
  }
  const length = headers.get('content-length') ?? '';
  if (!LENGTH.test(length) || Number(length) > MAX_BODY_BYTES) return null;
  return headers.get('content-type') === JSON_TYPE ? new HeaderSet(headers) : null;
}

class HeaderSet {
  readonly #byName: ReadonlyMap<string, string>;

  constructor(byName: ReadonlyMap<string, string>) {
    this.#byName = byName;
  }

  get(name: string): string | null {
    // A check that reads a header which was not kept would find none, and let the request pass.
    assert(NEEDED.has(name) || UNUSUAL.has(name), `header ${name} is read, so it has to be kept`);
    return this.#byName.get(name) ?? null;
  }
}

class NodeRequest implements Exchange {
  readonly method: string;
  readonly headers: HeaderSet;
  readonly search = '';
  readonly base = '';
  readonly #incoming: IncomingMessage;

  constructor(incoming: IncomingMessage, headers: HeaderSet) {
    this.#incoming = incoming;
    this.method = incoming.method ?? '';
    this.headers = headers;
  }

  get url(): URL {
    return new URL(`http://${this.headers.get('host')}${this.#incoming.url}`);
  }

  get peer(): string | undefined {
    return this.#incoming.socket.remoteAddress;
  }

  get gone(): AbortSignal {
    return goneOf(this.#incoming.socket);
  }

  get allHeaders(): Headers {
    const headers = new Headers();
    const { rawHeaders } = this.#incoming;
    for (let i = 0; i < rawHeaders.length; i += 2)
      headers.append(rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '');
    return headers;
  }

  params(): Record<string, string> {
    return {};
  }

  readBody(limits: BodyLimits): Promise<Readonly<Record<string, unknown>>> {
    return readIncoming(this.#incoming, limits);
  }
}

/** One for each connection, which its requests share: a signal for each would cost too much. */
const closings = new WeakMap<Socket, AbortController>();

function goneOf(socket: Socket): AbortSignal {
  let closing = closings.get(socket);
  if (closing === undefined) {
    const made = new AbortController();
    closing = made;
    closings.set(socket, made);
    if (socket.destroyed) made.abort();
    else socket.once('close', () => made.abort());
  }
  return closing.signal;
}
