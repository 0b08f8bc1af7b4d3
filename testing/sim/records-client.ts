/**
 * One process that follows the sessions of a store, as every instance of a fleet does: the
 * production `SessionWatch` on the production Redis store. It also adds and removes sessions, many
 * at a time. Pages are short and few removals are remembered, so that what takes thousands of
 * sessions elsewhere takes a few dozen here.
 */
import { Emitter } from '../../src/core/events.ts';
import { TARGET_COLLECTION, type TargetRecord } from '../../src/fleet/targets/target-record.ts';
import { TargetWatch } from '../../src/fleet/targets/target-watch.ts';
import type { RecordStore } from '../../src/store/port/record-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { boundOptions } from './bounds.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import { type NetworkParts, simDialer } from './network.ts';
import type { Occupant } from './seat.ts';

/** All sessions that there may be. */
export const SESSION_IDS: readonly string[] = Array.from({ length: 60 }, (_, n) => `s${n}`);
/** How many changes a page has, and how many removals the store remembers. */
const PAGE = 5;
const REMOVALS_REMEMBERED = 8;

const CALL = { timeoutMs: 5_000 };
const OPEN_AGAIN_MS = 1_000;
const REFRESH_EVERY_MS = 1_000;
const DISCOVER_EVERY_MS = 10_000;
const CHANGE_EVERY_MS = 4_000;
/** How many sessions are added or removed at once, at most. */
const MOST_CHANGED = 25;
const BOUND_MS = 30_000;

export interface RecordsClientParts {
  readonly network: NetworkParts;
  readonly counters: Counters;
}

export class RecordsClient implements Occupant {
  readonly process: SimProcess;
  readonly #parts: RecordsClientParts;
  readonly #events = new Emitter();
  readonly #over = new AbortController();
  #watch: TargetWatch | null = null;
  #store: Store | null = null;
  #isStopping = false;
  /** It follows what others do, and changes nothing itself. */
  isResting = false;

  constructor(parts: RecordsClientParts) {
    this.#parts = parts;
    this.process = parts.network.process;
    // Else they would be printed.
    this.#events.on('store.warned', () => parts.counters.add('store.warned'));
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** What it knows of sessions; null before it has connected. */
  get sessions(): ReadonlyMap<string, TargetRecord> | null {
    return this.#watch?.records ?? null;
  }

  async start(): Promise<void> {
    const store = await this.#openStore();
    if (store === null) return;
    const records = withShortPages(store.records);
    const watch = new TargetWatch({ ...store, records }, 'any', this.#events);
    this.#watch = watch;
    void this.#every(REFRESH_EVERY_MS, () => this.#refresh(watch));
    void this.#every(DISCOVER_EVERY_MS, () => watch.discover());
    void this.#every(CHANGE_EVERY_MS, () => this.#change(store));
  }

  async stop(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#over.abort();
    await this.#store?.close();
    this.end();
  }

  end(): void {
    this.#watch?.close();
    this.process.kill();
    this.#parts.network.path.abandon(this.process);
  }

  async #openStore(): Promise<Store | null> {
    const { process } = this;
    const bounds = { lease: BOUND_MS, poll: BOUND_MS, workflow: BOUND_MS };
    while (!this.#isStopping && !process.isDead) {
      try {
        this.#store = await openRedisStoreOn(simDialer(this.#parts.network), {
          clock: process,
          random: process.random,
          events: this.#events,
          removalsKept: REMOVALS_REMEMBERED,
          ...boundOptions(bounds),
        });
        return this.#store;
      } catch {
        await process.sleep(OPEN_AGAIN_MS, this.#over.signal).catch(() => {});
      }
    }
    return null;
  }

  /** Again and again, until it stops: the store may be away, and is asked again. */
  async #every(ms: number, run: () => Promise<unknown>): Promise<void> {
    const { process } = this;
    while (!this.#isStopping && !process.isDead) {
      await process.sleep(ms * (0.5 + process.random.next()), this.#over.signal).catch(() => {});
      if (this.#isStopping || process.isDead) return;
      await run().catch(() => this.#parts.counters.add('records: failed'));
    }
  }

  async #refresh(watch: TargetWatch): Promise<void> {
    const before = watch.records.size;
    const changed = await watch.refresh();
    this.#parts.counters.add('records: refreshed');
    if (changed.size > REMOVALS_REMEMBERED && watch.records.size < before)
      this.#parts.counters.add('records: many were gone');
  }

  async #change({ records }: Store): Promise<void> {
    if (this.isResting) return;
    const { random } = this.process;
    const first = Math.floor(random.next() * SESSION_IDS.length);
    const count = 1 + Math.floor(random.next() * MOST_CHANGED);
    const ids = SESSION_IDS.slice(first, first + count);
    if (random.next() < 0.5)
      await records.remove(
        TARGET_COLLECTION,
        ids.map((id) => ({ id })),
        CALL,
      );
    else
      await records.put(
        TARGET_COLLECTION,
        ids.map((id) => ({ id, value: { n: random.next() } })),
        CALL,
      );
    this.#parts.counters.add('records: changed');
  }
}

function withShortPages(records: RecordStore): RecordStore {
  return {
    get: (...args) => records.get(...args),
    put: (...args) => records.put(...args),
    remove: (...args) => records.remove(...args),
    changes: (collection, call) => records.changes(collection, { ...call, most: PAGE }),
    discover: (...args) => records.discover(...args),
  };
}
