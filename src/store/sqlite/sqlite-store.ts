import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Clock, isDoneWithin, systemClock } from '../../core/clock.ts';
import { Emitter } from '../../core/events.ts';
import { checkSwitch } from '../../core/options.ts';
import { type Random, systemRandom } from '../../core/random.ts';
import type { BaseRuntime } from '../../core/runtime.ts';
import type { BoundStore } from '../port/bound-store.ts';
import type { CopyStore } from '../port/copy-store.ts';
import type { Examination } from '../port/examination.ts';
import { DEFAULT_MAX_TTLS, type MaxTtls } from '../port/keyspaces.ts';
import { checkPrefix } from '../port/prefix.ts';
import type { Store } from '../port/store.ts';
import { checkDriver } from './driver/driver.ts';
import { type FileFacts, judge } from './examination.ts';
import { checkSync, DurableQueue, logSyncer, type SyncMode } from './file/durable-queue.ts';
import { FileConnection } from './file/file-connection.ts';
import { fileSystemType } from './file/file-system.ts';
import { type Host, systemHost } from './file/host.ts';
import { LockQueue } from './file/lock-queue.ts';
import type { SqliteOptions } from './file/options.ts';
import { locate, logBytes } from './file/place.ts';
import type { Tx } from './file/sqlite-connection.ts';
import { StoreClock } from './file/store-clock.ts';
import { RowRetention } from './tables/row-retention.ts';
import { sqliteBounds } from './verbs/bounds.ts';
import { sqliteCopies } from './verbs/copies.ts';
import { SqliteIntents } from './verbs/intents.ts';
import { SqliteLeases } from './verbs/leases.ts';
import { sqliteLog } from './verbs/log.ts';
import { sqliteMembers } from './verbs/members.ts';
import { sqliteRecords } from './verbs/records.ts';
import { SqliteRunStore } from './verbs/run-store.ts';
import { SqliteSignals } from './verbs/signals.ts';
import { sqliteStreams } from './verbs/streams.ts';
import { SqliteWorkflows } from './verbs/workflows.ts';

export interface SqliteStoreOptions {
  /** Put before every name; default none. Stores with the same prefix share their leases. */
  prefix?: string | undefined;
  /** `off` only for development and tests: a lease of a deleted file may have two holders. */
  quarantine?: 'on' | 'off' | undefined;
  /** Durable data is on the disk: within a second (`everysec`, default) or at once (`always`). */
  sync?: SyncMode | undefined;
  /** The bound of TTLs per keyspace, equal in every process of the file. Null for an observer. */
  maxTtls?: MaxTtls | null | undefined;
  /** False: a missing file is an error. Default true: it is made. */
  create?: boolean | undefined;
  /** For a copy alone: also a file with an unfinished copy. */
  unfinished?: boolean | undefined;
  clock?: Clock | undefined;
  random?: Random | undefined;
  events?: Emitter | undefined;
  /** For tests: another machine. */
  host?: Host | undefined;
  /** For tests: syncs the log of a file to the disk. */
  syncLog?: ((path: string) => Promise<void>) | undefined;
  /** For tests: returns the type of file system of a folder. */
  fileSystemType?: ((folder: string) => number) | undefined;
}

/** The timeout of opening and examining: another process may hold the lock. */
const OPEN_CALL = { timeoutMs: 5_000 };
/** `close` waits this long for a sync. */
const CLOSE_SYNC_MS = 500;

