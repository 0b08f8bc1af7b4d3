/**
 * The marker: one row that identifies the file, and has its time. Every transaction begins by
 * reading it.
 *
 * **The store's time** is the host's monotonic clock, which all its processes share, plus `skew`.
 * After another start of the host (`boot`) that clock begins at zero. No holder has survived the
 * start, so every lease, waiter and member is void and every claim on a delivery has expired.
 * `skew` is set so that time continues from where it was, for fences and records, which outlive a
 * start. A process that has seen its own boot id in the file and then finds another one shares the
 * file with another host. A process that finds a time ahead of its own has another clock than the
 * other processes (a time namespace). Both are refused: leases cannot be trusted there.
 *
 * **Quarantine**: a file that was deleted, replaced or restored has lost grants whose holders still
 * act. The store makes no new grants until the last of those has expired. Renewals continue, and
 * holders put back the leases that the file lost. The wait is the bound of the keyspace
 * (`../../port/keyspaces.ts`), which every process knows without the file. A process detects a loss
 * by the file's inode (`file`), by another `origin` than it remembers, or by an era that it has
 * already left: then the file was moved away and back. Each loss begins a new *era*, so that every
 * process learns of it in its next transaction. A new file grants at once if no running process
 * remembers another one.
 */
import { StoreUnsuitableError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import {
  boundsProblem,
  KEYSPACE_NAMES,
  type Keyspace,
  type MaxTtls,
  QUARANTINE_MARGIN_MS,
} from '../../port/keyspaces.ts';
import { QuarantineEmitter } from '../../quarantine-emitter.ts';
import type { Host } from './host.ts';
import type { SqliteOptions } from './options.ts';
import type { SqliteConnection } from './sqlite-connection.ts';

/** A process remembers at most so many eras that it has left. It drops the oldest first. */
const MAX_ERAS = 1_000;
const WENT_BACK = 'an earlier state of its data is back';
/** The file's time may be ahead of this process by this much. On one clock it never is. */
const MAX_AHEAD_MS = 1_000;
/** A transaction that writes anyway updates `latest` once it is older than this. */
const LATEST_EVERY_MS = 250;

type Row = [
  boot: string,
  skew: number,
  latest: number,
  file: string,
  origin: string,
  era: string,
  since: number | null,
];
const SELECT = 'SELECT boot, skew, latest, file, origin, era, since FROM marker';

export class StoreClock {
  readonly #rt: BaseRuntime;
  readonly #store: string;
  readonly #host: Host;
  readonly #quarantine: 'on' | 'off';
  /** Null for an observer, which acquires no leases. */
  readonly maxTtls: MaxTtls | null;
  #origin = '';
  #era = '';
  #since: number | null = null;
  /** The latest time read from the file. An earlier one means that an older copy was restored. */
  #latest = Number.NEGATIVE_INFINITY;
  /** Eras that this process has left. A file with one of them was moved back. */
  readonly #left = new Set<string>();

  readonly #notices: QuarantineEmitter;
  /** The store's time in the current transaction. */
  #nowMs = 0;

  constructor(rt: BaseRuntime, store: string, options: SqliteOptions) {
    this.#rt = rt;
    this.#store = store;
    this.#host = options.host;
    this.#quarantine = options.quarantine;
    this.maxTtls = options.maxTtls;
    this.#notices = new QuarantineEmitter(rt.events, store, (keyspace) =>
      this.leftMs(keyspace, this.#nowMs),
    );
  }

  /**
   * Examines a file that was just opened, inside a transaction that writes. The caller runs the
   * returned function after COMMIT: it emits the findings.
   */
  examine(connection: SqliteConnection, file: string, monotonicMs: number): () => void {
    const { random } = this.#rt;
    const host = this.#host;
    const found = connection.row<Row>(SELECT);
    const remembered = this.#origin;
    const row: Row = found ?? [host.bootId, 0, monotonicMs, file, random.hex(12), '', null];
    let why =
      found === undefined && remembered !== '' ? 'its file is gone: deleted, or replaced' : '';
    const isAnotherBoot = row[0] !== host.bootId || this.#isBeforeAll(row, monotonicMs);
    if (isAnotherBoot) {
      for (const table of ['keepalives', 'leases', 'lines', 'members', 'listeners', 'messages'])
        connection.exec(`DELETE FROM ${table}`);
      connection.exec('UPDATE lanes SET due = 0 WHERE fence > 0');
      row[0] = host.bootId;
      row[1] = row[2] - monotonicMs;
      row[6] = null;
      // This process has seen another marker since the host started: the file is an older one.
      if (remembered !== '') why ||= 'its file was replaced by an older one';
    } else if (row[3] !== file) {
      why ||= 'its file is a copy, or was restored';
    } else if (remembered !== '' && row[4] !== remembered) {
      why ||= 'its file was replaced by a new one';
    } else if (row[5] !== this.#era && this.#left.has(row[5])) {
      why ||= WENT_BACK;
    }
    this.#putBounds(connection, remembered !== '' && why !== '');
    const nowMs = monotonicMs + row[1];
    if (why !== '') row[6] = nowMs;
    // The remembered origin is put back, so that each loss is detected once.
    if (remembered !== '') row[4] = remembered;
    if (why !== '' || isAnotherBoot || found === undefined) row[5] = random.hex(12);
    row[3] = file;
    row[2] = Math.max(row[2], nowMs);
    connection.run('INSERT OR REPLACE INTO marker VALUES (1, ?, ?, ?, ?, ?, ?, ?)', ...row);
    return () => {
      if (why !== '') this.#emitForgot(why);
      this.#adopt(row, nowMs);
    };
  }

  /** Returns the store's time in this transaction, and adopts an era that another process began. */
  check(connection: SqliteConnection, monotonicMs: number, isWriting: boolean): number {
    const row = connection.row<Row>(SELECT);
    const refuse = (problem: string) =>
      new StoreUnsuitableError({ store: this.#store, problems: [problem], voidsLeases: true });
    if (row === undefined)
      throw refuse(
        'The file has lost its marker row: another program has emptied it. Use another file.',
      );
    if (row[0] !== this.#host.bootId)
      throw refuse(
        'A process on another host uses the file. Use Redis or Valkey for more than one host.',
      );
    const nowMs = monotonicMs + row[1];
    if (row[2] > nowMs + MAX_AHEAD_MS)
      throw refuse(
        `The clock of another process that uses the file is ${Math.round(row[2] - nowMs)} ms ahead. ` +
          'Run all processes in one time namespace, or use Redis or Valkey.',
      );
    const isOlder = row[2] < this.#latest || (row[5] !== this.#era && this.#left.has(row[5]));
    if (isOlder && isWriting) this.beginEra(connection, WENT_BACK, nowMs);
    else if (row[5] !== this.#era) {
      this.#checkBounds(connection);
      this.#adopt(row, nowMs);
    }
    if (!isOlder) this.#latest = row[2];
    if (isWriting && nowMs - row[2] > LATEST_EVERY_MS)
      connection.run('UPDATE marker SET latest = ?', nowMs);
    return nowMs;
  }

  /** Returns the era in quarantine, or ''. A key handed over in an era may be claimed in it. */
  handoverEra(nowMs: number): string {
    return KEYSPACE_NAMES.some((keyspace) => this.leftMs(keyspace, nowMs) > 0) ? this.#era : '';
  }

  /** Returns how long the keyspace is still in quarantine; 0 if leases may be granted. */
  leftMs(keyspace: Keyspace, nowMs: number): number {
    if (this.#quarantine === 'off') return 0;
    if (this.maxTtls === null) return Number.POSITIVE_INFINITY;
    if (this.#since === null) return 0;
    return Math.max(0, this.#since + this.maxTtls[keyspace] + QUARANTINE_MARGIN_MS - nowMs);
  }

  /** The same for an acquire: emits `store.quarantined` once. */
  acquireLeftMs(keyspace: Keyspace, nowMs: number): number {
    this.#nowMs = nowMs;
    return this.#notices.leftMs(keyspace);
  }

  /**
   * The file lost a lease together with its fence record. Begins a quarantine for every process,
   * and returns whether the holder may put the lease back.
   */
  beginQuarantine(connection: SqliteConnection, keyspace: Keyspace, nowMs: number): boolean {
    if (this.#quarantine === 'off') return false;
    if (this.leftMs(keyspace, nowMs) > 0) return true;
    this.beginEra(connection, 'a lease vanished under its holder', nowMs);
    return true;
  }

  /** Begins a new era, and with it a quarantine. Inside a transaction that writes. */
  beginEra(connection: SqliteConnection, why: string, nowMs: number): void {
    connection.run('UPDATE marker SET era = ?, since = ?', this.#rt.random.hex(12), nowMs);
    this.#emitForgot(why);
    const row = connection.row<Row>(SELECT);
    if (row === undefined) return;
    this.#adopt(row, nowMs);
    this.#latest = row[2];
  }

  /** Without a boot id, a clock before the file's last time means another start of the host. */
  #isBeforeAll([, skew, latest]: Row, monotonicMs: number): boolean {
    return this.#host.bootId === '' && latest > monotonicMs + skew + MAX_AHEAD_MS;
  }

  /** Refuses a file with other bounds than this process has. */
  #checkBounds(connection: SqliteConnection): void {
    if (this.maxTtls === null) return;
    const recorded = connection.rows<[Keyspace, number]>('SELECT name, ttl FROM bounds');
    const problem = boundsProblem(Object.fromEntries(recorded), this.maxTtls);
    if (problem !== null)
      throw new StoreUnsuitableError({ store: this.#store, problems: [problem] });
  }

  /** Writes this process's bounds. The bounds of a file that lost its data do not count. */
  #putBounds(connection: SqliteConnection, hasLost: boolean): void {
    const { maxTtls } = this;
    if (maxTtls === null) return;
    if (!hasLost) this.#checkBounds(connection);
    for (const name of KEYSPACE_NAMES)
      connection.run('INSERT OR REPLACE INTO bounds VALUES (?, ?)', name, maxTtls[name]);
  }

  #adopt(row: Row, nowMs: number): void {
    if (this.#era !== '' && this.#era !== row[5]) this.#leave(this.#era);
    [, , , , this.#origin, this.#era, this.#since] = row;
    this.#nowMs = nowMs;
    this.#notices.begin();
  }

  #leave(era: string): void {
    this.#left.add(era);
    for (const oldest of this.#left) {
      if (this.#left.size <= MAX_ERAS) break;
      this.#left.delete(oldest);
    }
  }

  #emitForgot(why: string): void {
    this.#rt.events.emit('store.forgot', { store: this.#store, why });
  }
}
