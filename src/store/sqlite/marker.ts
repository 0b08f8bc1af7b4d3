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
 * **Quarantine**: a file that was deleted, replaced or restored has forgotten grants whose holders still act. Until the longest of
 * those can have run out it makes no new ones; renewals go on, and holders put back what vanished. It shows by the file being another
 * one than the marker was written in (`file`), or by another `origin` than a process remembers. Each finding begins a
 * new *era*, so that every process hears of it in its next transaction. A new file that nobody remembers otherwise grants at once.
 */
import { StoreUnsuitableError } from '../../base/errors.ts';
import type { Emitter } from '../../base/events.ts';
import type { Random } from '../../base/random.ts';
import type { Host } from './host.ts';
import type { Session, Tx } from './session.ts';

/** Beyond the longest TTL: for rounding, and for clocks that are read at different moments. */
const MARGIN_MS = 1_000;
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
  readonly host: Host;
  readonly random: Random;
  readonly events: Emitter;
}

export class Marker {
  readonly #options: MarkerOptions;
  #origin = '';
  #era = '';
  #since: number | null = null;
  /** The longest TTL each class has used, of all we have ever heard: survives the file. */
  readonly #longestTtlMs = new Map<string, number>();

  constructor(options: MarkerOptions) {
    this.#options = options;
  }

  /** Looks at a file just opened, inside a transaction that writes; says what to tell once it is committed. */
  examine(session: Session, file: string, monotonicMs: number): () => void {
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
    }
    const nowMs = monotonicMs + row[1];
    if (why !== '') row[6] = nowMs;
    // The origin remembered is put back, so that each loss is found once.
    if (remembered !== '') row[4] = remembered;
    if (why !== '' || isAnotherBoot || found === undefined) row[5] = random.hex(12);
    row[3] = file;
    row[2] = Math.max(row[2], nowMs);
    session.run('INSERT OR REPLACE INTO marker VALUES (1, ?, ?, ?, ?, ?, ?, ?)', ...row);
    for (const [name, ttlMs] of this.#longestTtlMs) keepTtl(session, name, ttlMs);
    return () => {
      if (why !== '') this.#tellForgotten(why);
      this.#adopt(row, this.#classes(session), nowMs);
    };
  }

  /** The store's time in this transaction. Also notices what others have found. */
  check(session: Session, monotonicMs: number, isWriting: boolean): number {
    const { host, store } = this.#options;
    const row = session.row<Row>(SELECT);
    const refuse = (problem: string) => new StoreUnsuitableError({ store, problems: [problem] });
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
    if (isWriting && nowMs - row[2] > LATEST_EVERY_MS)
      session.run('UPDATE marker SET latest = ?', nowMs);
    if (row[5] !== this.#era) this.#adopt(row, this.#classes(session), nowMs);
    return nowMs;
  }

  /** For how long yet no new lease of a class may be granted; 0 for none. */
  leftMs(leaseClass: string, nowMs: number): number {
    if (this.#options.mode === 'off' || this.#since === null) return 0;
    const untilMs = this.#since + (this.#longestTtlMs.get(leaseClass) ?? 0) + MARGIN_MS;
    return Math.max(0, untilMs - nowMs);
  }

  /** The file must say that a class uses TTLs as long as this before the first such grant; in the same transaction will do. */
  use({ session, after }: Pick<Tx, 'session' | 'after'>, leaseClass: string, ttlMs: number): void {
    if (ttlMs <= (this.#longestTtlMs.get(leaseClass) ?? 0)) return;
    keepTtl(session, leaseClass, ttlMs);
    after.push(() =>
      this.#longestTtlMs.set(leaseClass, Math.max(ttlMs, this.#longestTtlMs.get(leaseClass) ?? 0)),
    );
  }

  /** A lease vanished under its holder, and its fence record too: grants stop, for everybody, before it may be put back. */
  forgot(session: Session, leaseClass: string, nowMs: number): boolean {
    if (this.#options.mode === 'off') return false;
    if (this.leftMs(leaseClass, nowMs) > 0) return true;
    session.run('UPDATE marker SET era = ?, since = ?', this.#options.random.hex(12), nowMs);
    this.#tellForgotten('a lease vanished under its holder');
    const row = session.row<Row>(SELECT);
    if (row !== undefined) this.#adopt(row, this.#classes(session), nowMs);
    return true;
  }

  /** Without a boot id, a clock that stands before the last time in the file says that it has begun anew. */
  #isBeforeAll([, skew, latest]: Row, monotonicMs: number): boolean {
    return this.#options.host.bootId === '' && latest > monotonicMs + skew + AHEAD_MS;
  }

  #classes(session: Session): [string, number][] {
    return session.rows<[string, number]>('SELECT name, ttl FROM classes');
  }

  #adopt(row: Row, classes: readonly [string, number][], nowMs: number): void {
    const { events, mode, store } = this.#options;
    [, , , , this.#origin, this.#era, this.#since] = row;
    for (const [name, ttlMs] of classes)
      this.#longestTtlMs.set(name, Math.max(this.#longestTtlMs.get(name) ?? 0, ttlMs));
    if (mode === 'off') return;
    for (const leaseClass of this.#longestTtlMs.keys()) {
      const leftMs = this.leftMs(leaseClass, nowMs);
      if (leftMs > 0) events.emit('store.quarantined', { store, leaseClass, leftMs });
    }
  }

  #tellForgotten(why: string): void {
    const { events, store } = this.#options;
    events.emit('store.forgot', { store, why });
  }
}

function keepTtl(session: Session, leaseClass: string, ttlMs: number): void {
  session.run(
    'INSERT INTO classes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET ttl = max(ttl, excluded.ttl)',
    leaseClass,
    ttlMs,
  );
}
