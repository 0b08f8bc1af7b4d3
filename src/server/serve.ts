/**
 * Serves an app over HTTP/1.1, with limits against slow and malformed clients: headers and bodies
 * must arrive in time, connections are limited, and silent ones are closed. Malformed requests get
 * a problem like all others.
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener } from '@hono/node-server';
import { type Clock, systemClock } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkKnown } from '../core/options.ts';
import type { HoldfastApp } from './app.ts';
import { directOf } from './http/direct.ts';
import { isLoopback } from './http/lan.ts';
import { COMMON_HEADERS, Problem, problemResponse } from './http/problem.ts';
import { markServed } from './http/response.ts';

/** An app, or a stand-in for one. */
export type Servable = Pick<HoldfastApp, 'fetch' | 'madeToken' | 'close'>;

export interface ServeOptions {
  /** The address to listen on; default 127.0.0.1. Without tokens it must be a loopback address. */
  host?: string;
  /** Default 0: any free port. */
  port?: number;
  /** How long the headers of a request may take to arrive; default 10 s. */
  headersTimeout?: Duration;
  /** How long a whole request may take to arrive; default 30 s. The app limits bodies further. */
  requestTimeout?: Duration;
  /** How long a connection may be silent while a request is in flight; default 60 s. */
  idleTimeout?: Duration;
  /** Concurrent connections; default 10,000. Further ones are refused. */
  maxConnections?: number;
  clock?: Clock;
}

export interface Serving {
  /** The address that the server listens on; `url` is for clients on this host. */
  readonly host: string;
  readonly port: number;
  readonly url: string;
  /** The token that the app made because none is configured. Show it once to the operator. */
  readonly madeToken: string | null;
  /**
   * Accepts no more connections and closes idle ones. Waits up to `within` (5 s) for requests in
   * flight, then closes their connections too.
   */
  close(options?: { within?: Duration }): Promise<void>;
}

const KNOWN = new Set([
  'host',
  'port',
  'headersTimeout',
  'requestTimeout',
  'idleTimeout',
  'maxConnections',
  'clock',
]);
const DEFAULT_HEADERS_MS = 10_000;
const DEFAULT_REQUEST_MS = 30_000;
const DEFAULT_IDLE_MS = 60_000;
const DEFAULT_CONNECTIONS = 10_000;
const DEFAULT_CLOSE_MS = 5_000;
/** Longer than that of usual proxies, so that none reuses a connection just closed here. */
const KEEP_ALIVE_MS = 65_000;
const MAX_HEADER_BYTES = 16_384;
/** How often timeouts of connections are checked: a tenth of the timeout, within these limits. */
const MIN_CHECK_MS = 20;
const MAX_CHECK_MS = 1_000;

export async function serve(app: Servable, options: ServeOptions = {}): Promise<Serving> {
  checkKnown(options, KNOWN);
  const { host = '127.0.0.1', port = 0, clock = systemClock } = options;
  const { maxConnections = DEFAULT_CONNECTIONS } = options;
  if (app.madeToken !== null && host !== 'localhost' && !isLoopback(host)) throw needsTokens(host);
  checkWhole('port', port, 0, 65_535);
  checkWhole('maxConnections', maxConnections, 1, 1_000_000);
  const server = createServer(serverOptions(options));
  const listener = getRequestListener(
    (request, env) => app.fetch(request, markServed(env, request)),
    {
      // Replacements are faster, but `fetch` in this process would no longer give a `Response`.
      overrideGlobalObjects: false,
      errorHandler: () => malformedResponse(),
    },
  );
  const direct = directOf(app.fetch);
  const handle = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (direct?.(incoming, outgoing) === true) return;
    nameHost(incoming);
    listener(incoming, outgoing).catch(() => outgoing.destroy());
  };
  server.on('request', handle);
  // An `Expect` header other than `100-continue` is ignored, and the request is handled.
  server.on('checkExpectation', handle);
  // Without a listener Node closes the connection without a response.
  server.on('connect', (_, socket) => {
    socket.on('error', () => {});
    socket.end(problemText(connectRefused()), () => socket.destroy());
  });
  server.maxConnections = maxConnections;
  // Node would drop headers above a count, even those of a proxy. Their size is limited instead.
  server.maxHeadersCount = 0;
  server.setTimeout(durationMs(options.idleTimeout ?? DEFAULT_IDLE_MS, 'idleTimeout'));
  answerMalformed(server);
  const close = closeFunction(server, app, clock);
  const address = await listen(server, host, port);
  if (app.madeToken !== null && !isLoopback(address.address)) {
    server.close();
    throw needsTokens(host);
  }
  return { ...addressFacts(address), madeToken: app.madeToken, close };
}

