/**
 * Reads pages of the log for clients that are catching up. When many clients are disconnected at
 * once they reconnect at once: those at the same position share one read.
 */
import type { EventLog, EventPage } from '../../telemetry/event-log.ts';
import { BEGINNING } from './event-cache.ts';

/** Reads at a time, each of up to a megabyte. Further reads wait. */
const MAX_READS = 4;
/** Entries in a page. */
export const CATCH_UP_PAGE = 500;

export class LogReader {
  readonly #log: Pick<EventLog, 'read'>;
  readonly #reads = new Map<string, Promise<EventPage>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(log: Pick<EventLog, 'read'>) {
    this.#log = log;
  }

  /** The page after a position. It may be as old as another client's read that is under way. */
  read(position: string): Promise<EventPage> {
    const shared = this.#reads.get(position);
    if (shared !== undefined) return shared;
    const reading = this.#readInTurn(position).finally(() => this.#reads.delete(position));
    this.#reads.set(position, reading);
    return reading;
  }

  async #readInTurn(position: string): Promise<EventPage> {
    if (this.#running >= MAX_READS)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      const after = position === BEGINNING ? undefined : position;
      return await this.#log.read({ after, most: CATCH_UP_PAGE });
    } finally {
      // The next read takes this one's place, so `#running` stays as it is.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
