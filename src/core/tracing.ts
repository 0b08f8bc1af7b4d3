/**
 * Spans, as the rest of Holdfast may make them. Where nobody traces, and that is nearly everywhere, `untraced` calls the work and does nothing
 * else; what stands behind it otherwise is loaded in `telemetry/` alone. `docs/tracing.md` has every name.
 */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  readonly name: string;
  readonly attributes: Attributes;
  /** Nobody asked for it: a timer brought it about, and whatever span was active when that was set has nothing to do with it. */
  readonly isRoot?: true;
  readonly kind?: 'producer' | 'consumer';
  /** Where the cause of it was, as `origin` told it there. */
  readonly cause?: () => string | null;
}

export interface Span {
  set(attributes: Attributes): void;
  /** Something ended badly without being thrown. */
  fail(why: string): void;
  /** Says when the work is told to stop before its end, and why: a lost lease above all. */
  watch(work: { readonly signal: AbortSignal }): void;
}

export interface Tracing {
  /** Runs `work` in a span of its own; what it throws is noted, and thrown. Spans made within it are its children. */
  run<T>(start: SpanStart, work: (span: Span) => T | Promise<T>): T | Promise<T>;
  /** The span that is active here, as text for others to link to; null where there is none. */
  origin(): string | null;
}

const NO_SPAN: Span = { set() {}, fail() {}, watch() {} };

export const untraced: Tracing = {
  run: (_, work) => work(NO_SPAN),
  origin: () => null,
};
