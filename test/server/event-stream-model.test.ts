import { describe, expect, it } from 'vitest';
import { type Random, seededRandom } from '../../src/core/random.ts';
import type { Caller } from '../../src/server/http/route.ts';
import { eventFilter } from '../../src/server/streams/event-filter.ts';
import { EventStream } from '../../src/server/streams/event-stream.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { LogStore } from '../../src/store/port/log-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { EventLog } from '../../src/telemetry/event-log.ts';
import { LOG_TOPIC } from '../../src/telemetry/history.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import fc from '../support/fast-check.ts';
import { SseReader } from './support/sse-reader.ts';

/** What a random run is made of. */
type Step =
  | {
      readonly do: 'append';
      readonly many: number;
      readonly strange: boolean;
      readonly quiet: boolean;
    }
  | { readonly do: 'come'; readonly from: 'now' | 'oldest'; readonly even: boolean }
  /** A client that had left, or is made to leave now, comes back with what it was told last. */
  | { readonly do: 'return'; readonly who: number }
  | { readonly do: 'leave'; readonly who: number }
  | { readonly do: 'fail'; readonly forMs: number }
  | { readonly do: 'pass'; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('append' as const),
    many: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 400, max: 1_600 })),
    strange: fc.boolean(),
    quiet: fc.boolean(),
  }),
  fc.record({
    do: fc.constant('come' as const),
    from: fc.constantFrom('now' as const, 'oldest' as const),
    even: fc.boolean(),
  }),
  fc.record({ do: fc.constant('return' as const), who: fc.nat(9) }),
  fc.record({ do: fc.constant('leave' as const), who: fc.nat(9) }),
  fc.record({ do: fc.constant('fail' as const), forMs: fc.integer({ min: 1, max: 4_000 }) }),
  fc.record({
    do: fc.constant('pass' as const),
    ms: fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 100, max: 8_000 })),
  }),
);

const ADMIN: Caller = {
  tokenId: 'ops',
  scope: 'v3:admin',
  tenant: null,
  expiresAtMs: Number.POSITIVE_INFINITY,
};
const CALL = { timeoutMs: 1_000 };

/** Somebody who watches, over all its connections. */
interface Watcher {
  readonly isEven: boolean;
  readonly from: 'now' | 'oldest';
  reader: SseReader;
  /** What it has been told over all connections. */
  readonly seen: number[];
  isHere: boolean;
  lastEventId: string | null;
  /** How much had happened when it was told where it is: all that came later it must see. */
  placedAt: number;
}

