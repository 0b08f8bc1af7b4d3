export interface StreamId {
  readonly ms: number;
  readonly number: number;
}

export interface StreamEntry {
  readonly id: StreamId;
  readonly fields: readonly string[];
}

type Node = StreamEntry[];

/** How many entries Redis keeps in one node by default. Here they are counted only; there large ones make smaller nodes. */
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

  append(entry: StreamEntry): void {
    const last = this.#nodes.at(-1);
    if (last === undefined || last.length >= NODE_ENTRIES) this.#nodes.push([entry]);
    else last.push(entry);
    this.length++;
    this.lastId = entry.id;
  }

  /** Takes the last one back. */
  retract(lastId: StreamId): void {
    const last = this.#nodes.at(-1);
    last?.pop();
    if (last?.length === 0) this.#nodes.pop();
    this.length--;
    this.lastId = lastId;
  }

  /** Takes whole nodes away while there stay so many entries, or while all of a node's are older than `minId`. */
  trim({ kept = 0, minId }: { kept?: number; minId?: StreamId }): Node[] {
    let [count, entries] = [0, 0];
    for (const node of this.#nodes) {
      const last = node.at(-1)?.id ?? NO_ID;
      const mayGo =
        minId === undefined
          ? this.length - entries - node.length >= kept
          : compareIds(last, minId) < 0;
      if (!mayGo || entries + node.length > MOST_TRIMMED) break;
      entries += node.length;
      count++;
    }
    this.length -= entries;
    return this.#nodes.splice(0, count);
  }

  /** Puts trimmed nodes back. */
  restore(nodes: readonly Node[]): void {
    this.#nodes.unshift(...nodes);
    for (const node of nodes) this.length += node.length;
  }

  /** What lies between two ids, both included, the oldest first. */
  range(from: StreamId, to: StreamId, most: number): StreamEntry[] {
    const found: StreamEntry[] = [];
    for (const node of this.#nodes) {
      const last = node.at(-1)?.id ?? NO_ID;
      if (compareIds(last, from) < 0) continue;
      for (const entry of node) {
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
      const node = this.#nodes[n] ?? [];
      for (let i = node.length - 1; i >= 0; i--) {
        const entry = node[i];
        if (entry === undefined || compareIds(entry.id, to) > 0) continue;
        if (compareIds(entry.id, from) < 0 || found.length >= most) return found;
        found.push(entry);
      }
    }
    return found;
  }
}
