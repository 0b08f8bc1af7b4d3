/**
 * With how many slots the processes of a pool work, as a record in the store. So a process with
 * fewer slots knows which slots of others it has to count, before it is granted one.
 *
 * The record has two numbers. Each process counts the slots up to `largest`. No process uses a slot
 * beyond `usable`. A process acts on what it has read for `FRESH_MS` at most. So `SETTLE_MS` after
 * a write every process that is granted a slot has read it, and the numbers move in two steps:
 *
 * **Growing.** In: a process has more slots than `largest`. It raises `largest` first: from then on
 * the others count its slots. Out: `SETTLE_MS` later it raises `usable`, and uses them.
 *
 * **Even.** Both numbers are the same. A process with that many slots counts none: each of its
 * slots has one holder at most. Out: a process has more slots → growing; or fewer, and the slots
 * beyond its own have been free for `UNUSED_MS` → shrinking.
 *
 * **Shrinking.** In: `usable` is lowered. A process that has more slots raises it again, as above.
 * Out: `SETTLE_MS` later, if the slots beyond are still free, `largest` is lowered, too → even.
 */
import { KeyForeignError, StoreLacksWorkError } from '../../core/errors.ts';
import type { Runtime } from '../../store/runtime.ts';

const COLLECTION = 'pool';
/** A process reads the record again if it acts and has last read it so long ago. */
const REFRESH_MS = 1_000;
const FRESH_MS = 2_000;
/** More than `FRESH_MS`, for clocks that run at different speeds. */
export const SETTLE_MS = 2_500;
/** So that a process with more slots, which pauses for a moment, does not have to grow again. */
const UNUSED_MS = 60_000;

interface Numbers {
  readonly largest: number;
  readonly usable: number;
}

interface Known extends Numbers {
  readonly revision: number;
  /** When the request was sent. */
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** A moment on both clocks: the monotonic one stands still while the host sleeps. */
interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export class PoolSizeRecord {
  readonly #rt: Runtime;
  readonly #id: string;
  readonly #own: number;
  readonly #timeoutMs: number;
  #known: Known | null = null;
  #loading: Promise<void> | null = null;
  /** Our number is stored, and the other processes have time to read it. */
  isSettling = false;
  /** The store keeps no records: no process of it counts the slots of others. */
  #isUnavailable = false;
  /** Since when the slots beyond our own have been free; null: one was held. */
  #unusedSinceMs: number | null = null;
  /** Our lowering of `usable`, and when it was confirmed. */
  #shrinking: { readonly revision: number; readonly atMs: number } | null = null;

  /** `own`: how many slots this process is configured with. */
  constructor(rt: Runtime, id: string, own: number, timeoutMs: number) {
    this.#rt = rt;
    this.#id = id;
    this.#own = own;
    this.#timeoutMs = timeoutMs;
  }

  /** How many slots this process counts: at least its own. */
  get largest(): number {
    return Math.max(this.#own, this.#known?.largest ?? 0);
  }

  /** Other processes may hold slots beyond those of this process. */
  get isExceeded(): boolean {
    return this.largest > this.#own;
  }

  isFresh(): boolean {
    return this.#isUnavailable || this.#ageMs() <= FRESH_MS;
  }

  /** Null: what is known is fresh. Else it resolves when it is. */
  ready(): Promise<void> | null {
    if (!this.isFresh()) return this.#load();
    if (!this.#isUnavailable && this.#ageMs() > REFRESH_MS) this.#load().catch(() => {});
    return null;
  }

  /**
   * Told with every count. `sentAtMs`: when the reading began. Lowers the numbers if the slots
   * beyond our own are not used any more. That they stay too large costs requests, not safety.
   */
  async counted(isUsedBeyond: boolean, sentAtMs: number): Promise<void> {
    if (isUsedBeyond) {
      this.#unusedSinceMs = null;
      this.#shrinking = null;
      return;
    }
    this.#unusedSinceMs ??= sentAtMs;
    const known = this.#known;
    if (known === null || sentAtMs - this.#unusedSinceMs < UNUSED_MS) return;
    const [own, shrinking] = [this.#own, this.#shrinking];
    if (shrinking?.revision === known.revision) {
      if (sentAtMs - shrinking.atMs < SETTLE_MS) return;
      await this.#put({ largest: own, usable: own }, known.revision);
      return;
    }
    // Another process may have lowered it already.
    const isLowered = known.usable === own;
    const { largest, revision: seen } = known;
    const revision = isLowered ? seen : await this.#put({ largest, usable: own }, seen);
    this.#shrinking = { revision, atMs: this.#rt.clock.monotonicMs() };
  }

  #ageMs(): number {
    if (this.#known === null) return Number.POSITIVE_INFINITY;
    const { monotonicMs, wallMs } = this.#now();
    return Math.max(monotonicMs - this.#known.monotonicMs, wallMs - this.#known.wallMs);
  }

  #now(): Moment {
    const { clock } = this.#rt;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }

  #load(): Promise<void> {
    this.#loading ??= this.#settle().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  /** Reads the record, and writes our number until every slot of this process may be used. */
  async #settle(): Promise<void> {
    const { clock } = this.#rt;
    let waitedFor = 0;
    for (let known = await this.#read(); known !== null; known = await this.#read()) {
      const { largest, usable, revision } = known;
      const own = this.#own;
      if (revision === 0) {
        if (await this.#put({ largest: own, usable: own }, 0)) return;
      } else if (usable >= own) {
        this.#known = known;
        return;
      } else if (largest < own) {
        await this.#put({ largest: own, usable }, revision);
      } else if (revision === waitedFor) {
        if (await this.#put({ largest, usable: largest }, revision)) return;
      } else {
        this.isSettling = true;
        await clock.sleep(SETTLE_MS);
        this.isSettling = false;
        waitedFor = revision;
      }
    }
  }

  /** Null where the store keeps no records. */
  async #read(): Promise<Known | null> {
    const sent = this.#now();
    try {
      const call = { timeoutMs: this.#timeoutMs };
      const [reply] = await this.#rt.store.records.get(COLLECTION, [this.#id], call);
      if (reply?.kind === 'failed') throw reply.error;
      if (reply?.kind !== 'found') return { largest: 0, usable: 0, revision: 0, ...sent };
      return { ...this.#numbersOf(reply.value), revision: reply.revision, ...sent };
    } catch (error) {
      if (!(error instanceof StoreLacksWorkError)) throw error;
      this.#isUnavailable = true;
      return null;
    }
  }

  /** The new revision; 0 if another process has written since. */
  async #put(value: Numbers, ifRevision: number): Promise<number> {
    const sent = this.#now();
    const { records } = this.#rt.store;
    const call = { timeoutMs: this.#timeoutMs };
    const [reply] = await records.put(COLLECTION, [{ id: this.#id, value, ifRevision }], call);
    if (reply?.kind === 'failed') throw reply.error;
    if (reply?.kind !== 'written') return 0;
    if (value.usable >= this.#own) this.#known = { ...value, revision: reply.revision, ...sent };
    return reply.revision;
  }

  /** Other programs can write records. */
  #numbersOf(value: unknown): Numbers {
    const { largest = 0, usable = 0 } = (value ?? {}) as Partial<Numbers>;
    if (!Number.isInteger(largest) || !Number.isInteger(usable) || usable > largest)
      throw new KeyForeignError({ key: `${COLLECTION}:${this.#id}`, found: 'no numbers of slots' });
    return { largest, usable };
  }
}
