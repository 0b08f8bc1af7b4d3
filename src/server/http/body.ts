/** Reads the body of a request, limited in size and in time. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../core/clock.ts';
import { Problem } from './problem.ts';
import { parseStrictJson } from './strict-json.ts';

/** Far more than any route needs. */
export const MAX_BODY_BYTES = 16_384;
/** What nearly all clients send. */
export const JSON_TYPE = 'application/json';
const MEDIA_TYPE = /^application\/json[ \t]*(;[ \t]*charset[ \t]*=[ \t]*("utf-8"|utf-8)[ \t]*)?$/i;

export interface BodyLimits {
  readonly clock: Clock;
  readonly timeoutMs: number;
}

/**
 * The JSON object in the body. `isFramed`: the HTTP server ensures that it is not longer than its
 * `Content-Length`.
 */
export async function readBody(
  request: Request,
  limits: BodyLimits,
  isFramed: boolean,
): Promise<Readonly<Record<string, unknown>>> {
  if (!MEDIA_TYPE.test(request.headers.get('content-type') ?? '')) {
    throw new Problem('unsupported-media-type', {
      detail: 'Send the body as JSON in UTF-8, with the header Content-Type: application/json',
    });
  }
  if (request.headers.get('content-encoding') !== null) {
    throw new Problem('unsupported-media-type', {
      detail: 'Send the body uncompressed, without Content-Encoding.',
    });
  }
  return parseStrictJson(await readBytes(request, limits, isFramed));
}

/** For routes without a body. A body would be ignored, and its sender would not notice. */
export function refuseBody(headers: Pick<Headers, 'get'>): void {
  const length = headers.get('content-length');
  const isEmpty = length === null || /^0+$/.test(length);
  if (isEmpty && headers.get('transfer-encoding') === null) return;
  throw new Problem('invalid-request', {
    detail: 'This route takes no body. Send the request without one.',
  });
}

async function readBytes(
  request: Request,
  { clock, timeoutMs }: BodyLimits,
  isFramed: boolean,
): Promise<Uint8Array> {
  const announced = request.headers.get('content-length');
  if (announced !== null && Number(announced) > MAX_BODY_BYTES) throw tooLarge();
  const reading =
    isFramed && announced !== null ? readAtOnce(request) : readChunks(request.body?.getReader());
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeoutMs, () => {
      reading.stop();
      reject(tooSlow(timeoutMs));
    });
    reading.bytes.then(resolve, reject).finally(() => timer.cancel());
  });
}

/**
 * The same from Node's own request. Its media type and length are known to be right, and the HTTP
 * server ensures that no more arrives.
 */
export function readIncoming(
  incoming: IncomingMessage,
  { clock, timeoutMs }: BodyLimits,
): Promise<Readonly<Record<string, unknown>>> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    const timer = clock.after(timeoutMs, () => {
      // What arrives later is discarded.
      incoming.off('data', keep).resume();
      reject(tooSlow(timeoutMs));
    });
    const keep = (chunk: Uint8Array) => void chunks.push(chunk);
    incoming.on('data', keep);
    incoming.once('end', () => {
      timer.cancel();
      try {
        resolve(parseStrictJson(concatenate(chunks, lengthOf(chunks))));
      } catch (error) {
        reject(error);
      }
    });
    incoming.once('error', () => {
      timer.cancel();
      reject(incomplete());
    });
  });
}

function lengthOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((length, chunk) => length + chunk.byteLength, 0);
}

interface Reading {
  readonly bytes: Promise<Uint8Array>;
  /** Bytes that arrive later are discarded. */
  stop(): void;
}

/** Several times cheaper than a stream, where no more can arrive than was announced. */
function readAtOnce(request: Request): Reading {
  const read = request.arrayBuffer().catch(throwIncomplete);
  return {
    bytes: read.then((buffer) => concatenate([new Uint8Array(buffer)], buffer.byteLength)),
    stop() {},
  };
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

function readChunks(reader: Reader | undefined): Reading {
  if (reader === undefined) return { bytes: Promise.resolve(new Uint8Array()), stop() {} };
  const stop = () => void reader.cancel().catch(() => {});
  return { bytes: readAll(reader).finally(stop), stop };
}

async function readAll(reader: Reader): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(throwIncomplete);
    if (done) return concatenate(chunks, length);
    length += value.byteLength;
    if (length > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(value);
  }
}

/** The client has closed the connection: only the log shows this problem. */
function throwIncomplete(): never {
  throw incomplete();
}

function incomplete(): Problem {
  return new Problem('invalid-request', { detail: 'The body ended before it was complete.' });
}

function concatenate(chunks: readonly Uint8Array[], length: number): Uint8Array {
  if (length > MAX_BODY_BYTES) throw tooLarge();
  const [first] = chunks;
  if (first !== undefined && chunks.length === 1) return first;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

/** The unread rest of the body must not be taken for the next request. */
const CLOSE_CONNECTION = { Connection: 'close' };

function tooLarge(): Problem {
  return new Problem('body-too-large', {
    detail: `A body may have at most ${MAX_BODY_BYTES} bytes.`,
    headers: CLOSE_CONNECTION,
  });
}

function tooSlow(timeoutMs: number): Problem {
  return new Problem('request-timeout', {
    detail: `The body did not arrive within ${timeoutMs} ms.`,
    headers: CLOSE_CONNECTION,
  });
}
