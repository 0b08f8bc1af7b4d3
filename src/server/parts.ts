import type { Clock } from '../core/clock.ts';
import type { Random } from '../core/random.ts';
import type { Holdfast } from '../holdfast.ts';
import type { Intents } from '../intents/intents.ts';

/** What routes are made of. */
export interface ServerParts {
  readonly holdfast: Holdfast;
  readonly intents: Intents;
  readonly clock: Clock;
  readonly random: Random;
  /** Fires when the server ends: what would go on for long ends with it. */
  readonly closing: AbortSignal;
  /** Told of every answer, once it is known. */
  readonly observers: Set<RequestObserver>;
}

export type RequestObserver = (answered: Answered) => void;

export interface Answered {
  /** As the table has it, never as it was asked for; null where there is none. */
  readonly path: string | null;
  readonly method: string;
  readonly status: number;
  readonly tookMs: number;
}
