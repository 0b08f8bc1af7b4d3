/**
 * One row that says which file this is, and what time it is in it. Read at the beginning of every transaction.
 *
 * **The store's time** is the host's monotonic clock, which all its processes share, plus `skew`. Another start of the
 * host (`boot`) begins at nought: then every lease, line and member is void and every claim on a
 * delivery has run out, since no holder has survived, and the skew is set so that
 * time goes on from where it was, for the sake of what outlives a start: fences and records. A process that has seen its
 * own boot in the file and then finds another one shares the file with another host; one that finds times ahead of its own
 * has another clock than its neighbours (a time namespace). Both are refused: leases can not be trusted there.
 *
 * **Quarantine**: a file that was deleted, replaced or restored has forgotten grants whose holders still act. Until the last of
 * those must have expired it makes no new ones; renewals continue, and holders put back what vanished. That takes as long as the
 * bound of the keyspace (`../keyspaces.ts`), which every process knows without the file. A loss shows by the file being another
 * one than the marker was written in (`file`), by another `origin` than a process remembers, or by an era that the process has
 * left before: a file that was moved away and back. Each finding begins a new *era*, so that every process
 * hears of it in its next transaction. A new file that no running process remembers otherwise grants at once.
 */
import { StoreUnsuitableError } from '../../../core/errors.ts';
import type { Emitter } from '../../../core/events.ts';
import type { Random } from '../../../core/random.ts';
import {
  boundsProblem,
  KEYSPACE_NAMES,
  type Keyspace,
  type MaxTtls,
  QUARANTINE_MARGIN_MS,
} from '../../port/keyspaces.ts';
import { QuarantineNotices } from '../../quarantine-notices.ts';
import type { Host } from './host.ts';
import type { SqliteConnection } from './sqlite-connection.ts';

/** Eras that a process has left and would recognise. Older ones are forgotten first. */
const MOST_ERAS = 1_000;
const LED_BACK = 'an earlier state of its data is back';
/** How far ahead of us the file's time may be: on one clock, not at all. */
const AHEAD_MS = 1_000;
/** How old `latest` may get before a transaction that writes anyway renews it. */
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

interface MarkerOptions {
  readonly mode: 'on' | 'off';
  readonly store: string;
  /** Null for an observer, which is granted nothing. */
  readonly maxTtls: MaxTtls | null;
  readonly host: Host;
  readonly random: Random;
  readonly events: Emitter;
}

export class StoreClock {
  readonly #options: MarkerOptions;
  #origin = '';
  #era = '';
  #since: number | null = null;
  /** The latest time this process has read in the file: an earlier one means that an older copy was loaded into it. */
  #latest = Number.NEGATIVE_INFINITY;
  /** Eras that this process has left: a file that shows one of them has been moved back. */
  readonly #left = new Set<string>();

  readonly #notices: QuarantineNotices;
  /** The store's time in the transaction under way. */
  #nowMs = 0;

  constructor(options: MarkerOptions) {
    this.#options = options;
    this.#notices = new QuarantineNotices(options.events, options.store, (keyspace) =>
      this.leftMs(keyspace, this.#nowMs),
    );
  }

  /** Looks at a file just opened, inside a transaction that writes; says what to tell once it is committed. */
  examine(session: SqliteConnection, file: string, monotonicMs: number): () => void {
    const { host, random } = this.#options;
    const found = session.row<Row>(SELECT);
    const remembered = this.#origin;
    const row: Row = found ?? [host.bootId, 0, monotonicMs, file, random.hex(12), '', null];
    let why =
      found === undefined && remembered !== '' ? 'its file is gone: deleted, or replaced' : '';
    const isAnotherBoot = row[0] !== host.bootId || this.#isBeforeAll(row, monotonicMs);
    if (isAnotherBoot) {
      for (const table of ['leases', 'lines', 'members', 'listeners', 'messages'])
        session.exec(`DELETE FROM ${table}`);
      session.exec('UPDATE lanes SET due = 0 WHERE fence > 0');
      row[0] = host.bootId;
      row[1] = row[2] - monotonicMs;
      row[6] = null;
      // Who remembers this start of the host under another marker has been given an old file.
      if (remembered !== '') why ||= 'its file was replaced by an older one';
    } else if (row[3] !== file) {
      why ||= 'its file is a copy, or was restored';
    } else if (remembered !== '' && row[4] !== remembered) {
      why ||= 'its file was replaced by a new one';
    } else if (row[5] !== this.#era && this.#left.has(row[5])) {
      why ||= LED_BACK;
    }
    this.#keepBounds(session, remembered !== '' && why !== '');
    const nowMs = monotonicMs + row[1];
    if (why !== '') row[6] = nowMs;
    // The origin remembered is put back, so that each loss is found once.
    if (remembered !== '') row[4] = remembered;
    if (why !== '' || isAnotherBoot || found === undefined) row[5] = random.hex(12);
    row[3] = file;
    row[2] = Math.max(row[2], nowMs);
    session.run('INSERT OR REPLACE INTO marker VALUES (1, ?, ?, ?, ?, ?, ?, ?)', ...row);
    return () => {
      if (why !== '') this.#tellForgotten(why);
      this.#adopt(row, nowMs);
    };
  }

