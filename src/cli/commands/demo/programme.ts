/** The work of the demo: targets, workflows and sessions that the instances share. */
import { type Clock, systemClock } from '../../../core/clock.ts';
import { HoldfastError } from '../../../core/errors.ts';
import { systemRandom } from '../../../core/random.ts';
import type { Holdfast, OpenOptions } from '../../../holdfast.ts';
import type { Intents } from '../../../intents/intents.ts';
import { FORECAST, ForecastRun } from './forecast-run.ts';
import { CITIES, StationServer } from './station-server.ts';

/** The orchestrators of the forecast, which take turns. */
const ORCHESTRATORS = ['dora', 'emil'];
const ALMANAC = 'almanac';
const PRESS = 'press';
/** After so many failed tries the action is a dead letter. */
const TRIES = 2;
const CHANNELS = ['harbour-cam', 'rain-radar', 'sea-level', 'sunrise', 'wind-map'];
/** So many channels are on at a time. The oldest is switched off after `SWITCH_MS`. */
const WATCHED = 2;
const SWITCH_MS = 20_000;
/** The pause before the second channel starts. */
const SECOND_CHANNEL_MS = 1_000;
const VIEWER = { tenant: null, client: 'demo' };

export interface Programme {
  stop(): Promise<void>;
  /** Removes the targets and workflows from the store. */
  remove(): Promise<void>;
}

/** Resolves when there are targets to poll. The rest runs until `stop`. */
export async function startProgramme(
  operator: Holdfast,
  open: (options: OpenOptions) => Promise<Holdfast>,
): Promise<Programme> {
  const clock = systemClock;
  const over = new AbortController();
  const stations = new StationServer(systemRandom);
  await stations.open(operator);
  // With history: the shared log shows the refused writes.
  const opening = ORCHESTRATORS.map((name) => open({ name, history: 'on' }));
  const orchestrators = await Promise.all(opening);
  const running = [
    new ForecastRun({ clock, stations, operator, orchestrators }, over.signal).run(),
    printAlmanac(operator),
    watchChannels(operator.intents(), clock, over.signal),
  ];
  return {
    async stop() {
      over.abort();
      await Promise.all(running);
      await Promise.all(orchestrators.map((holdfast) => holdfast.close({ within: 0 })));
      stations.close();
    },
    async remove() {
      const { targets, workflows } = operator;
      await workflows.close();
      for (const id of [FORECAST, ALMANAC]) await workflows.remove(id);
      for (const city of CITIES) await targets.remove(city).catch(() => {});
    },
  };
}

/** Emits an action that fails until an operator retries it: so the demo has a dead letter. */
export async function printAlmanac(holdfast: Holdfast): Promise<void> {
  const tried = new Map<string, number>();
  const processor = holdfast.processor({
    name: PRESS,
    role: 'effect',
    tries: TRIES,
    handlers: {
      PRINT: (_payload, { actionId }) => {
        const before = tried.get(actionId) ?? 0;
        tried.set(actionId, before + 1);
        if (before < TRIES) throw new Error('the press is out of paper');
        return { pages: 365 };
      },
    },
  });
  await processor.start();
  const writer = await holdfast.workflows.claim(ALMANAC);
  await writer.emit('PRINT', { copies: 1 }, { target: PRESS });
}

/**
 * Keeps two channels on, as sessions on the tuners of the instances, and switches one after the
 * other. A session that an operator stops stays off until its turn is over.
 */
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
      // The store is unavailable for a while, or an operator was faster.
      if (!(error instanceof HoldfastError)) throw error;
    }
    const pauseMs = watched.length < WATCHED ? SECOND_CHANNEL_MS : SWITCH_MS;
    await clock.sleep(pauseMs, over).catch(() => {});
  }
}
