import { statSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { type Clock, isDoneWithin, systemClock } from '../../core/clock.ts';
import { Emitter } from '../../core/events.ts';
import { checkSwitch } from '../../core/options.ts';
import { type Random, systemRandom } from '../../core/random.ts';
import type { Examination } from '../port/examination.ts';
import { DEFAULT_MAX_TTLS, type MaxTtls } from '../port/keyspaces.ts';
import type { Store } from '../port/store.ts';
import { type FileFacts, judge } from './examination.ts';
import { DatabaseFile } from './file/database-file.ts';
import { fileSystemType } from './file/file-system.ts';
import { type Host, systemHost } from './file/host.ts';
import { checkLibsql } from './file/libsql.ts';
import { LockQueue } from './file/lock-queue.ts';
import {
  checkSync,
  DurableTransactions,
  LogSync,
  logSyncer,
  type SyncMode,
} from './file/log-sync.ts';
import { realPath } from './file/place.ts';
import type { Tx } from './file/sqlite-connection.ts';
import { StoreClock } from './file/store-clock.ts';
import { ExpiredRows } from './tables/expired-rows.ts';
import { Names } from './tables/names.ts';
import { Waiters } from './tables/waiters.ts';
import { SqliteBounds } from './verbs/bounds.ts';
import { SqliteIntents } from './verbs/intents.ts';
import { SqliteLeases } from './verbs/leases.ts';
import { SqliteLog } from './verbs/log.ts';
import { SqliteMembers } from './verbs/members.ts';
import { SqliteRecords } from './verbs/records.ts';
import { SqliteSignals } from './verbs/signals.ts';
import { SqliteStreams } from './verbs/streams.ts';
import { SqliteWorkflows } from './verbs/workflows.ts';

export interface SqliteStoreOptions {
  /** Put before every name; default none. Two Holdfasts see each other's leases if they have the same one. */
  prefix?: string | undefined;
  /** `off` only where a second owner for one TTL after the file was deleted does no harm: development, tests. */
  quarantine?: 'on' | 'off' | undefined;
  /** When what has to outlive a loss of power is on the disk: within a second (`everysec`, the default), or before its caller has an answer (`always`). */
  sync?: SyncMode | undefined;
  /** How long leases may last, per keyspace; the same for every process of the file. Null for one that takes none. */
  maxTtls?: MaxTtls | null;
  /** False: a file that does not exist is an error. Default true: it is made. */
  create?: boolean | undefined;
  clock?: Clock;
  random?: Random;
  events?: Emitter;
  /** For tests: another machine. */
  host?: Host;
  /** For tests: how the log of a file is brought to the disk. */
  syncLog?: (path: string) => Promise<void>;
  /** For tests: what kind of file system a folder is on. */
  fileSystemType?: (folder: string) => number;
}

/** How long opening and examining may take: others may be at the lock. */
const OPEN_CALL = { timeoutMs: 5_000 };
/** How long closing waits for what is not on the disk yet. */
const CLOSE_SYNC_MS = 500;

/** One file, any number of processes on one host, no server. Opens and examines the file before it resolves. */
export async function openSqliteStore(
  path: string,
  options: SqliteStoreOptions = {},
): Promise<Store> {
  const store = new SqliteStore(path, options);
  checkLibsql(store.name);
  try {
    await store.open();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

class SqliteStore implements Store {
  readonly name: string;
  /** By its whole path: its name is short where it lies below the current folder, and processes have different ones. */
  readonly identity: string;
  readonly leases: SqliteLeases;
  readonly members: SqliteMembers;
  readonly records: SqliteRecords;
  readonly signals: SqliteSignals;
  readonly log: SqliteLog;
  readonly streams: SqliteStreams;
  readonly workflows: SqliteWorkflows;
  readonly intents: SqliteIntents;
  readonly bounds: SqliteBounds;
  readonly #path: string;
  readonly #file: DatabaseFile;
  readonly #turns: LockQueue;
  readonly #sync: LogSync;
  readonly #host: Host;
  readonly #mode: 'on' | 'off';
  readonly #events: Emitter;
  readonly #clock: Clock;
  readonly #fileSystemType: (folder: string) => number;

  constructor(path: string, options: SqliteStoreOptions) {
    const { clock = systemClock, random = systemRandom, events = new Emitter() } = options;
    const { prefix = '', quarantine: mode = 'on', host = systemHost() } = options;
    const { maxTtls = DEFAULT_MAX_TTLS, create: mayCreate = true, sync = 'everysec' } = options;
    checkSwitch(mode, 'quarantine');
    checkSync(sync);
    this.#path = realPath(path);
    this.name = `sqlite:${shown(this.#path)}`;
    this.identity = `sqlite:${this.#path}`;
    this.#host = host;
    this.#mode = mode;
    this.#events = events;
    this.#clock = clock;
    this.#fileSystemType = options.fileSystemType ?? fileSystemType;
    const { name } = this;
    const names = new Names(prefix);
    const marker = new StoreClock({ mode, store: name, maxTtls, host, random, events });
    const where = { given: resolve(path), path: this.#path, name, clock, events, marker, host };
    const file = new DatabaseFile({ ...where, mayCreate, fileSystemType: this.#fileSystemType });
    const turns = new LockQueue({ file, name, clock, random });
    const signals = new SqliteSignals({
      path: this.#path,
      names,
      file,
      turns,
      clock,
      random,
      host,
    });
    const { syncLog = logSyncer() } = options;
    const syncing = { path: this.#path, name, clock, events, mode: sync, sync: syncLog };
    this.#sync = new LogSync(syncing);
    const durable = new DurableTransactions(turns, this.#sync, syncing);
    const lines = new Waiters({ names, signals });
    const sweep = new ExpiredRows(clock);
    this.#file = file;
    this.#turns = turns;
    this.signals = signals;
    this.leases = new SqliteLeases({ names, turns, marker, lines, signals, sweep, maxTtls });
    this.members = new SqliteMembers({ names, turns });
    this.records = new SqliteRecords({ names, turns: durable, sweep });
    this.log = new SqliteLog({ names, turns: durable });
    const tell = (tx: Tx, topic: string, message: string) =>
      signals.send(tx, names.of(topic), message);
    const work = { scope: prefix, turns: durable, tell };
    this.streams = new SqliteStreams(work);
    this.workflows = new SqliteWorkflows({ ...work, leases: this.leases });
    this.intents = new SqliteIntents(work);
    this.bounds = new SqliteBounds(turns, marker);
  }

  async open(): Promise<void> {
    this.#file.checkThere();
    // What is about one moment, such as a long log, is for those who examine it.
    for (const { level, subject, fact, advice = '' } of judge(await this.#look()))
      if (level === 'warn' && subject !== 'persistence') this.#warn(fact, advice);
  }

  #warn(fact: string, advice: string): void {
    this.#events.emit('store.warned', { store: this.name, finding: fact, advice });
    // A warning that nobody listens for still has to reach somebody, unless this is declared to be a playground.
    if (this.#mode === 'on' && !this.#events.hasListener('store.warned'))
      process.emitWarning(`${this.name}: ${fact} ${advice}`, 'HoldfastWarning');
  }

  async examine(): Promise<Examination> {
    return { store: this.name, findings: judge(await this.#look()) };
  }

  async close(): Promise<void> {
    await this.signals.close();
    this.#turns.close();
    // Nobody waits for a slow disk for long: the kernel has what was written.
    await isDoneWithin(this.#clock, CLOSE_SYNC_MS, this.#sync.flush());
    await this.#file.close();
  }

  #look(): Promise<FileFacts> {
    return this.#turns.readOne('examine', OPEN_CALL, ({ session }: Tx) => {
      const { size: fileBytes, mode } = statSync(this.#path);
      return {
        version: String(session.look('SELECT sqlite_version()')),
        journalMode: String(session.look('PRAGMA journal_mode')),
        fileBytes,
        logBytes: statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
        mode,
        folderMode: statSync(dirname(this.#path)).mode,
        bootId: this.#host.bootId,
        fileSystem: this.#fileSystemType(dirname(this.#path)),
      };
    });
  }
}

/** Below the working folder as seen from there; else in full. */
function shown(path: string): string {
  const below = relative(process.cwd(), path);
  return below.startsWith('..') || below === '' ? path : below;
}
