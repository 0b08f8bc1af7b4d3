import { type Clock, systemClock } from '../../core/clock.ts';
import { systemRandom } from '../../core/random.ts';
import type { Store } from '../port/store.ts';
import { MemoryLeases } from './leases.ts';
import { memoryLog } from './log.ts';
import { memoryMembers } from './members.ts';
import { MemoryRecords } from './records.ts';
import { memorySignals } from './signals.ts';
import type { openTables } from './tables.ts';

const IDENTITY_DIGITS = 16;

/** The first call of streams, workflows or intents loads SQLite. Most processes make none. */
let loading: Promise<typeof import('./tables.ts')> | null = null;

/**
 * A store for one process: for tests, for demonstrations, and as the simplest model of the other
 * stores. Several Holdfasts may share one.
 */
export function createMemoryStore({ clock = systemClock }: { clock?: Clock } = {}): Store {
  const signals = memorySignals(clock);
  const leases = new MemoryLeases(clock, signals);
  let opened: ReturnType<typeof openTables> | null = null;
  const tables = async () => {
    loading ??= import('./tables.ts');
    const { openTables } = await loading;
    opened ??= openTables(clock, leases, signals);
    return opened;
  };
  return {
    name: 'memory:',
    // The memory store of another process is another store.
    identity: `memory:${systemRandom.hex(IDENTITY_DIGITS)}`,
    leases,
    members: memoryMembers(clock),
    records: new MemoryRecords(clock),
    signals,
    log: memoryLog(clock),
    streams: lazily(async () => (await tables()).streams),
    workflows: lazily(async () => (await tables()).workflows),
    intents: lazily(async () => (await tables()).intents),
    runs: lazily(async () => (await tables()).runs),
    examine: async () => ({ store: 'memory:', findings: [] }),
    close: async () => {},
  };
}

/** Returns a part of the store that the first call of one of its verbs opens. */
function lazily<Part extends object>(open: () => Promise<Part>): Part {
  return new Proxy({} as Part, {
    get: (_, verb) => {
      // `await` on the part itself must not take it for a promise.
      if (verb === 'then') return undefined;
      return async (...args: unknown[]) => {
        const part: object = await open();
        return Reflect.apply(Reflect.get(part, verb), part, args);
      };
    },
  });
}
