/**
 * Spans without a dependency on OpenTelemetry. Without a tracing SDK, `untraced` only calls the
 * work; the real implementation is loaded in `telemetry/`. `docs/tracing.md` has every name.
 */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  readonly name: string;
  readonly attributes: Attributes;
  /**
   * A timer started the work. The span that was active when the timer was set is not its parent.
   */
  readonly isRoot?: true;
  readonly kind?: 'producer' | 'consumer';
  /** The span that caused it, as `origin` returned it there. */
  readonly cause?: () => string | null;
}

export interface Span {
  set(attributes: Attributes): void;
  /** Marks the span as failed without an exception. */
  fail(why: string): void;
  /** Records when and why the signal told the work to stop, such as a lost lease. */
  watch(work: { readonly signal: AbortSignal }): void;
}

export interface Tracing {
  /**
   * Runs `work` in a new span. Its error is recorded and rethrown. Spans made inside `work` are
   * children.
   */
  run<T>(start: SpanStart, work: (span: Span) => T | Promise<T>): T | Promise<T>;
  /** The active span as text, for links from other spans; null if there is none. */
  origin(): string | null;
}

const NO_SPAN: Span = { set() {}, fail() {}, watch() {} };

export const untraced: Tracing = {
  run: (_, work) => work(NO_SPAN),
  origin: () => null,
};
