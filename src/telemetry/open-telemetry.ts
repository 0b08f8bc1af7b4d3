/**
 * Spans through OpenTelemetry's API, an optional peer dependency. A program that wants spans sets
 * up an SDK before `open`. Without an SDK the API is not even loaded.
 */
import type * as Api from '@opentelemetry/api';
import { LeaseLostError } from '../core/errors.ts';
import { type Span, type SpanStart, type Tracing, untraced } from '../core/tracing.ts';
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
    return tracingThrough(await import('@opentelemetry/api'));
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

function tracingThrough(api: typeof Api): Tracing {
  const tracer = api.trace.getTracer('holdfast', packageVersion());
  return {
    run: (start, work) =>
      tracer.startActiveSpan(start.name, optionsOf(api, start), async (span) => {
        try {
          return await work(recordedIn(span, api));
        } catch (error) {
          const known = error instanceof Error ? error : new Error(textOf(error));
          span.recordException(known);
          span.setStatus({ code: api.SpanStatusCode.ERROR, message: known.message });
          throw error;
        } finally {
          span.end();
        }
      }),
    origin() {
      const active = api.trace.getActiveSpan()?.spanContext();
      if (active === undefined || !api.isSpanContextValid(active)) return null;
      const flags = active.traceFlags.toString(16).padStart(2, '0');
      return `00-${active.traceId}-${active.spanId}-${flags}`;
    },
  };
}

function optionsOf(api: typeof Api, start: SpanStart): Api.SpanOptions {
  const { attributes, isRoot = false } = start;
  const link = linkTo(api, start.cause?.() ?? null);
  return {
    attributes: { ...attributes },
    root: isRoot,
    kind: kindOf(api, start),
    links: link === null ? [] : [link],
  };
}

function kindOf({ SpanKind }: typeof Api, { kind }: SpanStart): Api.SpanKind {
  if (kind === undefined) return SpanKind.INTERNAL;
  return kind === 'producer' ? SpanKind.PRODUCER : SpanKind.CONSUMER;
}

/** Null for an invalid cause, too: other programs may have written it. */
function linkTo(api: typeof Api, cause: string | null): Api.Link | null {
  const [, traceId, spanId, flags] = ORIGIN.exec(cause ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return api.isSpanContextValid(context) ? { context } : null;
}

function recordedIn(span: Api.Span, api: typeof Api): Span {
  return {
    set(attributes) {
      span.setAttributes({ ...attributes });
    },
    fail(message) {
      span.setStatus({ code: api.SpanStatusCode.ERROR, message });
    },
    watch({ signal }) {
      if (signal.aborted) recordStop(span, signal.reason);
      else signal.addEventListener('abort', () => recordStop(span, signal.reason), { once: true });
    },
  };
}

function recordStop(span: Api.Span, reason: unknown): void {
  // A span that has ended takes no more events.
  if (!span.isRecording()) return;
  if (!(reason instanceof LeaseLostError)) {
    span.addEvent('stopped', { 'holdfast.why': textOf(reason) });
  } else if (reason.reason !== 'released') {
    const { key, fence, reason: why } = reason;
    span.addEvent('lease.lost', {
      'holdfast.key': key,
      'holdfast.fence': fence,
      'holdfast.reason': why,
    });
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
