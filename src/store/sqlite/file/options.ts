import type { MaxTtls } from '../../port/keyspaces.ts';
import type { SyncMode } from './durable-queue.ts';
import type { Host } from './host.ts';

/** The options of one SQLite store, with their defaults filled in (`SqliteStoreOptions`). */
export interface SqliteOptions {
  readonly prefix: string;
  readonly quarantine: 'on' | 'off';
  readonly sync: SyncMode;
  /** Null for an observer, which acquires no leases. */
  readonly maxTtls: MaxTtls | null;
  readonly create: boolean;
  /** Opens a file with an unfinished copy. */
  readonly unfinished: boolean;
  readonly host: Host;
  readonly syncLog: (path: string) => Promise<void>;
  readonly fileSystemType: (folder: string) => number;
}
