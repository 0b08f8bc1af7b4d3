import { systemClock } from '../../../core/clock.ts';
import {
  OutcomeUnknownError,
  StoreRefusedError,
  StoreUnreachableError,
} from '../../../core/errors.ts';
import { jittered, systemRandom } from '../../../core/random.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { StopSignals } from '../../ui/stop-signals.ts';

/** The pauses between attempts double from the first to the second. */
const MIN_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;
/** How often the same reason is logged. */
const REPEAT_MS = 30_000;

/** Replies of a store that no retry changes. */
const FINAL = /^(NOAUTH|WRONGPASS|NOPERM)\b/;

/**
 * Opens the store, and retries while it is unavailable. Null if a signal asks to end before that.
 */
export async function connect(
  open: () => Promise<Holdfast>,
  log: Log,
  ending: StopSignals,
): Promise<Holdfast | null> {
  let logged = '';
  let loggedAtMs = 0;
  for (let pauseMs = MIN_PAUSE_MS; !ending.asked.aborted; pauseMs *= 2) {
    try {
      return await ending.unlessAsked(open());
    } catch (error) {
      if (!mayPass(error)) throw error;
      const isNews = logged !== error.message || systemClock.monotonicMs() - loggedAtMs > REPEAT_MS;
      if (isNews) loggedAtMs = systemClock.monotonicMs();
      logged = error.message;
      log.say(isNews ? 'warn' : 'debug', `${error.message} Trying again until the store answers.`);
      const nextMs = jittered(Math.min(pauseMs, MAX_PAUSE_MS), systemRandom);
      await systemClock.sleep(nextMs, ending.asked).catch(() => {});
    }
  }
  return null;
}

function mayPass(error: unknown): error is Error {
  if (error instanceof StoreRefusedError) return !FINAL.test(error.reply);
  return error instanceof StoreUnreachableError || error instanceof OutcomeUnknownError;
}
