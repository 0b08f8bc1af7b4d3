import { expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { EventLog } from '../../src/telemetry/event-log.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const EVENT = { at: 1, instance: 'api-1', event: 'member.joined' };

/** Reads back what any program may have written into the shared log. */
async function read(...values: readonly unknown[]) {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const events = new Emitter();
  const unreadable: string[] = [];
  events.on('log.unreadable', ({ position }) => unreadable.push(position));
  await store.log.append(values, { timeoutMs: 1_000 });
  const { entries } = await new EventLog({ store, clock, events }).read();
  return { entries, unreadable };
}

it('P-04 what is no event is skipped, and reported once', async () => {
  const foreign = [null, 'text', 7, [], {}, { ...EVENT, at: 1e300 }, { ...EVENT, event: 'no' }];
  const { entries, unreadable } = await read(...foreign, EVENT);
  expect(entries).toMatchObject([EVENT]);
  expect(unreadable).toHaveLength(1);
});

it('P-04 a fact whose name could change a prototype, or that no instance writes, is left out', async () => {
  const hostile = JSON.parse(
    '{"at":1,"instance":"api-1","event":"member.joined","__proto__":"polluted","of":{"a":1},"host":"a"}',
  );
  const { entries } = await read(hostile);
  const [entry = {}] = entries;
  expect(Object.keys(entry).sort()).toEqual(['at', 'event', 'host', 'instance', 'position']);
  expect(Object.getPrototypeOf(entry)).toBe(Object.prototype);
});
