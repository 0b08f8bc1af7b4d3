/** The body of a request: read only as far as it may be long, and no longer than it may take. */
import type { Clock } from '../base/clock.ts';
import { Problem } from './problem.ts';
import { parseStrictJson } from './strict-json.ts';

/** Far more than anything that is asked for here. */
export const LARGEST_BODY = 16_384;
const MEDIA_TYPE = /^application\/json[ \t]*(;[ \t]*charset[ \t]*=[ \t]*("utf-8"|utf-8)[ \t]*)?$/i;

export interface BodyTerms {
  readonly clock: Clock;
  readonly timeoutMs: number;
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

async function bytesOf(request: Request, { clock, timeoutMs }: BodyTerms): Promise<Uint8Array> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > LARGEST_BODY) throw tooLarge();
  const reader = request.body?.getReader();
  if (reader === undefined) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  let isLate = false;
  const timer = clock.after(timeoutMs, () => {
    isLate = true;
    // Ends the read that waits; whatever comes later is nobody's.
    reader.cancel().catch(() => {});
  });
  try {
    for (;;) {
      const { done, value } = await readFrom(reader);
      if (isLate) throw tooSlow(timeoutMs);
      if (done) return joined(chunks, length);
      length += value.byteLength;
      if (length > LARGEST_BODY) throw tooLarge();
      chunks.push(value);
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    throw error;
  } finally {
    timer.cancel();
  }
}

type Chunk = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']>>;

async function readFrom(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Chunk> {
  try {
    return await reader.read();
  } catch {
    // The client has gone: nobody reads this.
    throw new Problem('invalid-request', { detail: 'The body ended before it was complete.' });
  }
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
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