/** One hub on a store whose answers take their time, each its own. */
class World {
  readonly #clock = new FakeClock();
  readonly #random: Random;
  readonly #memory: Store;
  readonly #hub: EventStream;
  readonly #watchers: Watcher[] = [];
  #count = 0;
  #isDown = false;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.#memory = createMemoryStore({ clock: this.#clock });
    const store = { ...this.#memory, log: this.#slow(this.#memory.log) };
    const log = new EventLog({ store, clock: this.#clock });
    this.#hub = new EventStream(log, this.#clock, { queuedBytes: 50_000 });
  }

  async take(step: Step): Promise<void> {
    this.#notePlaces();
    if (step.do === 'append') await this.#append(step);
    if (step.do === 'pass') await this.#clock.advance(step.ms);
    if (step.do === 'come') this.#come(step);
    if (step.do === 'fail') await this.#fail(step.forMs);
    const who = step.do === 'return' || step.do === 'leave' ? step.who : 0;
    const watcher = this.#watchers[who % Math.max(1, this.#watchers.length)];
    if (watcher === undefined) return;
    if (step.do === 'leave' || step.do === 'return') await this.#leave(watcher);
    if (step.do === 'return') this.#return(watcher);
  }

  #notePlaces(): void {
    for (const watcher of this.#watchers)
      if ((watcher.lastEventId ?? watcher.reader.lastEventId) !== null)
        watcher.placedAt = Math.min(watcher.placedAt, this.#count);
  }

  /** Everybody is there, and has had time: has each been told of everything, in order, once? */
  async settle(): Promise<void> {
    for (const watcher of this.#watchers) if (!watcher.isHere) this.#return(watcher);
    await this.#clock.advance(60_000);
    for (const watcher of this.#watchers) {
      await this.#leave(watcher);
      const { seen, isEven, placedAt } = watcher;
      const first = Math.min(seen[0] ?? this.#count, placedAt);
      const all = Array.from({ length: this.#count }, (_, i) => i);
      expect(seen).toEqual(all.filter((i) => i >= first && (!isEven || i % 2 === 0)));
      expect(watcher.reader.names()).not.toContain('gap');
    }
    await this.#clock.advance(60_000);
    expect(this.#hub.size).toBe(0);
    expect(this.#clock.pendingTimers).toBe(0);
  }

  #slow(log: LogStore): LogStore {
    const late = async () => {
      await this.#clock.sleep(Math.floor(this.#random.next() ** 3 * 300));
      if (this.#isDown) throw new Error('down');
    };
    // The answer is as of when it was asked, or of when it comes.
    const either = async <T>(ask: () => Promise<T>): Promise<T> => {
      if (this.#random.next() < 0.5) {
        await late();
        return ask();
      }
      const answer = await ask();
      await late();
      return answer;
    };
    return {
      append: (values, call) => log.append(values, call),
      read: (call) => either(() => log.read(call)),
      recall: (call) => either(() => log.recall(call)),
      trim: (call) => log.trim(call),
    };
  }

  async #append({ many, strange, quiet }: Extract<Step, { do: 'append' }>): Promise<void> {
    const values: unknown[] = Array.from({ length: many }, () => {
      const number = this.#count++;
      const session = number % 2 === 0 ? 'even' : 'odd';
      return { at: 1, instance: 'a', event: 'session.added', session, number };
    });
    // What is no event takes a position all the same.
    if (strange) values.push('no event', { of: 'nobody' });
    await this.#memory.log.append(values, CALL);
    if (!quiet) await this.#memory.signals.publish(LOG_TOPIC, '');
  }

  #come({ from, even: isEven }: Extract<Step, { do: 'come' }>): void {
    if (this.#watchers.length >= 10) return;
    const reader = this.#open(isEven, from === 'now' ? null : 'oldest');
    this.#watchers.push({
      isEven,
      from,
      reader,
      seen: [],
      isHere: true,
      lastEventId: null,
      placedAt: from === 'oldest' ? 0 : Infinity,
    });
  }

  #return(watcher: Watcher): void {
    const fallback = watcher.from === 'now' ? null : 'oldest';
    watcher.reader = this.#open(watcher.isEven, watcher.lastEventId ?? fallback);
    watcher.isHere = true;
  }

  async #leave(watcher: Watcher): Promise<void> {
    if (!watcher.isHere) return;
    watcher.isHere = false;
    const { reader } = watcher;
    await reader.leave();
    watcher.lastEventId = reader.lastEventId ?? watcher.lastEventId;
    for (const { data } of reader.told) {
      const { number } = data as { number?: number };
      if (number !== undefined) watcher.seen.push(number);
    }
  }

  async #fail(forMs: number): Promise<void> {
    this.#isDown = true;
    await this.#clock.advance(forMs);
    this.#isDown = false;
  }

  #open(isEven: boolean, position: string | null): SseReader {
    const filter = eventFilter(isEven ? { about: 'even' } : {}, ADMIN);
    const { signal } = new AbortController();
    const reader = new SseReader(this.#hub.watch({ filter, caller: ADMIN, position, signal }));
    void reader.readAll();
    return reader;
  }
}

describe('coming, going and coming back', () => {
  it('loses no event and tells none twice, however clients, the tail and the store meet', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 40 }),
        fc.integer(),
        async (steps, seed) => {
          const world = new World(seed);
          for (const one of steps) await world.take(one);
          await world.settle();
        },
      ),
      { numRuns: 100, endOnFailure: true },
    );
  });
});
