import { statSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { type Clock, systemClock } from '../../base/clock.ts';
import { Emitter } from '../../base/events.ts';
import { checkSwitch } from '../../base/options.ts';
import { type Random, systemRandom } from '../../base/random.ts';
import type { Examination, Store } from '../store.ts';
import { DatabaseFile } from './database-file.ts';
import { type FileFacts, judge } from './examination.ts';
import { fileSystemType, judgeFileSystem } from './file-system.ts';
import { type Host, systemHost } from './host.ts';
import { SqliteIntents } from './intents.ts';
import { SqliteLeases } from './leases.ts';
import { Lines } from './lines.ts';
import { SqliteLog } from './log.ts';
import { Marker } from './marker.ts';
import { SqliteMembers } from './members.ts';
import { Names } from './names.ts';
import { realPath } from './place.ts';
import { SqliteRecords } from './records.ts';
import type { Tx } from './session.ts';
import { SqliteSignals } from './signals.ts';
import { SqliteStreams } from './streams.ts';
import { Sweep } from './sweep.ts';
import { Turns } from './turns.ts';
import { SqliteWorkflows } from './workflows.ts';

export interface SqliteStoreOptions {
  /** Put before every name; default none. Two Holdfasts see each other's leases if they have the same one. */
  prefix?: string;
  /** `off` only where a second owner for one TTL after the file was deleted does no harm: development, tests. */
  quarantine?: 'on' | 'off';
  clock?: Clock;
  random?: Random;
  events?: Emitter;
  /** For tests: another machine. */
  host?: Host;
  /** For tests: what kind of file system a folder is on. */
  fileSystemType?: (folder: string) => number;
}

/** How long opening and examining may take: others may be at the lock. */
const OPEN_CALL = { timeoutMs: 5_000 };

/** One file, any number of processes on one host, no server. Opens and examines the file before it resolves. */
export async function openSqliteStore(
  path: string,
  options: SqliteStoreOptions = {},
): Promise<Store> {
  const store = new SqliteStore(path, options);
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
  readonly leases: SqliteLeases;
  readonly members: SqliteMembers;
  readonly records: SqliteRecords;
  readonly signals: SqliteSignals;
  readonly log: SqliteLog;
  readonly streams: SqliteStreams;
  readonly workflows: SqliteWorkflows;
  readonly intents: SqliteIntents;
  readonly #path: string;
  readonly #file: DatabaseFile;
  readonly #turns: Turns;
  readonly #host: Host;
  readonly #mode: 'on' | 'off';
  readonly #events: Emitter;
  readonly #fileSystemType: (folder: string) => number;

  constructor(path: string, options: SqliteStoreOptions) {
    const { clock = systemClock, random = systemRandom, events = new Emitter() } = options;
    const { prefix = '', quarantine: mode = 'on', host = systemHost() } = options;
    checkSwitch(mode, 'quarantine');
    this.#path = realPath(path);
    this.name = `sqlite:${shown(this.#path)}`;
    this.#host = host;
    this.#mode = mode;
    this.#events = events;
    this.#fileSystemType = options.fileSystemType ?? fileSystemType;
    const { name } = this;
    const names = new Names(prefix);
    const marker = new Marker({ mode, store: name, host, random, events });
    const where = { path: this.#path, name, clock, events, marker };
    const file = new DatabaseFile({ ...where, fileSystemType: this.#fileSystemType });
    const turns = new Turns({ file, name, clock, random });
    const signals = new SqliteSignals({
      path: this.#path,
      names,
      file,
      turns,
      clock,
      random,
      host,
    });
    const lines = new Lines({ names, signals });
    const sweep = new Sweep();
    this.#file = file;
    this.#turns = turns;
    this.signals = signals;
    this.leases = new SqliteLeases({ names, turns, marker, lines, signals, sweep });
    this.members = new SqliteMembers({ names, turns });
    this.records = new SqliteRecords({ names, turns, sweep });
    this.log = new SqliteLog({ names, turns });
    const tell = (tx: Tx, topic: string, message: string) =>
      signals.send(tx, names.of(topic), message);
    const work = { scope: prefix, turns, tell };
    this.streams = new SqliteStreams(work);
    this.workflows = new SqliteWorkflows({ ...work, leases: this.leases });
    this.intents = new SqliteIntents(work);
  }

  async open(): Promise<void> {
    const { fileSystem } = await this.#look();
    const { level, fact, advice = '' } = judgeFileSystem(fileSystem);
    if (level !== 'warn') return;
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
