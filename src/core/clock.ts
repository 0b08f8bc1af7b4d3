import { sleepOn } from './sleep.ts';

/**
 * The time of a process. Two clocks, because neither is enough alone. The monotonic clock decides
 * expiry and never goes back, but stands still while the host sleeps. The wall clock shows such a
 * sleep, but an operator may set it. No code outside `core/` reads a clock or starts a timer, so
 * that a test controls all of time.
 */
export interface Clock {
  /** When this process started, in milliseconds since 1970. */
  readonly startedAtMs: number;
  /**
   * Milliseconds since some fixed moment, the same for every process of a host; never goes back;
   * decides expiry.
   */
  monotonicMs(): number;
  /**
   * Milliseconds since 1970 as the host believes; for records, and as the second opinion on elapsed
   * time.
   */
  wallMs(): number;
  /** Calls `run` once, `delayMs` from now or later: a blocked event loop makes every timer late. */
  after(delayMs: number, run: () => void): Timer;
  /**
   * Calls `run` after the current code and its promise callbacks, before the next input is read.
   */
  soon(run: () => void): void;
  /** Calls `run` after the input that has arrived so far has been read. */
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
  /** Not `performance.timeOrigin`: the first use of `performance` loads much of Node. */
  readonly startedAtMs = Date.now() - process.uptime() * 1_000;

  /**
   * Not `performance.now`, which counts from the start of each thread: all processes of a host
   * share this one.
   */
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

/** One time limit for several steps: returns how much of it is left, at least 1 ms. */
export function timeLeft(clock: Clock, timeoutMs: number): () => number {
  const untilMs = clock.monotonicMs() + timeoutMs;
  return () => Math.max(1, untilMs - clock.monotonicMs());
}

/** Whether `promise` settles, either way, within `ms`. */
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
