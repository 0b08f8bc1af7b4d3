/**
 * Time and chance without Node: for browsers and other runtimes. This module imports types only.
 */
import type { Clock, Timer } from './clock.ts';
import type { Random } from './random.ts';

/** The part of a clock that every JavaScript runtime can provide. */
export type PortableClock = Pick<Clock, 'monotonicMs' | 'wallMs' | 'after'>;

export const portableClock: PortableClock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: (delayMs, run): Timer => {
    const handle = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Only for spreading requests: not good enough for secrets or ids. */
export const portableRandom: Pick<Random, 'next'> = { next: () => Math.random() };
