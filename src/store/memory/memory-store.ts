import { type Clock, systemClock } from '../../base/clock.ts';
import type { Store } from '../store.ts';
import { MemoryLeases } from './leases.ts';
import { MemoryLog } from './log.ts';
import { MemoryMembers } from './members.ts';
import { MemoryRecords } from './records.ts';
import { MemorySignals } from './signals.ts';

/**
 * Everything among the parts of one process: for tests, for demonstrations, and as the plainest statement of what the
 * other stores must do. Several Holdfasts may share one.
 */
export function createMemoryStore({ clock = systemClock }: { clock?: Clock } = {}): Store {
  const signals = new MemorySignals(clock);
  return {
    name: 'memory:',
    leases: new MemoryLeases(clock, signals),
    members: new MemoryMembers(clock),
    records: new MemoryRecords(clock),
    signals,
    log: new MemoryLog(clock),
    streams: undefined as never,
    workflows: undefined as never,
    examine: async () => ({ store: 'memory:', findings: [] }),
    close: async () => {},
  };
}
