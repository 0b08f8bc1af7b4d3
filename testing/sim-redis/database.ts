import { ReplyError } from '../../src/store/redis/client/wire.ts';
import { Journal } from './journal.ts';
import { SortedSet } from './sorted-set.ts';
import { Stream } from './stream.ts';
import { WRONG_TYPE } from './value.ts';

/** What a key may hold, by what Redis calls its type. */
interface Kinds {
  string: string;
  hash: Map<string, string>;
  set: Set<string>;
  list: string[];
  zset: SortedSet;
  stream: Stream;
}
export type Kind = keyof Kinds;
export type Content = Kinds[Kind];

export interface Entry {
  readonly kind: Kind;
  readonly content: Content;
  /** On the server's wall clock; `Infinity` for never. */
  expiresAtMs: number;
  /** Grows from key to key in the order in which they are walked over. */
  serial: number;
}

/**
 * The keys and what they hold. A key whose time has come goes when it is next looked at. Every
 * change is noted, so that it can be undone; who changes what a key holds notes that too.
 */
export class Database {
  readonly journal: Journal;
  /**
   * The time of the command being carried out, in whole ms and in µs: it stands still meanwhile.
   */
  nowMs = 0;
  nowMicros = 0;
  #entries = new Map<string, Entry>();
  #serial = 0;

  constructor(monotonicMs: () => number) {
    this.journal = new Journal(monotonicMs);
  }

  /**
   * What a key has, if it has not expired: it lives through the whole millisecond for which it was
   * to live.
   */
  find(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.expiresAtMs >= this.nowMs) return entry;
    this.remove(key);
    return undefined;
  }

  /** What it has of a kind; an error where that is of another. */
  read<K extends Kind>(kind: K, key: string): Kinds[K] | undefined {
    const entry = this.find(key);
    if (entry === undefined) return undefined;
    if (entry.kind !== kind) throw new ReplyError(WRONG_TYPE);
    return entry.content as Kinds[K];
  }

  /** The same, made where there is nothing. */
  open<K extends Kind>(kind: K, key: string, make: () => Kinds[K]): Kinds[K] {
    const found = this.read(kind, key);
    if (found !== undefined) return found;
    const content = make();
    this.write(key, kind, content, Infinity);
    return content;
  }

  /** Replaces whatever there is. */
  write(key: string, kind: Kind, content: Content, expiresAtMs: number): void {
    const old = this.#entries.get(key);
    const serial = old?.serial ?? ++this.#serial;
    this.#entries.set(key, { kind, content, expiresAtMs, serial });
    this.journal.note(() => this.#restore(key, old));
  }

  /** Whether it was there. */
  remove(key: string): boolean {
    const old = this.#entries.get(key);
    if (old === undefined) return false;
    this.#entries.delete(key);
    this.journal.note(() => this.#restore(key, old));
    return true;
  }

  expireAt(entry: Entry, atMs: number): void {
    const before = entry.expiresAtMs;
    entry.expiresAtMs = atMs;
    this.journal.note(() => {
      entry.expiresAtMs = before;
    });
  }

  clear(): void {
    const old = this.#entries;
    this.#entries = new Map();
    this.journal.note(() => {
      this.#entries = old;
    });
  }

  /** Has what another database has, and nothing else. */
  copyFrom(other: Database): void {
    this.clear();
    for (const [key, { kind, content, expiresAtMs }] of other.#entries)
      this.write(key, kind, copyOf(content), expiresAtMs);
  }

  /** All keys that have not expired. */
  *walk(): IterableIterator<readonly [string, Entry]> {
    for (const pair of this.#entries) if (this.find(pair[0]) !== undefined) yield pair;
  }

  /**
   * The same entry as before: what was noted earlier is about it. Its place is that of what is
   * there now, or the last.
   */
  #restore(key: string, old: Entry | undefined): void {
    if (old === undefined) {
      this.#entries.delete(key);
      return;
    }
    old.serial = this.#entries.get(key)?.serial ?? ++this.#serial;
    this.#entries.set(key, old);
  }
}

function copyOf(content: Content): Content {
  if (typeof content === 'string') return content;
  if (content instanceof SortedSet || content instanceof Stream) return content.copy();
  if (content instanceof Map) return new Map(content);
  return content instanceof Set ? new Set(content) : [...content];
}
