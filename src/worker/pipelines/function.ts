/** A pipeline that is a function of the configuration. */
import type { Clock } from '../../core/clock.ts';
import type { IntentSession } from '../../intents/intent-session.ts';
import type {
  Pipeline,
  PipelineDetail,
  PipelineEnd,
  PipelineFunction,
  PipelineHold,
  Running,
} from './pipeline.ts';

/** Longer results are not kept. */
const RESULT_BYTES = 4_096;
/** Longer messages are cut. */
const ERROR_LENGTH = 500;

export function functionPipeline(
  run: PipelineFunction,
  resource: string | null,
  { clock }: { readonly clock: Clock },
): Pipeline {
  const start = (session: IntentSession, hold: PipelineHold): Running => {
    const startedMs = clock.monotonicMs();
    let isTold = false;
    const end = (how: 'completed' | 'failed', rest: Partial<PipelineDetail>): PipelineEnd => {
      const tookMs = Math.round(clock.monotonicMs() - startedMs);
      const wasStopped = isTold || hold.signal.aborted;
      return { how: wasStopped ? 'stopped' : how, isGone: true, detail: { tookMs, ...rest } };
    };
    const ended = call(run, session, hold).then(
      (result) => end('completed', kept(result)),
      (error: unknown) => end('failed', { error: messageOf(error) }),
    );
    const stop = () => {
      isTold = true;
    };
    return { started: NO_GROUP, begin: () => {}, ended, extend: () => {}, stop };
  };
  return { resource, start };
}

/** It runs in this process. */
const NO_GROUP = Promise.resolve(null);

/** It is called at once, not when whatever else is due has been done. */
async function call(
  run: PipelineFunction,
  session: IntentSession,
  hold: PipelineHold,
): Promise<unknown> {
  const { signal, fence, slot } = hold;
  // Whoever is given these may well take them apart.
  const progress = (value: unknown) => hold.progress(value);
  return run(session, { signal, fence, slot, assertHeld: () => hold.assertHeld(), progress });
}

/** What it returned, if that can be JSON and is short. */
function kept(result: unknown): Partial<PipelineDetail> {
  try {
    const json = JSON.stringify(result);
    if (json === undefined || Buffer.byteLength(json) > RESULT_BYTES) return {};
    return { result: JSON.parse(json) as unknown };
  } catch {
    return {};
  }
}

/** What it threw may be anything, also something that can not be made a text of. */
function messageOf(error: unknown): string {
  try {
    const message = error instanceof Error ? error.message || error.name : String(error);
    return message.slice(0, ERROR_LENGTH).toWellFormed();
  } catch {
    return 'it threw something that can not be shown';
  }
}
