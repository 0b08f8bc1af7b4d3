/** A pipeline that is a function: of the configuration, or the built-in one. */
import type { Clock } from '../../core/clock.ts';
import type { IntentSession } from '../../intents/intent-session.ts';
import type { KindFunction } from '../../intents/kind.ts';
import type {
  Pipeline,
  PipelineContext,
  PipelineDetail,
  PipelineEnd,
  PipelineFunction,
  PipelineHold,
  Running,
} from './pipeline.ts';

/** Longer results are not kept. */
const MAX_RESULT_BYTES = 4_096;
/** Longer messages are cut. */
const MAX_ERROR_LENGTH = 500;
/** How often the built-in function reports progress. */
const REPORT_EVERY_MS = 1_000;

/** `call` calls the function of the configuration. It may throw. */
export function functionPipeline(
  clock: Clock,
  call: (session: IntentSession, hold: PipelineHold) => unknown,
): Pipeline['start'] {
  return (session: IntentSession, hold: PipelineHold): Running => {
    const startedAtMs = clock.monotonicMs();
    let isStopped = false;
    const end = (how: 'completed' | 'failed', rest: Partial<PipelineDetail>): PipelineEnd => {
      const tookMs = Math.round(clock.monotonicMs() - startedAtMs);
      const wasStopped = isStopped || hold.signal.aborted;
      return { how: wasStopped ? 'stopped' : how, isGone: true, detail: { tookMs, ...rest } };
    };
    const ended = called(call, session, hold).then(
      (result) => end('completed', resultDetail(result)),
      (error: unknown) => end('failed', { error: messageOf(error) }),
    );
    return {
      started: NO_GROUP,
      ended,
      begin: () => {},
      extend: () => {},
      stop: () => {
        isStopped = true;
      },
    };
  };
}

/** A function runs in this process. */
const NO_GROUP = Promise.resolve(null);

/** Calls the function before it returns, and turns what the function throws into a rejection. */
async function called(
  call: (session: IntentSession, hold: PipelineHold) => unknown,
  session: IntentSession,
  hold: PipelineHold,
): Promise<unknown> {
  return call(session, hold);
}

/** A function of `live` or `vod` is given the session. */
export function callWithSession(run: PipelineFunction) {
  return (session: IntentSession, hold: PipelineHold): unknown => run(session, contextOf(hold));
}

/** A function of a declared kind is given the params. */
export function callWithParams(run: KindFunction) {
  return (session: IntentSession, hold: PipelineHold): unknown => {
    const { id, kind, target: key, tenant, params } = session;
    const facts = { session: { id, kind, key, tenant }, attempt: hold.attempt };
    return run(params, { ...contextOf(hold), ...facts });
  };
}

/** Closures, because the function may destructure its context. */
function contextOf(hold: PipelineHold): PipelineContext {
  const { signal, fence, slot } = hold;
  const progress = (value: unknown) => hold.progress(value);
  return {
    signal,
    fence,
    slot,
    assertHeld: () => hold.assertHeld(),
    guard: (transaction) => hold.guard(transaction),
    progress,
  };
}

/** The result, if it can be JSON and is short. */
function resultDetail(result: unknown): Partial<PipelineDetail> {
  try {
    const json = JSON.stringify(result);
    if (json === undefined || Buffer.byteLength(json) > MAX_RESULT_BYTES) return {};
    return { result: JSON.parse(json) as unknown };
  } catch {
    return {};
  }
}

/** A function may throw anything, even a value that has no text. */
function messageOf(error: unknown): string {
  try {
    const message = error instanceof Error ? error.message || error.name : String(error);
    return message.slice(0, MAX_ERROR_LENGTH).toWellFormed();
  } catch {
    return 'the function threw a value that cannot be shown';
  }
}

/**
 * Runs for a session where no pipeline is configured: reports how long it has run until it is told
 * to end.
 */
export function builtIn(clock: Clock): PipelineFunction {
  return async (_session, { signal, progress }) => {
    const startedAtMs = clock.monotonicMs();
    while (!signal.aborted) {
      progress({ runningForMs: Math.round(clock.monotonicMs() - startedAtMs) });
      await clock.sleep(REPORT_EVERY_MS, signal).catch(() => {});
    }
  };
}
