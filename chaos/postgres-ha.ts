import type { HistoryFile } from './history.ts';
import type { Topology } from './topology.ts';
export function postgresHa(_h: HistoryFile, _o: { isSynchronous: boolean }): Promise<Topology> {
  throw new Error('TODO');
}
