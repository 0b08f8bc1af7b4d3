/**
 * Serves an app over HTTP, and holds clients to a pace: headers and bodies have to arrive in time, connections are counted, and one over
 * which nothing moves is ended. What is no HTTP gets the same kind of answer as everything else.
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
import { isLoopback } from './http/ip-restriction.ts';
import { Problem } from './http/problem.ts';
import { ANSWER_HEADERS, problemAnswer } from './http/problem-answer.ts';
import { servedEnv } from './http/sending.ts';

/** What is served: an app, or what stands in for one. */
export type Servable = Pick<HoldfastApp, 'fetch' | 'madeToken' | 'close'>;

export interface ServeOptions {
  /** Which address to listen on; default 127.0.0.1. Without tokens it has to be one that only this host reaches. */
  host?: string;
  /** Default 0: one that is free. */
  port?: number;
  /** How long the headers of a request may take to arrive; default 10 s. */
  headersTimeout?: Duration;
  /** How long all of a request may take to arrive; default 30 s. Bodies have a time of their own, which the app knows. */
  requestTimeout?: Duration;
  /** How long a connection may be silent while something is being answered; default 60 s. */
  idleTimeout?: Duration;
  /** Connections at once; default 10,000. Those above it are not taken. */
  maxConnections?: number;
  clock?: Clock;
}

export interface Serving {
  /** What it listens on, and where clients of this host find it. */
  readonly host: string;
  readonly port: number;
  readonly url: string;
  /** The token that was made because none is configured: to be shown once to whoever started this. */
  readonly madeToken: string | null;
  /** Takes no more connections, ends idle ones, waits up to `within` (5 s) for what is being answered, and then ends that, too. */
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
/** Longer than proxies usually keep a connection: who hangs up first must not be who is about to be asked. */
const KEEP_ALIVE_MS = 65_000;
const MOST_HEADER_BYTES = 16_384;
/** How often connections are looked at: a fraction of what they may take, and no burden. */
const SHORTEST_CHECK_MS = 20;
const LONGEST_CHECK_MS = 1_000;

export async function serve(app: Servable, options: ServeOptions = {}): Promise<Serving> {
  checkKnown(options, KNOWN);
  const { host = '127.0.0.1', port = 0, clock = systemClock } = options;
  const { maxConnections = DEFAULT_CONNECTIONS } = options;
  if (app.madeToken !== null && host !== 'localhost' && !isLoopback(host)) throw needsTokens(host);
  checkWhole('port', port, 0, 65_535);
  checkWhole('maxConnections', maxConnections, 1, 1_000_000);
  const server = createServer(serverOptions(options));
  const listener = getRequestListener(
    (request, env) => app.fetch(request, servedEnv(env, request)),
    {
      // Replaced, they are faster; but then what others get from `fetch` is no `Response` any more.
      overrideGlobalObjects: false,
      errorHandler: () => malformedResponse(),
    },
  );
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    nameHost(incoming);
    listener(incoming, outgoing).catch(() => outgoing.destroy());
  };
  server.on('request', answer);
  // What is expected of us beyond `100-continue` is not done, but neither is it a reason to say nothing else.
  server.on('checkExpectation', answer);
  // Without a listener Node hangs up without a word.
  server.on('connect', (_, socket) => {
    socket.on('error', () => {});
    socket.end(malformedText(noProxy()), () => socket.destroy());
  });
  server.maxConnections = maxConnections;
  // Node would leave out what is beyond a count, and so perhaps what a proxy has added: their size is limited instead.
  server.maxHeadersCount = 0;
  server.setTimeout(durationMs(options.idleTimeout ?? DEFAULT_IDLE_MS, 'idleTimeout'));
  answerMalformed(server);
  const close = closing(server, app, clock);
  const address = await listening(server, host, port);
  if (app.madeToken !== null && !isLoopback(address.address)) {
    server.close();
    throw needsTokens(host);
  }
  return { ...placeOf(address), madeToken: app.madeToken, close };
}

