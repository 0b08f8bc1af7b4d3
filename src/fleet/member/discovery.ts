import type { Clock } from '../../core/clock.ts';
import type { Emitter } from '../../core/events.ts';
import { jittered, type Random } from '../../core/random.ts';
import type { Store } from '../../store/port/store.ts';

/** A walk over a large keyspace takes seconds; longer than this it is not worth its while. */
const WALK_MS = 30_000;
/** After a walk that failed: pauses double from this to what lies between two walks. */
const RETRY_FIRST_MS = 1_000;

export interface DiscoveryParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly targets: { discover(): Promise<void> };
  /** From the end of one walk to the next; Infinity for none at all. */
  readonly discoverEveryMs: number;
  /** The next round may see more. */
  onFound(): void;
}

/**
 * Looks for targets and members that other programs have put into the store, from time to time. Beside the rounds and not
 * in them: how long the walk takes depends on what else lies in the store, and meanwhile this instance has to beat.
 */
export class TargetDiscovery {
  readonly #parts: DiscoveryParts;

  constructor(parts: DiscoveryParts) {
    this.#parts = parts;
  }

  /** Looks now, and again and again, until the signal fires. */
  async run(over: AbortSignal): Promise<void> {
    const { clock, random, discoverEveryMs, events, onFound } = this.#parts;
    if (!Number.isFinite(discoverEveryMs)) return;
    let retryMs = RETRY_FIRST_MS;
    while (!over.aborted) {
      let pauseMs = discoverEveryMs;
      try {
        await this.#walk();
        if (!over.aborted) onFound();
        retryMs = RETRY_FIRST_MS;
      } catch (error) {
        if (!over.aborted) events.emit('discovery.failed', { error });
        pauseMs = Math.min(retryMs, discoverEveryMs);
        retryMs = pauseMs * 2;
      }
      await clock.sleep(jittered(pauseMs, random), over).catch(() => {});
    }
  }

  async #walk(): Promise<void> {
    const { store, targets } = this.#parts;
    // One after the other: nobody waits for it, and the store has others to serve. What is found is known to every instance.
    await targets.discover();
    await store.members.list({ thorough: true, timeoutMs: WALK_MS });
  }
}
