import type { EventName, Events } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { type Holdfast, type OpenOptions, open } from '../../src/holdfast.ts';
import type { Lease } from '../../src/lease/lease.ts';
import type { AcquireOptions } from '../../src/lease/options.ts';
import { refusalError } from '../../src/lease/refusal-error.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';

type Happened = { [N in EventName]: { name: N } & Events[N] }[EventName];

/** A process of the test's: its own Holdfast, its own bad connection to the one store. */
export interface Actor {
  readonly holdfast: Holdfast;
  readonly faults: ReturnType<typeof faultyStore>['faults'];
  readonly happened: Happened[];
  /** The lease, or an error if it was not to be had. */
  take(key: string, options?: AcquireOptions): Promise<Lease>;
  /** The names of what happened, in order, without what happens on every renewal. */
  names(): EventName[];
}

const NAMES: EventName[] = [
  'lease.acquired',
  'lease.refused',
  'lease.renewed',
  'lease.uncertain',
  'lease.confirmed',
  'lease.reasserted',
  'lease.releasing',
  'lease.released',
  'lease.abandoned',
  'lease.transferred',
  'lease.lost',
  'lease.revoked',
  'lease.returned',
  'leader.elected',
  'leader.lost',
  'leader.failed',
  'loop.delayed',
];

/** One store in memory, one clock for it and everybody, and as many actors as a test wants. */
export function world() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  let actors = 0;
  const actor = async (options: OpenOptions = {}): Promise<Actor> => {
    const { store: reached, faults } = faultyStore(store, clock);
    const happened: Happened[] = [];
    const holdfast = await open(reached, {
      clock,
      random: seededRandom(++actors),
      name: `actor${actors}`,
      ...options,
    });
    for (const name of NAMES)
      holdfast.on(name, (facts) => happened.push({ name, ...facts } as Happened));
    const take = async (key: string, options?: AcquireOptions) => {
      const result = await holdfast.acquire(key, options);
      if (!result.ok) throw refusalError(result);
      return result.lease;
    };
    const names = () => happened.map(({ name }) => name).filter((name) => name !== 'lease.renewed');
    return { holdfast, faults, happened, take, names };
  };
  return { clock, store, actor };
}
