/** Pages of the log for clients that are behind. Many are cut off at once, and come back at once: those at the same place share one read. */
import type { EventLog, EventPage } from '../../telemetry/event-log.ts';
import { BEGINNING } from './event-window.ts';

/** So many reads run at a time; the others wait for their turn. Each may be of a megabyte. */
const READS_AT_ONCE = 4;
/** Entries in a page. */
export const CATCH_UP_PAGE = 500;

export class PageReader {
  readonly #log: Pick<EventLog, 'read'>;
  readonly #underWay = new Map<string, Promise<EventPage>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(log: Pick<EventLog, 'read'>) {
    this.#log = log;
  }

  /** What comes behind a position. It may be as old as the read of somebody else that has not been answered yet. */
  read(position: string): Promise<EventPage> {
    const shared = this.#underWay.get(position);
    if (shared !== undefined) return shared;
    const reading = this.#inTurn(position).finally(() => this.#underWay.delete(position));
    this.#underWay.set(position, reading);
    return reading;
  }

  async #inTurn(position: string): Promise<EventPage> {
    if (this.#running >= READS_AT_ONCE)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      const after = position === BEGINNING ? {} : { after: position };
      return await this.#log.read({ ...after, most: CATCH_UP_PAGE });
    } finally {
      // The place goes to the next in line without being free in between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