/** Opens one file for any number of processes on one host. Examines the file before it resolves. */
export async function openSqliteStore(
  path: string,
  options: SqliteStoreOptions = {},
): Promise<Store> {
  const rt = {
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    events: options.events ?? new Emitter(),
  };
  const store = new SqliteStore(rt, path, withDefaults(options));
  checkDriver(store.name);
  try {
    await store.open();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

function withDefaults(options: SqliteStoreOptions): SqliteOptions {
  const { prefix = '', quarantine = 'on', sync = 'everysec' } = options;
  const { maxTtls = DEFAULT_MAX_TTLS, create = true, host = systemHost() } = options;
  const { unfinished = false } = options;
  checkSwitch(quarantine, 'quarantine');
  checkSync(sync);
  checkPrefix(prefix);
  return {
    prefix,
    quarantine,
    sync,
    maxTtls,
    create,
    unfinished,
    host,
    syncLog: options.syncLog ?? logSyncer(),
    fileSystemType: options.fileSystemType ?? fileSystemType,
  };
}

class SqliteStore implements Store {
  readonly name: string;
  /** The full path. `name` is relative to the working folder, and processes have different ones. */
  readonly identity: string;
  readonly leases: SqliteLeases;
  readonly members: Store['members'];
  readonly records: Store['records'];
  readonly signals: SqliteSignals;
  readonly log: Store['log'];
  readonly streams: Store['streams'];
  readonly workflows: SqliteWorkflows;
  readonly intents: Store['intents'];
  readonly runs: SqliteRunStore;
  readonly bounds: BoundStore;
  readonly copies: CopyStore;
  readonly #rt: BaseRuntime;
  readonly #options: SqliteOptions;
  readonly #path: string;
  readonly #file: FileConnection;
  readonly #queue: LockQueue;
  readonly #durable: DurableQueue;

  constructor(rt: BaseRuntime, path: string, options: SqliteOptions) {
    const location = locate(path);
    const { name } = location;
    this.name = name;
    this.identity = `sqlite:${location.path}`;
    this.#rt = rt;
    this.#options = options;
    this.#path = location.path;
    const storeClock = new StoreClock(rt, name, options);
    this.#file = new FileConnection(rt, location, storeClock, options);
    this.#queue = new LockQueue(rt, this.#file, name);
    const durable = new DurableQueue(rt, location, this.#queue, options);
    this.#durable = durable;
    const retention = new RowRetention(rt.clock);
    this.signals = new SqliteSignals(rt, this.#file, this.#queue, options);
    this.leases = new SqliteLeases(this.#queue, storeClock, this.signals, retention);
    this.members = sqliteMembers(this.#queue);
    this.records = sqliteRecords(durable, retention);
    this.log = sqliteLog(durable);
    this.streams = sqliteStreams(durable, this.signals);
    this.workflows = new SqliteWorkflows(durable, this.leases, this.signals);
    this.intents = new SqliteIntents(durable, this.signals);
    this.runs = new SqliteRunStore(durable, this.leases, this.signals);
    this.bounds = sqliteBounds(this.#queue, storeClock);
    this.copies = sqliteCopies(durable);
  }

  async open(): Promise<void> {
    this.#file.checkExists();
    // A finding about persistence, such as a long log, is temporary: only `examine` returns it.
    for (const { level, subject, fact, advice = '' } of judge(await this.#readFacts()))
      if (level === 'warn' && subject !== 'persistence') this.#warn(fact, advice);
  }

  #warn(fact: string, advice: string): void {
    const { events } = this.#rt;
    events.emit('store.warned', { store: this.name, finding: fact, advice });
    // Without a listener the warning goes to Node, unless quarantine is off (development, tests).
    if (this.#options.quarantine === 'on' && !events.hasListener('store.warned'))
      process.emitWarning(`${this.name}: ${fact} ${advice}`, 'HoldfastWarning');
  }

  async examine(): Promise<Examination> {
    return { store: this.name, findings: judge(await this.#readFacts()) };
  }

  async close(): Promise<void> {
    await this.signals.close();
    this.#queue.close();
    // A slow disk delays `close` only briefly: the kernel has all writes.
    await isDoneWithin(this.#rt.clock, CLOSE_SYNC_MS, this.#durable.flush());
    await this.#file.close();
  }

  #readFacts(): Promise<FileFacts> {
    return this.#queue.readOne('examine', OPEN_CALL, ({ connection }: Tx) => {
      const { size: fileBytes, mode } = statSync(this.#path);
      return {
        version: String(connection.value('SELECT sqlite_version()')),
        journalMode: String(connection.value('PRAGMA journal_mode')),
        fileBytes,
        logBytes: logBytes(this.#path),
        mode,
        folderMode: statSync(dirname(this.#path)).mode,
        bootId: this.#options.host.bootId,
        fileSystem: this.#options.fileSystemType(dirname(this.#path)),
      };
    });
  }
}