function serverOptions({ headersTimeout, requestTimeout }: ServeOptions): ServerOptions {
  const headersMs = durationMs(headersTimeout ?? DEFAULT_HEADERS_MS, 'headersTimeout');
  const requestMs = durationMs(requestTimeout ?? DEFAULT_REQUEST_MS, 'requestTimeout');
  if (headersMs < 1 || requestMs < headersMs) {
    const rule = `must be at least headersTimeout, which is ${headersMs} ms and must be above 0`;
    throw new ConfigError({ field: 'requestTimeout', value: requestMs, rule });
  }
  return {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.min(Math.max(headersMs / 10, MIN_CHECK_MS), MAX_CHECK_MS),
    maxHeaderSize: MAX_HEADER_BYTES,
    insecureHTTPParser: false,
    // A missing Host header gets a problem as response, like any other mistake.
    requireHostHeader: false,
  };
}

/** HTTP/1.0, which some load balancers use, has no `Host`: the local address stands in for it. */
function nameHost({ headers, httpVersion, socket }: IncomingMessage): void {
  if (headers.host !== undefined || httpVersion !== '1.0') return;
  const { localAddress = '127.0.0.1', localPort = 80 } = socket;
  headers.host = `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

/** Node's parser emits no request for malformed input. It gets a response unless one has begun. */
function answerMalformed(server: Server): void {
  const answering = new WeakMap<Duplex, ServerResponse>();
  server.on('request', ({ socket }, response) => answering.set(socket, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket);
    const isBegun = response?.headersSent === true && !response.writableFinished;
    if (error.code === 'ECONNRESET' || !socket.writable || isBegun) socket.destroy();
    else socket.end(problemText(problemFor(error)), () => socket.destroy());
  });
}

function problemFor({ code }: NodeJS.ErrnoException): Problem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new Problem('request-timeout', { detail: 'The request did not arrive in time.' });
  return code === 'HPE_HEADER_OVERFLOW'
    ? new Problem('invalid-request', {
        detail: `Headers may have at most ${MAX_HEADER_BYTES} bytes in total.`,
      })
    : malformed();
}

function malformed(): Problem {
  return new Problem('invalid-request', { detail: 'This is not a valid HTTP request.' });
}

function connectRefused(): Problem {
  return new Problem('method-not-allowed', {
    detail: 'This server is not a proxy and does not support CONNECT.',
    headers: { Allow: 'GET, POST, PATCH, DELETE' },
  });
}

function problemText(problem: Problem): string {
  const { status, body, headers } = problemResponse(problem, '');
  const all = {
    ...COMMON_HEADERS,
    ...headers,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}

function malformedResponse(): Response {
  const { status, body, headers } = problemResponse(malformed(), '');
  return new Response(body, {
    status,
    headers: { ...COMMON_HEADERS, ...headers, Connection: 'close' },
  });
}

function listen(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    // Later errors are failed accepts (too few file descriptors). Open connections continue.
    server.on('error', (error: NodeJS.ErrnoException) => {
      const rule = `cannot listen there (${error.code ?? error.message})`;
      reject(new ConfigError({ field: 'host and port', value: `${host}:${port}`, rule }));
    });
    server.listen({ host, port }, () => resolve(server.address() as AddressInfo));
  });
}

function addressFacts({
  address,
  family,
  port,
}: AddressInfo): Pick<Serving, 'host' | 'port' | 'url'> {
  const isAny = address === '0.0.0.0' || address === '::';
  const name = family === 'IPv6' ? `[${address}]` : address;
  return { host: address, port, url: `http://${isAny ? 'localhost' : name}:${port}` };
}

function closeFunction(server: Server, app: Servable, clock: Clock): Serving['close'] {
  let closed: Promise<void> | null = null;
  // A keep-alive connection becomes idle after its response, and would stay open.
  server.on('request', (_, response) =>
    response.once('close', () => {
      if (closed !== null) clock.afterInput(() => server.closeIdleConnections());
    }),
  );
  const close = async (withinMs: number) => {
    const isClosed = new Promise<void>((resolve) => server.close(() => resolve()));
    const timer = clock.after(withinMs, () => server.closeAllConnections());
    await app.close();
    server.closeIdleConnections();
    await isClosed;
    timer.cancel();
  };
  return ({ within = DEFAULT_CLOSE_MS } = {}) => {
    closed ??= close(durationMs(within, 'within'));
    return closed;
  };
}

function checkWhole(field: string, value: number, from: number, to: number): void {
  if (Number.isSafeInteger(value) && value >= from && value <= to) return;
  throw new ConfigError({ field, value, rule: `must be a whole number from ${from} to ${to}` });
}

function needsTokens(host: string): ConfigError {
  const rule =
    'other hosts could reach it, and no token is configured. Configure a token (HOLDFAST_API_TOKEN), or listen on 127.0.0.1';
  return new ConfigError({ field: 'host', value: host, rule });
}
