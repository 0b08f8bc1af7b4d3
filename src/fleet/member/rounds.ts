import { FailureStreak } from '../../core/backoff.ts';
import type { Clock, Timer } from '../../core/clock.ts';
import type { Emitter } from '../../core/events.ts';
import { jittered, type Random } from '../../core/random.ts';

/** What a round has to look at anew. */
export interface Need {
  readonly members: boolean;
  readonly targets: boolean;
  /** All owners, not only those whose time has come. */
  readonly owners: boolean;
}

export const NOTHING: Need = { members: false, targets: false, owners: false };
export const EVERYTHING: Need = { members: true, targets: true, owners: true };

/** Between two rounds: a hundred signals that come at once are one reason to look, not a hundred. */
const LEAST_PAUSE_MS = 20;
/**
 * The share of the interval that a pause may take. A round that took longer than that was frozen in the middle, and the others
 * must not miss this instance's heartbeat for as long again.
 */
const LONGEST_PAUSE_SHARE = 1 / 4;
/** A round that failed is tried again within this, or within the interval if that is shorter. */
const RETRY_MOST_MS = 5_000;

export interface RoundsParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  /** How often everything is looked at, whatever happens or not; shortened by chance, so that instances drift apart. */
  readonly everyMs: number;
  /** A round began that much later than it was due. */
  onLate(lateMs: number): void;
  /** One look and what follows from it. Says when the next one is due. */
  round(need: Need): Promise<number>;
}

/** When this instance looks at the fleet: regularly, at moments known in advance, and when poked. One round at a time. */
export class MemberRounds {
  readonly #parts: RoundsParts;
  #need: Need = NOTHING;
  #isPoked = false;
  #isOver = false;
  #nextTickMs = 0;
  #timer: Timer | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #running: Promise<void> | null = null;
  /** When the last round ended, and how long it took. */
  #lastEndMs = Number.NEGATIVE_INFINITY;
  #lastTookMs = 0;
  readonly #stall: FailureStreak;

  constructor(parts: RoundsParts) {
    const { clock, events, everyMs } = parts;
    this.#parts = parts;
    this.#stall = new FailureStreak(clock, {
      maxPauseMs: Math.min(RETRY_MOST_MS, everyMs),
      onStalled: (error) => events.emit('fleet.stalled', { error }),
      onResumed: (afterMs) => events.emit('fleet.resumed', { afterMs }),
    });
  }

  /** Resolves when the first round is over, well or badly; then they go on by themselves. */
  async start(): Promise<void> {
    this.#run();
    await this.#running;
  }

  /** Something may be different: look, soon; where all instances hear of it at once, at a moment of one's own within `spreadMs`. */
  poke(need: Need, spreadMs = 0): void {
    const { clock, random } = this.#parts;
    this.#need = {
      members: this.#need.members || need.members,
      targets: this.#need.targets || need.targets,
      owners: this.#need.owners || need.owners,
    };
    this.#isPoked = true;
    const atMs = clock.monotonicMs() + random.next() * spreadMs;
    if (this.#running === null) this.#wakeAt(Math.max(atMs, this.#soonestMs()));
  }

  /** No more rounds; resolves when the one under way is over. */
  async stop(): Promise<void> {
    this.#isOver = true;
    this.#timer?.cancel();
    await this.#running;
  }

  #run(): void {
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    if (this.#isOver || this.#running !== null) return;
    const { clock } = this.#parts;
    const startMs = clock.monotonicMs();
    this.#running = this.#round().then((nextMs) => {
      this.#running = null;
      this.#lastEndMs = clock.monotonicMs();
      this.#lastTookMs = this.#lastEndMs - startMs;
      const soonestMs = this.#soonestMs();
      this.#wakeAt(this.#isPoked ? soonestMs : Math.max(nextMs, soonestMs));
    });
  }

  /**
   * Members come and go rarely, and others wait for what follows from it. Apart from that a pause is as long as the round
   * before it: with many targets, constant change must not take all of the instance's time.
   */
  #soonestMs(): number {
    const longestMs = this.#parts.everyMs * LONGEST_PAUSE_SHARE;
    const pauseMs = this.#need.members ? 0 : Math.min(this.#lastTookMs, longestMs);
    return this.#lastEndMs + Math.max(LEAST_PAUSE_MS, pauseMs);
  }

  /** Never rejects. */
  async #round(): Promise<number> {
    const { clock, random, everyMs } = this.#parts;
    const startMs = clock.monotonicMs();
    const isTick = startMs >= this.#nextTickMs;
    const need = isTick ? EVERYTHING : this.#need;
    this.#need = NOTHING;
    this.#isPoked = false;
    try {
      const dueMs = await this.#parts.round(need);
      if (isTick) this.#nextTickMs = startMs + jittered(everyMs, random);
      this.#stall.succeeded();
      return Math.min(dueMs, this.#nextTickMs);
    } catch (error) {
      // What could not be looked at stays to be looked at; what is owned is safe by its leases alone.
      this.#nextTickMs = 0;
      this.#isPoked = false;
      const pauseMs = jittered(this.#stall.failed(error), random);
      return clock.monotonicMs() + pauseMs;
    }
  }

  #wakeAt(atMs: number): void {
    if (this.#isOver || this.#timerAtMs <= atMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    const { clock, onLate } = this.#parts;
    this.#timer = clock.after(atMs - clock.monotonicMs(), () => {
      onLate(Math.max(0, clock.monotonicMs() - atMs));
      this.#run();
    });
  }
}
