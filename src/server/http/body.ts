/** The body of a request: read only as far as it may be long, and no longer than it may take. */
import type { Clock } from '../../core/clock.ts';
import { Problem } from './problem.ts';
import { parseStrictJson } from './strict-json.ts';

/** Far more than anything that is asked for here. */
export const LARGEST_BODY = 16_384;
const MEDIA_TYPE = /^application\/json[ \t]*(;[ \t]*charset[ \t]*=[ \t]*("utf-8"|utf-8)[ \t]*)?$/i;

export interface BodyTerms {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** What serves this sees to it that a body is no longer than its `Content-Length` says. */
  readonly isFramed: boolean;
}

/** The JSON object that came with the request. */
export async function readBody(
  request: Request,
  terms: BodyTerms,
): Promise<Readonly<Record<string, unknown>>> {
  if (!MEDIA_TYPE.test(request.headers.get('content-type') ?? '')) {
    throw new Problem('unsupported-media-type', {
      detail: 'Send the body as JSON in UTF-8, with the header Content-Type: application/json',
    });
  }
  if (request.headers.get('content-encoding') !== null) {
    throw new Problem('unsupported-media-type', {
      detail: 'Send the body as it is, without Content-Encoding.',
    });
  }
  return parseStrictJson(await bytesOf(request, terms));
}

/** For what takes no body: one that is there was meant to change something, and would not. */
export function refuseBody(headers: Headers): void {
  const length = headers.get('content-length');
  const isEmpty = length === null || /^0+$/.test(length);
  if (isEmpty && headers.get('transfer-encoding') === null) return;
  throw new Problem('invalid-request', { detail: 'This takes no body. Send it without one.' });
}

async function bytesOf(
  request: Request,
  { clock, timeoutMs, isFramed }: BodyTerms,
): Promise<Uint8Array> {
  const announced = request.headers.get('content-length');
  if (announced !== null && Number(announced) > LARGEST_BODY) throw tooLarge();
  const reading =
    isFramed && announced !== null ? readAtOnce(request) : readInPieces(request.body?.getReader());
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeoutMs, () => {
      reading.stop();
      reject(tooSlow(timeoutMs));
    });
    reading.bytes.then(resolve, reject).finally(() => timer.cancel());
  });
}

interface Reading {
  readonly bytes: Promise<Uint8Array>;
  /** Whatever comes later is nobody's. */
  stop(): void;
}

/** Several times cheaper than a stream; for where no more can come than was announced. */
function readAtOnce(request: Request): Reading {
  const read = request.arrayBuffer().catch(brokenOff);
  return {
    bytes: read.then((buffer) => joined([new Uint8Array(buffer)], buffer.byteLength)),
    stop() {},
  };
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

function readInPieces(reader: Reader | undefined): Reading {
  if (reader === undefined) return { bytes: Promise.resolve(new Uint8Array()), stop() {} };
  const stop = () => void reader.cancel().catch(() => {});
  return { bytes: piecesOf(reader).finally(stop), stop };
}

async function piecesOf(reader: Reader): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(brokenOff);
    if (done) return joined(pieces, length);
    length += value.byteLength;
    if (length > LARGEST_BODY) throw tooLarge();
    pieces.push(value);
  }
}

/** The client has gone: nobody reads this. */
function brokenOff(): never {
  throw new Problem('invalid-request', { detail: 'The body ended before it was complete.' });
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  if (length > LARGEST_BODY) throw tooLarge();
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

/** What has not been read of the body is not to be taken for the next request. */
const LAST = { Connection: 'close' };

function tooLarge(): Problem {
  return new Problem('body-too-large', {
    detail: `A body may have ${LARGEST_BODY} bytes.`,
    headers: LAST,
  });
}

function tooSlow(timeoutMs: number): Problem {
  return new Problem('request-timeout', {
    detail: `The body had not arrived after ${timeoutMs} ms.`,
    headers: LAST,
  });
}
