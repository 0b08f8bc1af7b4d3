import { sleepOn } from './sleep.ts';

/**
 * Time, as the rest of Holdfast may see it. Two clocks, because neither is enough alone: the monotonic one decides
 * expiry and never goes back, but stands still while the host sleeps; the wall clock shows such a sleep, but anyone may
 * set it. Nothing outside `base/` reads a clock or starts a timer by itself, so that a test can own all of time.
 */
export interface Clock {
  /** When this process started, in milliseconds since 1970. */
  readonly startedAtMs: number;
  /** Milliseconds since some fixed moment, the same for every process of a host; never goes back; decides expiry. */
  monotonicMs(): number;
  /** Milliseconds since 1970 as the host believes; for records, and as the second opinion on elapsed time. */
  wallMs(): number;
  /** Calls `run` once, `delayMs` from now or later: a blocked event loop makes every timer late. */
  after(delayMs: number, run: () => void): Timer;
  /** Calls `run` when the code that runs now, and what its promises lead to, is done; before anything else is read. */
  soon(run: () => void): void;
  /** Calls `run` when what has arrived by now has been read. */
  afterInput(run: () => void): void;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export interface Timer {
  cancel(): void;
}

/** The longest delay a Node timer can hold; longer ones would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

class SystemClock implements Clock {
  readonly startedAtMs = performance.timeOrigin;

  /** Not `performance.now`, which counts from the start of each thread: all processes of a host share this one. */
  monotonicMs(): number {
    return Number(process.hrtime.bigint()) / 1e6;
  }

  wallMs(): number {
    return Date.now();
  }

  after(delayMs: number, run: () => void): Timer {
    const handle = setTimeout(run, Math.min(Math.max(0, delayMs), MAX_DELAY_MS));
    return { cancel: () => clearTimeout(handle) };
  }

  soon(run: () => void): void {
    process.nextTick(run);
  }

  afterInput(run: () => void): void {
    setImmediate(run);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }
}

export const systemClock: Clock = new SystemClock();

/** For what needs more than one step and has one time limit for all of them: how much is left of it, at least 1 ms. */
export function timeLeft(clock: Clock, timeoutMs: number): () => number {
  const untilMs = clock.monotonicMs() + timeoutMs;
  return () => Math.max(1, untilMs - clock.monotonicMs());
}

/** Whether `promise` is done, well or badly, before `ms` are over. */
export async function isDoneWithin(
  clock: Clock,
  ms: number,
  promise: Promise<unknown>,
): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, () => resolve(false));
    const done = () => {
      timer.cancel();
      resolve(true);
    };
    promise.then(done, done);
  });
}
