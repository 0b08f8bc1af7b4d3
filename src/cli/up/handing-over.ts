import { systemClock } from '../../base/clock.ts';
import type { Poller } from '../../polling/poller.ts';
import type { StatusLine } from '../status-line.ts';
import { counted, spanOf } from '../text.ts';
import type { Instance } from './instance.ts';

/** How often a terminal is told how far it is. */
const PROGRESS_EVERY_MS = 100;
/** Requests that do not end must not take all the time there is from polls, which are lost if they are cut off. */
const SHARE_OF_REQUESTS = 1 / 2;

/** Answers what was asked, hands everything over and closes; says how far that is, and what came of it. Work that does not stop is left behind. */
export async function stopWithProgress(instance: Instance, withinMs: number): Promise<null> {
  const { holdfast, poller, door, log } = instance;
  const startMs = systemClock.monotonicMs();
  if (poller === null) log.say('info', 'stops');
  await door?.close(poller === null ? withinMs : withinMs * SHARE_OF_REQUESTS);
  const leftMs = () => Math.max(0, withinMs - (systemClock.monotonicMs() - startMs));
  if (poller !== null) await handOver({ ...instance, poller }, leftMs());
  else log.say('info', `has stopped in ${spanOf(systemClock.monotonicMs() - startMs)}`);
  await holdfast.close({ within: 0 });
  return null;
}

async function handOver(
  { holdfast, poller, log, status }: Instance & { poller: Poller },
  withinMs: number,
): Promise<void> {
  const startMs = systemClock.monotonicMs();
  const owned = poller.manager.ownedSessions().length;
  const targets = counted(owned, 'target');
  log.say('info', `stops, and hands over ${targets}`, { owned });
  let abandoned = 0;
  holdfast.on('lease.abandoned', () => {
    abandoned += 1;
  });
  const over = new AbortController();
  const showing = status === null ? null : showProgress(poller, status, targets, over.signal);
  await poller.stop({ within: withinMs });
  over.abort();
  await showing;
  const tookMs = systemClock.monotonicMs() - startMs;
  const rest = abandoned > 0 ? `; ${abandoned} of them run out: their polls did not stop` : '';
  const facts = { owned, abandoned, tookMs };
  log.say('info', `has handed over ${targets} in ${spanOf(tookMs)}${rest}`, facts);
}

async function showProgress(
  poller: Poller,
  status: StatusLine,
  targets: string,
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    const left = poller.manager.ownedSessions().length;
    const running = poller.inFlight > 0 ? `, ${counted(poller.inFlight, 'poll')} under way` : '';
    status.show(`handing over ${targets} … ${left} left${running}. Ctrl-C again ends it at once.`);
    await systemClock.sleep(PROGRESS_EVERY_MS, over).catch(() => {});
  }
  status.clear();
}
