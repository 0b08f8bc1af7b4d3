import { BackoffState } from '../../core/backoff.ts';
import type { Timer } from '../../core/clock.ts';
import { jittered } from '../../core/random.ts';
import type { Runtime } from '../../store/runtime.ts';

/** What a round has to read again. */
export interface Need {
  readonly members: boolean;
  readonly targets: boolean;
  /** The leases of all targets, not only those that are due. */
  readonly owners: boolean;
}

export const NOTHING: Need = { members: false, targets: false, owners: false };
export const EVERYTHING: Need = { members: true, targets: true, owners: true };

/** Between two rounds: a hundred signals that arrive together are one reason for a round. */
const MIN_PAUSE_MS = 20;
/**
 * The share of the interval that a pause may take. A round that took longer was frozen in the
 * middle, and the other members must not miss this instance's heartbeat for as long again.
 */
const MAX_PAUSE_SHARE = 1 / 4;
/** A failed round is tried again within this, or within the interval if that is shorter. */
const MAX_RETRY_MS = 5_000;

/**
 * When this instance does a round: regularly, at moments known in advance, and when woken. One
 * round at a time. `core/loop.ts` does not fit: a wake adds to what the next round reads, the pause
 * depends on how long the last round took, and regular rounds keep their own times.
 */
export class MemberLoop {
  readonly #rt: Runtime;
  readonly #everyMs: number;
  readonly #doRound: (need: Need, lateMs: number) => Promise<number>;
  readonly #failures: BackoffState;
  #need: Need = NOTHING;
  #isWoken = false;
  #isStopped = false;
  #nextTickAtMs = 0;
  #timer: Timer | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #running: Promise<void> | null = null;
  #lastEndAtMs = Number.NEGATIVE_INFINITY;
  #lastTookMs = 0;

  /**
   * Every `everyMs` a round reads everything; chance shortens the interval, so that instances drift
   * apart. `round` is told how much later than due it begins, and returns when the next one is due.
   */
  constructor(
    rt: Runtime,
    everyMs: number,
    round: (need: Need, lateMs: number) => Promise<number>,
  ) {
    const { clock, events } = rt;
    this.#rt = rt;
    this.#everyMs = everyMs;
    this.#doRound = round;
    this.#failures = new BackoffState(clock, {
      maxPauseMs: Math.min(MAX_RETRY_MS, everyMs),
      onStalled: (error) => events.emit('fleet.stalled', { error }),
      onResumed: (afterMs) => events.emit('fleet.resumed', { afterMs }),
    });
  }

  /** Resolves after the first round, even if it failed. Further rounds follow automatically. */
  async start(): Promise<void> {
    this.#run(0);
    await this.#running;
  }

  /**
   * Schedules a round soon that reads `need`. Where all instances are woken together, each chooses
   * a moment within `spreadMs`.
   */
  wake(need: Need, spreadMs = 0): void {
    const { clock, random } = this.#rt;
    this.#need = {
      members: this.#need.members || need.members,
      targets: this.#need.targets || need.targets,
      owners: this.#need.owners || need.owners,
    };
    this.#isWoken = true;
    const atMs = clock.monotonicMs() + random.next() * spreadMs;
    if (this.#running === null) this.#schedule(Math.max(atMs, this.#earliestMs()));
  }

  /** No more rounds; resolves after the one under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#running;
  }

  #run(lateMs: number): void {
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    if (this.#isStopped || this.#running !== null) return;
    const { clock } = this.#rt;
    const startMs = clock.monotonicMs();
    this.#running = this.#round(lateMs).then((nextMs) => {
      this.#running = null;
      this.#lastEndAtMs = clock.monotonicMs();
      this.#lastTookMs = this.#lastEndAtMs - startMs;
      const earliestMs = this.#earliestMs();
      this.#schedule(this.#isWoken ? earliestMs : Math.max(nextMs, earliestMs));
    });
  }

  /**
   * Members join and leave rarely, and other instances wait for the answer. Apart from that a pause
   * is as long as the round before it: with many targets, constant change must not take all of the
   * instance's time.
   */
  #earliestMs(): number {
    const maxMs = this.#everyMs * MAX_PAUSE_SHARE;
    const pauseMs = this.#need.members ? 0 : Math.min(this.#lastTookMs, maxMs);
    return this.#lastEndAtMs + Math.max(MIN_PAUSE_MS, pauseMs);
  }

  /** Never rejects. */
  async #round(lateMs: number): Promise<number> {
    const { clock, random } = this.#rt;
    const startMs = clock.monotonicMs();
    const isTick = startMs >= this.#nextTickAtMs;
    const need = isTick ? EVERYTHING : this.#need;
    this.#need = NOTHING;
    this.#isWoken = false;
    try {
      const dueMs = await this.#doRound(need, lateMs);
      if (isTick) this.#nextTickAtMs = startMs + jittered(this.#everyMs, random);
      this.#failures.succeeded();
      return Math.min(dueMs, this.#nextTickAtMs);
    } catch (error) {
      // The next round reads everything. Leases alone keep owned targets safe until then.
      this.#nextTickAtMs = 0;
      this.#isWoken = false;
      const pauseMs = jittered(this.#failures.failed(error), random);
      return clock.monotonicMs() + pauseMs;
    }
  }

  #schedule(atMs: number): void {
    if (this.#isStopped || this.#timerAtMs <= atMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    const { clock } = this.#rt;
    this.#timer = clock.after(atMs - clock.monotonicMs(), () =>
      this.#run(Math.max(0, clock.monotonicMs() - atMs)),
    );
  }
}
