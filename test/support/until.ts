import { setTimeout as sleep } from 'node:timers/promises';

export interface UntilOptions {
  /** What is waited for, to finish the sentence "waited 5000 ms for …". */
  what: string;
  deadlineMs?: number;
  /** Milliseconds between two looks. */
  every?: number;
}

/**
 * Waits for a condition to give something other than `false`, `null` and `undefined`, and returns it.
 * A condition that throws does not hold yet: the last such error is the cause of the error at the deadline.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  { what, deadlineMs = 5_000, every = 10 }: UntilOptions,
): Promise<Exclude<T, false | null | undefined>> {
  const startedAt = performance.now();
  const leftMs = () => deadlineMs - (performance.now() - startedAt);
  let cause: unknown;
  do {
    try {
      const found = await within(Math.max(leftMs(), 1), condition());
      if (found !== false && found !== null && found !== undefined) {
        return found as Exclude<T, false | null | undefined>;
      }
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (leftMs() > 0) await sleep(Math.min(every, leftMs()));
  } while (leftMs() > 0);
  throw new Error(`waited ${deadlineMs} ms for ${what}`, { cause });
}

/** The promise's outcome, or an error when it takes longer than this. */
export async function within<T>(deadlineMs: number, promise: T | Promise<T>): Promise<T> {
  const timeout = new AbortController();
  const tooLate = sleep(deadlineMs, undefined, { signal: timeout.signal }).then(() => {
    throw new Error(`no answer within ${Math.round(deadlineMs)} ms`);
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    timeout.abort();
    await tooLate.catch(() => {});
  }
}
