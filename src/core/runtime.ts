import type { Clock } from './clock.ts';
import type { Emitter } from './events.ts';
import type { Random } from './random.ts';

/** Time, chance and the events of one process. A store is built on this alone. */
export interface BaseRuntime {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
}