function serverOptions({ headersTimeout, requestTimeout }: ServeOptions): ServerOptions {
  const headersMs = durationMs(headersTimeout ?? DEFAULT_HEADERS_MS, 'headersTimeout');
  const requestMs = durationMs(requestTimeout ?? DEFAULT_REQUEST_MS, 'requestTimeout');
  if (headersMs < 1 || requestMs < headersMs) {
    const rule = `it is at least headersTimeout, which is ${headersMs} ms and has to be above 0`;
    throw new ConfigError({ field: 'requestTimeout', value: requestMs, rule });
  }
  return {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.min(
      Math.max(headersMs / 10, SHORTEST_CHECK_MS),
      LONGEST_CHECK_MS,
    ),
    maxHeaderSize: MOST_HEADER_BYTES,
    insecureHTTPParser: false,
    // Its lack is a problem like any other, and answered as one.
    requireHostHeader: false,
  };
}

/** HTTP/1.0, as some load balancers speak it, needs no `Host`: the request is for the address it has reached. */
function nameHost({ headers, httpVersion, socket }: IncomingMessage): void {
  if (headers.host !== undefined || httpVersion !== '1.0') return;
  const { localAddress = '127.0.0.1', localPort = 80 } = socket;
  headers.host = `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

/** What the parser refuses never becomes a request. It is answered all the same, unless an answer is on its way already. */
function answerMalformed(server: Server): void {
  const answering = new WeakMap<Duplex, ServerResponse>();
  server.on('request', ({ socket }, response) => answering.set(socket, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket);
    const isBegun = response?.headersSent === true && !response.writableFinished;
    if (error.code === 'ECONNRESET' || !socket.writable || isBegun) socket.destroy();
    else socket.end(malformedText(problemFor(error)), () => socket.destroy());
  });
}

function problemFor({ code }: NodeJS.ErrnoException): Problem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new Problem('request-timeout', { detail: 'The request did not arrive in time.' });
  return code === 'HPE_HEADER_OVERFLOW'
    ? new Problem('invalid-request', {
        detail: `Headers may have ${MOST_HEADER_BYTES} bytes in all.`,
      })
    : malformed();
}

function malformed(): Problem {
  return new Problem('invalid-request', { detail: 'This is no HTTP request that makes sense.' });
}

function noProxy(): Problem {
  return new Problem('method-not-allowed', {
    detail: 'This is no proxy: CONNECT leads nowhere.',
    headers: { Allow: 'GET, POST, DELETE' },
  });
}

function malformedText(problem: Problem): string {
  const { status, body, headers } = problemAnswer(problem, '');
  const all = {
    ...ANSWER_HEADERS,
    ...headers,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}

function malformedResponse(): Response {
  const { status, body, headers } = problemAnswer(malformed(), '');
  return new Response(body, {
    status,
    headers: { ...ANSWER_HEADERS, ...headers, Connection: 'close' },
  });
}

function listening(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    // Later ones are of connections that could not be taken, for want of files: who is connected is served on.
    server.on('error', (error: NodeJS.ErrnoException) => {
      const rule = `it can not be listened on (${error.code ?? error.message})`;
      reject(new ConfigError({ field: 'host and port', value: `${host}:${port}`, rule }));
    });
    server.listen({ host, port }, () => resolve(server.address() as AddressInfo));
  });
}

function placeOf({ address, family, port }: AddressInfo): Pick<Serving, 'host' | 'port' | 'url'> {
  const isAny = address === '0.0.0.0' || address === '::';
  const name = family === 'IPv6' ? `[${address}]` : address;
  return { host: address, port, url: `http://${isAny ? 'localhost' : name}:${port}` };
}

function closing(server: Server, app: Servable, clock: Clock): Serving['close'] {
  let closed: Promise<void> | null = null;
  // A connection that is kept alive is idle once its request has been answered, and would stay.
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
  throw new ConfigError({ field, value, rule: `it is a whole number from ${from} to ${to}` });
}

function needsTokens(host: string): ConfigError {
  const rule =
    'others could reach it, and no token is configured. Give it tokens (HOLDFAST_API_TOKEN), or listen on 127.0.0.1';
  return new ConfigError({ field: 'host', value: host, rule });
}
