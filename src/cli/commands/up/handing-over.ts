import { systemClock } from '../../../core/clock.ts';
import type { FleetService } from '../../../fleet/fleet-service.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { StatusOutput } from '../../ui/status-output.ts';
import { counted, spanOf } from '../../ui/text.ts';
import type { Instance } from './instance.ts';

/** How often a terminal shows the progress. */
const PROGRESS_EVERY_MS = 100;
/** Slow requests must leave time for polls, whose results are lost if they are cut off. */
const SHARE_OF_REQUESTS = 1 / 2;

/**
 * Answers open requests, hands targets and sessions over, and closes. Shows the progress and the
 * result.
 */
export async function stopWithProgress(instance: Instance, withinMs: number): Promise<null> {
  const { holdfast, poller, worker, door, log, status } = instance;
  const startMs = systemClock.monotonicMs();
  const tookMs = () => systemClock.monotonicMs() - startMs;
  const isIdle = poller === null && (worker?.sessions ?? 0) === 0;
  if (isIdle) log.say('info', 'stops');
  const over = new AbortController();
  const showing = status === null ? null : showProgress(instance, status, over.signal);
  // Pipelines take long to end, and no request needs them, so they stop first.
  const ending = worker === null ? null : endSessions(worker, log, withinMs);
  await door?.close(poller === null ? withinMs : withinMs * SHARE_OF_REQUESTS);
  const leftMs = Math.max(0, withinMs - tookMs());
  const handingOver = poller === null ? null : handOver({ ...instance, poller }, leftMs);
  const outcomes = await Promise.all([handingOver, ending]);
  over.abort();
  await showing;
  for (const outcome of outcomes)
    if (outcome !== null) log.say('info', outcome.message, outcome.facts);
  if (isIdle) log.say('info', `stopped in ${spanOf(tookMs())}`);
  await holdfast.close({ within: 0 });
  return null;
}

/** The result, logged when everything has stopped. */
interface Outcome {
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

async function endSessions(worker: Worker, log: Log, withinMs: number): Promise<Outcome | null> {
  const startMs = systemClock.monotonicMs();
  const had = worker.sessions;
  const sessions = counted(had, 'session');
  if (had > 0) log.say('info', `stops, and hands ${sessions} to other workers`, { had });
  await worker.stop({ within: withinMs });
  if (had === 0) return null;
  const left = worker.sessions;
  const tookMs = systemClock.monotonicMs() - startMs;
  const rest = left > 0 ? `; ${left} of them did not end, and their leases expire` : '';
  const message = `ended ${sessions} in ${spanOf(tookMs)}${rest}`;
  return { message, facts: { had, left, tookMs } };
}

async function handOver(
  { holdfast, poller, log }: Instance & { poller: FleetService },
  withinMs: number,
): Promise<Outcome> {
  const startMs = systemClock.monotonicMs();
  const owned = poller.manager.ownedSessions().length;
  const targets = counted(owned, 'target');
  log.say('info', `stops, and hands over ${targets}`, { owned });
  let abandoned = 0;
  const unsubscribe = holdfast.on('lease.abandoned', ({ leaseClass }) => {
    if (leaseClass === 'poll') abandoned += 1;
  });
  await poller.stop({ within: withinMs });
  unsubscribe();
  const tookMs = systemClock.monotonicMs() - startMs;
  const rest = abandoned > 0 ? `; the leases of ${abandoned} expire: their work did not stop` : '';
  const message = `handed over ${targets} in ${spanOf(tookMs)}${rest}`;
  return { message, facts: { owned, abandoned, tookMs } };
}

async function showProgress(
  { poller, worker }: Instance,
  status: StatusOutput,
  over: AbortSignal,
): Promise<void> {
  const targets = counted(poller?.manager.ownedSessions().length ?? 0, 'target');
  const had = worker?.sessions ?? 0;
  const sessions = counted(had, 'session');
  while (!over.aborted) {
    const parts = [
      ...(poller === null ? [] : [handingOver(poller, targets)]),
      ...(worker === null || had === 0 ? [] : [`ending ${sessions} … ${worker.sessions} left`]),
    ];
    if (parts.length > 0) status.show(`${parts.join('; ')}. Ctrl-C again ends it at once.`);
    await systemClock.sleep(PROGRESS_EVERY_MS, over).catch(() => {});
  }
  status.clear();
}

function handingOver({ manager, inFlight }: FleetService, targets: string): string {
  const running = inFlight > 0 ? `, ${inFlight} running` : '';
  return `handing over ${targets} … ${manager.ownedSessions().length} left${running}`;
}
