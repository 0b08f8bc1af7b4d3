import { systemClock } from '../../base/clock.ts';
import { counted, spanOf } from '../text.ts';
import type { Instance } from './instance.ts';

/** How often a terminal is told how far it is. */
const PROGRESS_EVERY_MS = 100;

/** Hands everything over and closes; says how far that is, and what came of it. Work that does not stop is left behind. */
export async function stopWithProgress(instance: Instance, withinMs: number): Promise<null> {
  const { holdfast, poller, log } = instance;
  const startMs = systemClock.monotonicMs();
  const owned = poller.manager.ownedSessions().length;
  const targets = counted(owned, 'target');
  log.say('info', `stops, and hands over ${targets}`, { owned });
  let abandoned = 0;
  holdfast.on('lease.abandoned', () => {
    abandoned += 1;
  });
  const over = new AbortController();
  const showing = showProgress(instance, targets, over.signal);
  await poller.stop({ within: withinMs });
  over.abort();
  await showing;
  const tookMs = systemClock.monotonicMs() - startMs;
  const rest = abandoned > 0 ? `; ${abandoned} of them run out: their polls did not stop` : '';
  const facts = { owned, abandoned, tookMs };
  log.say('info', `has handed over ${targets} in ${spanOf(tookMs)}${rest}`, facts);
  await holdfast.close({ within: 0 });
  return null;
}

async function showProgress(
  { poller, status }: Instance,
  targets: string,
  over: AbortSignal,
): Promise<void> {
  if (status === null) return;
  while (!over.aborted) {
    const left = poller.manager.ownedSessions().length;
    const running = poller.inFlight > 0 ? `, ${counted(poller.inFlight, 'poll')} under way` : '';
    status.show(`handing over ${targets} … ${left} left${running}. Ctrl-C again ends it at once.`);
    await systemClock.sleep(PROGRESS_EVERY_MS, over).catch(() => {});
  }
  status.clear();
}
