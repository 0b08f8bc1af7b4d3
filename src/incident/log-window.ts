/** Reads a part of the shared log, with what came before it: who held what at its beginning. */
import { LOG_PAGE } from '../store/port/log-store.ts';
import type { EventLog, LoggedEvent } from '../telemetry/event-log.ts';

export interface LogWindow {
  /** The oldest first. */
  readonly events: readonly LoggedEvent[];
  /** The log may have had earlier entries of this time: it dropped them, or they were not read. */
  readonly isTrimmed: boolean;
  /** Reading stopped at the limit. */
  readonly isCut: boolean;
}

/** Reads backwards from the newest entry, to the beginning of the log or `most` entries. */
export async function readWindow(
  log: Pick<EventLog, 'recall'>,
  { fromMs, most }: { fromMs: number | null; most: number },
): Promise<LogWindow> {
  const events: LoggedEvent[] = [];
  let before: string | undefined;
  for (;;) {
    const left = most - events.length;
    const page = await log.recall({ before, most: Math.min(left, LOG_PAGE) });
    for (const event of page.entries) events.push(event);
    const isCut = page.more && events.length >= most;
    if (!page.more || page.position === undefined || isCut) {
      events.reverse();
      const oldestMs = events[0]?.at;
      const isTrimmed = isCut || (fromMs !== null && oldestMs !== undefined && oldestMs > fromMs);
      return { events, isTrimmed, isCut };
    }
    before = page.position;
  }
}
