import { seededRandom } from '../../../src/core/random.ts';
import { createMemoryStore } from '../../../src/index.ts';
import { Redlock, type Settings } from '../../../src/redlock/index.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../../testing/fakes/faulty-store.ts';

/** One store in memory, one clock for it and everybody, and as many programs that lock on it as a test wants. */
export function lockers() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  let count = 0;
  const locker = (settings: Partial<Settings> = {}) => {
    const { store: reached, faults } = faultyStore(store, clock);
    const random = seededRandom(++count);
    const redlock = new Redlock([reached], settings, {
      clock,
      random,
      name: `locker${count}`,
      maxTtl: '12h',
    });
    const errors: Error[] = [];
    redlock.on('error', (error) => errors.push(error));
    return { redlock, faults, errors };
  };
  return { clock, store, locker };
}

/** What a promise is rejected with, or undefined. Never rejects itself, so that a test may step the clock first. */
export function failure<E extends Error>(promise: Promise<unknown>): Promise<E> {
  return promise.then(
    (value) => {
      throw new Error(`it resolved with ${String(value)}`);
    },
    (error: E) => error,
  );
}
