/**
 * Spans through OpenTelemetry's API, an optional peer dependency. A program that wants spans sets up
 * an SDK before `open`. Without an SDK the API is not even loaded.
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

/** The global where every copy of API version 1 registers the SDK. */
const GLOBAL = Symbol.for('opentelemetry.js.api.1');
/** The form of `traceparent` in W3C Trace Context. */
const ORIGIN = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const OUT_OF_REACH =
  'An OpenTelemetry SDK is set up, but Holdfast cannot load @opentelemetry/api, so it makes no spans. Run: npm install @opentelemetry/api';
/** The warning is emitted once per process. */
let hasWarned = false;

/** Tracing through the SDK, if one is set up and the API can be loaded; else none. */
export async function findTracing(): Promise<Tracing> {
  if (!isSetUp()) return untraced;
  try {
    return new OpenTelemetry(await import('@opentelemetry/api'));
  } catch {
    // The SDK uses a copy of the API that cannot be loaded from here. Work continues without spans.
    if (!hasWarned) process.emitWarning(OUT_OF_REACH, 'HoldfastWarning');
    hasWarned = true;
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
      links: link === null ? [] : [link],
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

  /** Null for an invalid cause, too: other programs may have written it. */
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
    // A span that has ended takes no more events.
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

/** Any value can be thrown, even one whose conversion to text throws. */
function textOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? thrown.message : String(thrown);
  } catch {
    return 'a value that cannot be shown was thrown';
  }
}
