import { StoreUnsuitableError } from '../core/errors.ts';
import type { RunStore } from '../store/port/run-store.ts';
import type { Store } from '../store/port/store.ts';

/** The runs of a store; throws if it keeps none. */
export function runsOf({ name, runs }: Store): RunStore {
  if (runs !== undefined) return runs;
  const problems = ['It keeps no steps, so workflow functions cannot run on it.'];
  throw new StoreUnsuitableError({ store: name, problems });
}
