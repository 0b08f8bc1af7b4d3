/**
 * What nobody else would find: sessions that wait for a worker, while the stream that workers take them from has lost them; and a
 * secret that was made, and is not in the store any more. Every instance that accepts intents sweeps; that several do costs a
 * little, and harms nothing, because the store decides for each session whether it is lost.
 */
import type { Clock, Timer } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { jittered, type Random } from '../core/random.ts';
import type { Store } from '../store/port/store.ts';
import { openSessions, putBackLost } from './open-sessions.ts';
import type { Secrets } from './secrets.ts';

const EVERY_MS = 30_000;

interface SweepParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly secrets: Secrets;
}

export class StartRecovery {
  readonly #parts: SweepParts;
  #timer: Timer | null = null;
  #round: Promise<void> = Promise.resolve();
  #isRunning = false;

  constructor(parts: SweepParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#arm();
  }

  /** Resolves when nothing of it is under way any more. */
  stop(): Promise<void> {
    this.#isRunning = false;
    this.#timer?.cancel();
    this.#timer = null;
    return this.#round;
  }

  #arm(): void {
    const { clock, random } = this.#parts;
    this.#timer = clock.after(jittered(EVERY_MS, random), () => {
      this.#round = this.#sweep().then(() => {
        if (this.#isRunning) this.#arm();
      });
    });
  }

  /** Never rejects: what fails is tried again with the next round. */
  async #sweep(): Promise<void> {
    try {
      for await (const { sessions } of openSessions(this.#parts)) {
        await putBackLost(this.#parts, sessions);
        if (!this.#isRunning) return;
      }
      await this.#parts.secrets.refresh();
    } catch (error) {
      this.#parts.events.emit('sweep.failed', { error });
    }
  }
}
