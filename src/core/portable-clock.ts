/** Time and chance where there is no Node: in browsers, workers and other runtimes. It leads nowhere outside this module. */
import type { Clock, Timer } from './clock.ts';
import type { Random } from './random.ts';

/** The part of a clock that needs nothing but what every runtime has. */
export type PortableClock = Pick<Clock, 'monotonicMs' | 'wallMs' | 'after'>;

export const portableClock: PortableClock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: (delayMs, run): Timer => {
    const handle = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Good enough to spread requests, and for nothing else. */
export const portableRandom: Pick<Random, 'next'> = { next: () => Math.random() };
