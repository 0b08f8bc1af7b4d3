/** One request and its answer, read up to a limit. A redirect is an answer like any other here. */
import { createHash } from 'node:crypto';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../../../core/clock.ts';
import { isInside } from './addresses.ts';
import type { ConnectionPool } from './connection-pool.ts';

export interface HttpRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly pool: ConnectionPool;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /**
   * Throws if the lease is over. The signal may fire later: a process that was stopped reads its
   * sockets before its timers fire.
   */
  assertHeld(): void;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** When the answer began, on the monotonic clock. */
  readonly beganMs: number;
  /** Bytes of the body that were read. */
  readonly size: number;
  /** The body has more bytes, which were not read. */
  readonly truncated: boolean;
  /** SHA-256 of the bytes that were read, in hexadecimal digits. */
  readonly hash: string;
  /** The answer came from a public address, or from an unknown one. */
  readonly isFromOutside: boolean;
}

/** Rejects with the signal's reason as soon as the signal fires, whatever the request is doing. */
export async function sendRequest(wanted: HttpRequest): Promise<Answer> {
  try {
    return await attempt(wanted, false);
  } catch (error) {
    // The server may close a kept connection just as it is used. There was no answer, and a second
    // request does no harm; over a new connection it cannot happen again.
    if (error instanceof KeptConnectionLostError) return attempt(wanted, true);
    throw error;
  }
}

class KeptConnectionLostError extends Error {}

/**
 * Connections to loopback or private addresses, added when each was ready. An answer may come after
 * the end of its connection, when its address is no longer known: any other connection counts as
 * outside.
 */
const insideSockets = new WeakSet<Socket>();

function attempt(wanted: HttpRequest, isFresh: boolean): Promise<Answer> {
  const { url, headers, pool, signal, assertHeld } = wanted;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    assertHeld();
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const options = pool.requestOptions(url, { isFresh, assertHeld });
    const request = send(url, { method: 'GET', headers, ...options });
    request.on('socket', (socket) =>
      whenReady(socket, () => {
        if (isInside(socket.remoteAddress)) insideSockets.add(socket);
        write(request, assertHeld);
      }),
    );
    const onAbort = () => {
      reject(signal.reason);
      request.destroy();
    };
    signal.addEventListener('abort', onAbort, { once: true });
    let isAnswered = false;
    request.on('response', (response) => {
      isAnswered = true;
      read(wanted, request, response).then(resolve, reject);
    });
    request.on('error', (error) => {
      reject(!isAnswered && isLostKept(request, error) ? new KeptConnectionLostError() : error);
    });
    request.on('close', () => {
      signal.removeEventListener('abort', onAbort);
      // For example a server that speaks another protocol: no answer and no error, only an end.
      if (!isAnswered) reject(new Error('the connection was closed without an answer'));
    });
  });
}

/** Node would buffer the request until there is a connection, and then write it however late. */
function whenReady(socket: Socket, run: () => void): void {
  const isSecure = socket instanceof TLSSocket;
  // Null until the handshake is done.
  const isReady = isSecure ? socket.alpnProtocol !== null : !socket.connecting;
  if (isReady) run();
  else socket.once(isSecure ? 'secureConnect' : 'connect', run);
}

/** Sends the request. Nothing of it is sent before. */
function write(request: ClientRequest, assertHeld: () => void): void {
  if (request.destroyed) return;
  try {
    assertHeld();
    request.end();
  } catch (error) {
    request.destroy(error as Error);
  }
}

function isLostKept(request: ClientRequest, error: NodeJS.ErrnoException): boolean {
  return request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

function read(
  wanted: HttpRequest,
  request: ClientRequest,
  response: IncomingMessage,
): Promise<Answer> {
  const { maxBytes, clock } = wanted;
  const hash = createHash('sha256');
  const beganMs = clock.monotonicMs();
  const isFromOutside = !insideSockets.has(response.socket);
  const { statusCode: status = 0, headers } = response;
  let size = 0;
  let isOver = false;
  return new Promise((resolve, reject) => {
    const finish = (truncated: boolean) => {
      isOver = true;
      const digest = hash.digest('hex');
      resolve({ status, headers, beganMs, size, truncated, hash: digest, isFromOutside });
    };
    response.on('data', (chunk: Buffer) => {
      if (isOver) return;
      const kept = chunk.subarray(0, maxBytes - size);
      hash.update(kept);
      size += kept.length;
      if (kept.length === chunk.length) return;
      finish(true);
      // The body may be endless: the connection is of no more use.
      request.destroy();
    });
    response.on('end', () => {
      if (!isOver) finish(false);
    });
    response.on('error', reject);
    response.on('close', () => reject(new Error('the answer broke off')));
  });
}
