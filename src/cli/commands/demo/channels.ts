/**
 * Two channels that are watched, always, and another one of them every now and then: sessions that
 * the instances run on their tuners.
 */
import type { Clock } from '../../../core/clock.ts';
import { HoldfastError } from '../../../core/errors.ts';
import type { Intents } from '../../../intents/intents.ts';

const CHANNELS = ['harbour-cam', 'rain-radar', 'sea-level', 'sunrise', 'wind-map'];
const WATCHED = 2;
/** How long until the one that is watched the longest is switched off for the next. */
const SWITCH_MS = 20_000;
/** From the first to the second. */
const BEGIN_MS = 1_000;
const VIEWER = { tenant: null, client: 'demo' };

/** Until the signal fires. What an operator stops stays stopped until its turn is over. */
export async function watchChannels(
  intents: Intents,
  clock: Clock,
  over: AbortSignal,
): Promise<void> {
  const watched: string[] = [];
  for (let next = 0; !over.aborted; next++) {
    const serviceRef = CHANNELS[next % CHANNELS.length] as string;
    try {
      const { session } = await intents.submit({ type: 'stream.start', serviceRef }, VIEWER);
      watched.push(session.id);
      const [sessionId] = watched.length > WATCHED ? watched.splice(0, 1) : [];
      if (sessionId !== undefined) await intents.submit({ type: 'stream.stop', sessionId }, VIEWER);
    } catch (error) {
      // The store is away for a while, or an operator was faster.
      if (!(error instanceof HoldfastError)) throw error;
    }
    const pauseMs = watched.length < WATCHED ? BEGIN_MS : SWITCH_MS;
    await clock.sleep(pauseMs, over).catch(() => {});
  }
}
