/**
 * Reads the changes of a collection of records: page after page, and from the beginning again where
 * the store says so. Each refresh asks only for changes since the last one. Where everything is
 * listed again, no record counts as removed before the listing is complete.
 */
import { StoreRefusedError } from '../core/errors.ts';
import type { ChangesPage } from './port/record-store.ts';
import type { Call, Store } from './port/store.ts';

/** A refresh that has to begin again this often fails. */
const MOST_BEGINNINGS = 5;

export interface ChangeTaker {
  /** Reads the records that were written, as they are now. */
  read(ids: readonly string[], call: Call): Promise<void>;
  drop(id: string): void;
  /** The ids of all that the taker has. */
  known(): Iterable<string>;
}

export class ChangeReader {
  readonly #store: Pick<Store, 'name' | 'records'>;
  readonly #collection: string;
  readonly #taker: ChangeTaker;
  #since = 0;
  #began: number | undefined;
  /** The ids that the listing has shown so far; null once it is complete. */
  #listed: Set<string> | null = new Set();
  /** Counts how often everything was to be listed again. */
  #beginning = 0;

  constructor(store: Pick<Store, 'name' | 'records'>, collection: string, taker: ChangeTaker) {
    this.#store = store;
    this.#collection = collection;
    this.#taker = taker;
  }

  get isListing(): boolean {
    return this.#listed !== null;
  }

  /** The next refresh, and one under way, list everything again. */
  beginAgain(): void {
    this.#beginning++;
    this.#since = 0;
    this.#began = undefined;
    this.#listed = new Set();
  }

  /** One at a time. The next one continues where one that fails has stopped. */
  async refresh(call: Call): Promise<void> {
    const last = this.#beginning + MOST_BEGINNINGS;
    while (this.#beginning < last) {
      const beginning = this.#beginning;
      const page = await this.#nextPage(call);
      if (beginning !== this.#beginning) continue;
      this.#note(page);
      if (!page.more) return;
    }
    throw this.#outrun();
  }

  async #nextPage(call: Call): Promise<ChangesPage> {
    const [since, began] = [this.#since, this.#began];
    const page = await this.#store.records.changes(this.#collection, { ...call, since, began });
    if (page.reset && since > 0) this.beginAgain();
    else await this.#taker.read(page.written, call);
    return page;
  }

  #note({ written, removed, version, began, more }: ChangesPage): void {
    const listed = this.#listed;
    this.#since = version;
    this.#began = began;
    for (const id of written) listed?.add(id);
    for (const id of removed) {
      listed?.delete(id);
      this.#taker.drop(id);
    }
    if (more || listed === null) return;
    this.#listed = null;
    for (const id of [...this.#taker.known()]) if (!listed.has(id)) this.#taker.drop(id);
  }

  #outrun(): StoreRefusedError {
    return new StoreRefusedError({
      store: this.#store.name,
      operation: 'changes',
      reply: `the records of '${this.#collection}' were to be listed from the beginning ${MOST_BEGINNINGS} times in one refresh`,
      advice:
        'Records are removed faster than they can be listed, or the store loses data. Records that were read before stay as they were, and ' +
        'the next refresh lists them again: remove fewer at once.',
    });
  }
}
