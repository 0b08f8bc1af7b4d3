import { afterAll, afterEach, beforeAll } from 'vitest';
import { type FleetOptions, type StoreKind, TestFleet } from './fleet.ts';

/** On which stores a story is told that needs nothing of either. */
export const STORES: readonly StoreKind[] = ['redis', 'sqlite'];

/**
 * One fleet for all tests of a `describe`, which are the chapters of its story and build upon each other. After each,
 * the record of the whole run so far is looked at.
 */
export function useFleet(kind: StoreKind, options: FleetOptions = {}): () => TestFleet {
  let fleet: TestFleet | undefined;
  const use = () => {
    if (fleet === undefined) throw new Error('the fleet has not started');
    return fleet;
  };
  beforeAll(async () => {
    fleet = await TestFleet.on(kind, options);
  });
  afterEach(() => use().check());
  afterAll(async () => {
    try {
      await fleet?.checkLog();
    } finally {
      await fleet?.[Symbol.asyncDispose]();
    }
  });
  return use;
}
