import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import type { Violation } from '../../src/core/events.ts';
import { seededRandom, systemRandom } from '../../src/core/random.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
// The memory store loads it on first use, which takes longer than a clock that is stepped will wait.
import '../../src/store/memory/tables.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore, type StoreFaults } from '../../testing/fakes/faulty-store.ts';
import { startRedis } from './redis-server.ts';
import { until } from './until.ts';

/** A process of the test's: its own Holdfast, its own bad connection to the store. */
export interface WorkflowActor {
  readonly holdfast: Holdfast;
  readonly faults: StoreFaults;
  readonly violations: Violation[];
}

/** One store, and as many actors on it as a test wants. What time passes, passes in `until`. */
export interface WorkflowWorld {
  readonly store: Store;
  actor(): Promise<WorkflowActor>;
  /** One whose clocks stand still: it never learns that time has passed, as a process that has just been woken. */
  sleeper(): Promise<WorkflowActor>;
  until<T>(condition: () => T | Promise<T>, what: string): Promise<Exclude<T, false | null>>;
  /** What comes of it, with time passing meanwhile. */
  outcome<T>(promise: Promise<T>): Promise<T>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface WorkflowWorldKind {
  readonly name: string;
  make(): Promise<WorkflowWorld>;
}

/** Short, because Redis lets no test step its clock. */
export const TTL_MS = 2_400;
/** For what is not to run out in a test. */
export const LONG_MS = 60_000;
export const CLAIM_MS = 1_000;

const STEP_MS = 50;
const MOST_STEPS = 20_000;

interface Ground {
  readonly clock: Clock;
  /** A connection of its own to the one store. */
  connect(): Promise<Store>;
  until: WorkflowWorld['until'];
  end(): Promise<void> | void;
}

export const inMemory: WorkflowWorldKind = {
  name: 'memory',
  make: () => {
    const clock = new FakeClock();
    const store = createMemoryStore({ clock });
    return world({ clock, connect: async () => store, until: stepping(clock), end: () => {} });
  },
};

export const onSqlite: WorkflowWorldKind = {
  name: 'SQLite',
  make: () => {
    const clock = new FakeClock();
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-workflows-'));
    const connect = () => openSqliteStore(join(folder, 'holdfast.db'), { clock });
    const end = () => rmSync(folder, { recursive: true });
    return world({ clock, connect, until: stepping(clock), end });
  },
};

/** One server for all worlds, which do not see each other. */
export async function redisWorlds(): Promise<WorkflowWorldKind & AsyncDisposable> {
  const redis = await startRedis();
  let made = 0;
  const make = () => {
    const prefix = `w${made++}:`;
    const connect = () => openRedisStore(redis.url, { quarantine: 'off', prefix });
    const wait: WorkflowWorld['until'] = (condition, what) =>
      until(condition, { what, deadlineMs: 15_000 }) as never;
    return world({ clock: systemClock, connect, until: wait, end: () => {} });
  };
  return { name: 'Redis', make, [Symbol.asyncDispose]: () => redis.stop() };
}

async function world({ clock, connect, until, end }: Ground): Promise<WorkflowWorld> {
  const holdfasts: Holdfast[] = [];
  const stores = [await connect()];
  let actors = 0;
  const onClock = async (itsClock: Clock): Promise<WorkflowActor> => {
    const connection = await connect();
    stores.push(connection);
    const { store, faults } = faultyStore(connection, clock);
    const random = clock === systemClock ? systemRandom : seededRandom(++actors);
    const holdfast = await open(store, { clock: itsClock, random, name: `actor${++actors}` });
    holdfasts.push(holdfast);
    const violations: Violation[] = [];
    holdfast.on('workflow.violation', (facts) => violations.push(facts));
    return { holdfast, faults, violations };
  };
  const close = async () => {
    const closing = Promise.all(holdfasts.map((holdfast) => holdfast.close({ within: 1 })));
    let isClosed = false;
    const done = closing.then(() => {
      isClosed = true;
    });
    await until(() => isClosed, 'all to be closed');
    await done;
    await Promise.all([...new Set(stores)].map((store) => store.close()));
    await end();
  };
  return {
    store: stores[0] as Store,
    actor: () => onClock(clock),
    sleeper: () => onClock(new FakeClock({ wallMs: clock.wallMs() })),
    until,
    outcome: async (promise) => {
      let isOver = false;
      const over = () => {
        isOver = true;
      };
      promise.then(over, over);
      await until(() => isOver, 'an outcome');
      return promise;
    },
    [Symbol.asyncDispose]: close,
  };
}

/** Moves the clock on until it is so. */
function stepping(clock: FakeClock): WorkflowWorld['until'] {
  return async (condition, what) => {
    for (let step = 0; step < MOST_STEPS; step++) {
      const found = await condition();
      if (found !== false && found !== null && found !== undefined) return found as never;
      await clock.advance(STEP_MS);
    }
    throw new Error(`waited ${MOST_STEPS * STEP_MS} ms for ${what}`);
  };
}