  /** The store's time in this transaction. Also notices what others have found. */
  check(session: SqliteConnection, monotonicMs: number, isWriting: boolean): number {
    const { host, store } = this.#options;
    const row = session.row<Row>(SELECT);
    const refuse = (problem: string) =>
      new StoreUnsuitableError({ store, problems: [problem], voidsLeases: true });
    if (row === undefined)
      throw refuse('The file has lost its marker: somebody has emptied it. Use another file.');
    if (row[0] !== host.bootId)
      throw refuse(
        'The file is in use on another host. Use Redis or Valkey for more than one host.',
      );
    const nowMs = monotonicMs + row[1];
    if (row[2] > nowMs + AHEAD_MS)
      throw refuse(
        `Another process on this file has a clock that is ${Math.round(row[2] - nowMs)} ms ahead of this one. ` +
          'Let all of them run in one time namespace, or use Redis or Valkey.',
      );
    const isOlder = row[2] < this.#latest || (row[5] !== this.#era && this.#left.has(row[5]));
    if (isOlder && isWriting) this.beginEra(session, LED_BACK, nowMs);
    else if (row[5] !== this.#era) {
      this.#checkBounds(session);
      this.#adopt(row, nowMs);
    }
    if (!isOlder) this.#latest = row[2];
    if (isWriting && nowMs - row[2] > LATEST_EVERY_MS)
      session.run('UPDATE marker SET latest = ?', nowMs);
    return nowMs;
  }

  /** The era that is in quarantine, '' for none: what is handed over in it may be claimed in it. */
  handoverEra(nowMs: number): string {
    return KEYSPACE_NAMES.some((keyspace) => this.leftMs(keyspace, nowMs) > 0) ? this.#era : '';
  }

  /** How long no new lease of a keyspace may be granted yet; 0 if it may be. */
  leftMs(keyspace: Keyspace, nowMs: number): number {
    const { maxTtls, mode } = this.#options;
    if (mode === 'off') return 0;
    if (maxTtls === null) return Number.POSITIVE_INFINITY;
    if (this.#since === null) return 0;
    return Math.max(0, this.#since + maxTtls[keyspace] + QUARANTINE_MARGIN_MS - nowMs);
  }

  /** The same, for a process that wants a lease there: it is told of the wait. */
  ask(keyspace: Keyspace, nowMs: number): number {
    this.#nowMs = nowMs;
    return this.#notices.leftMs(keyspace);
  }

  /** A lease vanished under its holder, and its fence record too: grants stop, for everybody, before it may be put back. */
  forgot(session: SqliteConnection, keyspace: Keyspace, nowMs: number): boolean {
    if (this.#options.mode === 'off') return false;
    if (this.leftMs(keyspace, nowMs) > 0) return true;
    this.beginEra(session, 'a lease vanished under its holder', nowMs);
    return true;
  }

  /** From now on the file counts as having forgotten. Inside a transaction that writes. */
  beginEra(session: SqliteConnection, why: string, nowMs: number): void {
    session.run('UPDATE marker SET era = ?, since = ?', this.#options.random.hex(12), nowMs);
    this.#tellForgotten(why);
    const row = session.row<Row>(SELECT);
    if (row === undefined) return;
    this.#adopt(row, nowMs);
    this.#latest = row[2];
  }

  /** Without a boot id, a clock that stands before the last time in the file says that it has begun anew. */
  #isBeforeAll([, skew, latest]: Row, monotonicMs: number): boolean {
    return this.#options.host.bootId === '' && latest > monotonicMs + skew + AHEAD_MS;
  }

  /** Refuses a file with other bounds than ours. */
  #checkBounds(session: SqliteConnection): void {
    const { maxTtls, store } = this.#options;
    if (maxTtls === null) return;
    const recorded = session.rows<[Keyspace, number]>('SELECT name, ttl FROM bounds');
    const problem = boundsProblem(Object.fromEntries(recorded), maxTtls);
    if (problem !== null) throw new StoreUnsuitableError({ store, problems: [problem] });
  }

  /** Writes our bounds; those of a file that lost its data under us do not count. */
  #keepBounds(session: SqliteConnection, hasLost: boolean): void {
    const { maxTtls } = this.#options;
    if (maxTtls === null) return;
    if (!hasLost) this.#checkBounds(session);
    for (const name of KEYSPACE_NAMES)
      session.run('INSERT OR REPLACE INTO bounds VALUES (?, ?)', name, maxTtls[name]);
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
      if (this.#left.size <= MOST_ERAS) break;
      this.#left.delete(oldest);
    }
  }

  #tellForgotten(why: string): void {
    const { events, store } = this.#options;
    events.emit('store.forgot', { store, why });
  }
}
