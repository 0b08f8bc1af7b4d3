import type { Clock } from '../../src/core/clock.ts';
import { confirmationNow, type Deadline } from '../../src/core/validity.ts';

/** A lease that was confirmed just now, and is good for that long. */
export function deadlineIn(clock: Clock, validMs: number, jumpMs = 250): readonly Deadline[] {
  return [{ ...confirmationNow(clock), validMs, jumpMs }];
}
