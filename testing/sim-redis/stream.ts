export interface StreamId {
  readonly ms: number;
  readonly number: number;
}

export interface StreamEntry {
  readonly id: StreamId;
  readonly fields: readonly string[];
}

interface Node {
  readonly entries: StreamEntry[];
  /** How many were ever put into it: what was removed leaves no room. */
  filled: number;
}

/**
 * How many entries Redis keeps in one node by default. Here they are counted only; there large ones
 * make smaller nodes.
 */
const NODE_ENTRIES = 100;
/** How many entries one trimming takes away at most, as Redis has it. */
const MOST_TRIMMED = 100 * NODE_ENTRIES;

export const NO_ID: StreamId = { ms: 0, number: 0 };

export function compareIds(a: StreamId, b: StreamId): number {
  return a.ms - b.ms || a.number - b.number;
}

/** Entries by growing ids, in nodes. "About so many" means that only whole nodes go. */
export class Stream {
  readonly #nodes: Node[] = [];
  length = 0;
  lastId: StreamId = NO_ID;

  copy(): Stream {
    const copy = new Stream();
    for (const { entries, filled } of this.#nodes)
      copy.#nodes.push({ entries: [...entries], filled });
    copy.length = this.length;
    copy.lastId = this.lastId;
    return copy;
  }

  append(entry: StreamEntry): void {
    let last = this.#nodes.at(-1);
    if (last === undefined || last.filled >= NODE_ENTRIES) {
      last = { entries: [], filled: 0 };
      this.#nodes.push(last);
    }
    last.entries.push(entry);
    last.filled++;
    this.length++;
    this.lastId = entry.id;
  }

  /** Takes the last one back. */
  retract(lastId: StreamId): void {
    const last = this.#nodes.at(-1);
    if (last === undefined) return;
    last.entries.pop();
    last.filled--;
    if (last.filled === 0) this.#nodes.pop();
    this.length--;
    this.lastId = lastId;
  }

  get firstId(): StreamId {
    return this.#nodes[0]?.entries[0]?.id ?? NO_ID;
  }

  /** Removes an entry; gives how to put it back, or null where there is none. */
  remove(id: StreamId): (() => void) | null {
    const n = this.#nodes.findIndex(
      ({ entries }) => compareIds(entries.at(-1)?.id ?? NO_ID, id) >= 0,
    );
    const node = this.#nodes[n];
    const place = node?.entries.findIndex((entry) => compareIds(entry.id, id) === 0) ?? -1;
    if (node === undefined || place < 0) return null;
    const removed = node.entries.splice(place, 1);
    const isEmptied = node.entries.length === 0;
    if (isEmptied) this.#nodes.splice(n, 1);
    this.length--;
    return () => {
      if (isEmptied) this.#nodes.splice(n, 0, node);
      node.entries.splice(place, 0, ...removed);
      this.length++;
    };
  }

  /**
   * Takes whole nodes away while there stay so many entries, or while all of a node's are older
   * than `minId`.
   */
  trim({ kept = 0, minId }: { kept?: number; minId?: StreamId }): Node[] {
    let [count, entries] = [0, 0];
    for (const { entries: own } of this.#nodes) {
      const last = own.at(-1)?.id ?? NO_ID;
      const mayGo =
        minId === undefined
          ? this.length - entries - own.length >= kept
          : compareIds(last, minId) < 0;
      if (!mayGo || entries + own.length > MOST_TRIMMED) break;
      entries += own.length;
      count++;
    }
    this.length -= entries;
    return this.#nodes.splice(0, count);
  }

  /** Puts trimmed nodes back. */
  restore(nodes: readonly Node[]): void {
    this.#nodes.unshift(...nodes);
    for (const { entries } of nodes) this.length += entries.length;
  }

  /** What lies between two ids, both included, the oldest first. */
  range(from: StreamId, to: StreamId, most: number): StreamEntry[] {
    const found: StreamEntry[] = [];
    for (const { entries } of this.#nodes) {
      const last = entries.at(-1)?.id ?? NO_ID;
      if (compareIds(last, from) < 0) continue;
      for (const entry of entries) {
        if (compareIds(entry.id, from) < 0) continue;
        if (compareIds(entry.id, to) > 0 || found.length >= most) return found;
        found.push(entry);
      }
    }
    return found;
  }

  /** The same, the newest first. */
  reverseRange(from: StreamId, to: StreamId, most: number): StreamEntry[] {
    const found: StreamEntry[] = [];
    for (let n = this.#nodes.length - 1; n >= 0; n--) {
      const { entries } = this.#nodes[n] ?? { entries: [] };
      for (let i = entries.length - 1; i >= 0; i--) {
        const entry = entries[i];
        if (entry === undefined || compareIds(entry.id, to) > 0) continue;
        if (compareIds(entry.id, from) < 0 || found.length >= most) return found;
        found.push(entry);
      }
    }
    return found;
  }
}
