/**
 * Spans by way of OpenTelemetry's API, which is an optional peer. Whoever wants them sets an SDK up before `open`, as it is done for every
 * program; where there is none, not even the API is loaded.
 */
import type * as Api from '@opentelemetry/api';
import { LeaseLostError } from '../core/errors.ts';
import {
  type Attributes,
  type Span,
  type SpanStart,
  type Tracing,
  untraced,
} from '../core/tracing.ts';
import { packageVersion } from '../core/version.ts';

/** Where every copy of the API of version 1 looks for the SDK that was set up. */
const GLOBAL = Symbol.for('opentelemetry.js.api.1');
/** As in the header `traceparent` of W3C's Trace Context. */
const ORIGIN = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const OUT_OF_REACH =
  'An OpenTelemetry SDK is set up, but @opentelemetry/api can not be loaded from here, so Holdfast makes no spans: npm install @opentelemetry/api';
/** Once is enough, however many are opened. */
let isTold = false;

/** What traces here: an SDK, if one was set up by now and the API can be loaded. */
export async function findTracing(): Promise<Tracing> {
  if (!isSetUp()) return untraced;
  try {
    return new OpenTelemetry(await import('@opentelemetry/api'));
  } catch {
    // Set up with a copy that is not to be found from here. Work goes on without spans; who wants them has to know why there are none.
    if (!isTold) process.emitWarning(OUT_OF_REACH, 'HoldfastWarning');
    isTold = true;
    return untraced;
  }
}

function isSetUp(): boolean {
  const known: unknown = Reflect.get(globalThis, GLOBAL);
  return typeof known === 'object' && known !== null && 'trace' in known;
}

class OpenTelemetry implements Tracing {
  readonly #api: typeof Api;
  readonly #tracer: Api.Tracer;

  constructor(api: typeof Api) {
    this.#api = api;
    this.#tracer = api.trace.getTracer('holdfast', packageVersion());
  }

  run<T>(start: SpanStart, work: (span: Span) => T | Promise<T>): Promise<T> {
    const { name, attributes, isRoot = false } = start;
    const link = this.#linkTo(start.cause?.() ?? null);
    const options: Api.SpanOptions = {
      attributes: { ...attributes },
      root: isRoot,
      kind: this.#kindOf(start),
      ...(link !== null && { links: [link] }),
    };
    return this.#tracer.startActiveSpan(name, options, async (made) => {
      const span = new Recorded(made, this.#api.SpanStatusCode.ERROR);
      try {
        return await work(span);
      } catch (error) {
        span.threw(error);
        throw error;
      } finally {
        made.end();
      }
    });
  }

  origin(): string | null {
    const active = this.#api.trace.getActiveSpan()?.spanContext();
    if (active === undefined || !this.#api.isSpanContextValid(active)) return null;
    const flags = active.traceFlags.toString(16).padStart(2, '0');
    return `00-${active.traceId}-${active.spanId}-${flags}`;
  }

  #kindOf({ kind }: SpanStart): Api.SpanKind {
    const { SpanKind } = this.#api;
    if (kind === undefined) return SpanKind.INTERNAL;
    return kind === 'producer' ? SpanKind.PRODUCER : SpanKind.CONSUMER;
  }

  /** Null also for what others may have written there. */
  #linkTo(cause: string | null): Api.Link | null {
    const [, traceId, spanId, flags] = ORIGIN.exec(cause ?? '') ?? [];
    if (traceId === undefined || spanId === undefined || flags === undefined) return null;
    const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
    return this.#api.isSpanContextValid(context) ? { context } : null;
  }
}

class Recorded implements Span {
  readonly #span: Api.Span;
  readonly #error: Api.SpanStatusCode;

  constructor(span: Api.Span, error: Api.SpanStatusCode) {
    this.#span = span;
    this.#error = error;
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes({ ...attributes });
  }

  fail(message: string): void {
    this.#span.setStatus({ code: this.#error, message });
  }

  threw(error: unknown): void {
    const known = error instanceof Error ? error : new Error(textOf(error));
    this.#span.recordException(known);
    this.fail(known.message);
  }

  watch({ signal }: { readonly signal: AbortSignal }): void {
    if (signal.aborted) this.#stopped(signal.reason);
    else signal.addEventListener('abort', () => this.#stopped(signal.reason), { once: true });
  }

  #stopped(reason: unknown): void {
    // Nobody is told of what comes after the end.
    if (!this.#span.isRecording()) return;
    if (!(reason instanceof LeaseLostError)) {
      this.#span.addEvent('stopped', { 'holdfast.why': textOf(reason) });
    } else if (reason.reason !== 'released') {
      const { key, fence, reason: why } = reason;
      this.#span.addEvent('lease.lost', {
        'holdfast.key': key,
        'holdfast.fence': fence,
        'holdfast.reason': why,
      });
    }
  }
}

/** Anything can be thrown, also what can not be made text of. */
function textOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? thrown.message : String(thrown);
  } catch {
    return 'something that is no error was thrown';
  }
}
