import { systemClock } from '../../../core/clock.ts';
import {
  OutcomeUnknownError,
  StoreRefusedError,
  StoreUnreachableError,
} from '../../../core/errors.ts';
import { jittered, systemRandom } from '../../../core/random.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { Ending } from '../../ui/ending.ts';

/** Pauses between attempts double from the first to the second. */
const PAUSE_FIRST_MS = 250;
const PAUSE_MOST_MS = 5_000;
/** How often the same reason is said. */
const REPEAT_MS = 30_000;

/** What a store says that will not let us in, however often we ask. */
const FINAL = /^(NOAUTH|WRONGPASS|NOPERM)\b/;

/** Opens the store, trying until it is there; null if we are asked to end before that. */
export async function connect(
  open: () => Promise<Holdfast>,
  log: Log,
  ending: Ending,
): Promise<Holdfast | null> {
  let said = '';
  let saidAtMs = 0;
  for (let pauseMs = PAUSE_FIRST_MS; !ending.asked.aborted; pauseMs *= 2) {
    try {
      return await ending.unlessAsked(open());
    } catch (error) {
      if (!mayPass(error)) throw error;
      // What has been said already is news again only after a while.
      const isNews = said !== error.message || systemClock.monotonicMs() - saidAtMs > REPEAT_MS;
      if (isNews) saidAtMs = systemClock.monotonicMs();
      said = error.message;
      log.say(isNews ? 'warn' : 'debug', `${error.message} It is tried again until it is there.`);
      const nextMs = jittered(Math.min(pauseMs, PAUSE_MOST_MS), systemRandom);
      await systemClock.sleep(nextMs, ending.asked).catch(() => {});
    }
  }
  return null;
}

function mayPass(error: unknown): error is Error {
  if (error instanceof StoreRefusedError) return !FINAL.test(error.reply);
  return error instanceof StoreUnreachableError || error instanceof OutcomeUnknownError;
}
