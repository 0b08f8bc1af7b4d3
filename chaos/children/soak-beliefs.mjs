// What a process of a soak writes down, and where its chance comes from.
import { appendFileSync } from 'node:fs';

/** So many lines go to the file together. */
const FLUSHED = 10;

/** All processes of a host share this clock. */
export function nowMicros() {
  return Number(process.hrtime.bigint() / 1_000n);
}

/** The times in which a process passed the check of a lease, as lines of a file. */
export class Beliefs {
  #file;
  #name;
  #open = new Map();
  #lines = [];
  #leases = 0;

  constructor(file, name) {
    this.#file = file;
    this.#name = name;
  }

  /** Runs the check. It passed at some moment between the two readings of the clock. */
  check(lease, key, assertHeld) {
    const before = nowMicros();
    try {
      assertHeld();
    } catch {
      this.end(lease);
      return;
    }
    const after = nowMicros();
    const open = this.#open.get(lease);
    if (open !== undefined) open.until = Math.max(open.until, before);
    else {
      const { holder, fence } = lease;
      const by = `${this.#name}#${lease.soakNumber ?? this.#number(lease)}`;
      this.#open.set(lease, { key, by, holder, fence, from: after, until: after });
    }
  }

  /** A check that passes later begins another time. */
  end(lease) {
    const open = this.#open.get(lease);
    if (open === undefined) return;
    this.#open.delete(lease);
    this.#lines.push(JSON.stringify(open));
    if (this.#lines.length >= FLUSHED) this.#write();
  }

  flush() {
    for (const open of this.#open.values()) this.#lines.push(JSON.stringify(open));
    this.#open.clear();
    this.#write();
  }

  #write() {
    if (this.#lines.length > 0) appendFileSync(this.#file, `${this.#lines.join('\n')}\n`);
    this.#lines = [];
  }

  #number(lease) {
    lease.soakNumber = ++this.#leases;
    return lease.soakNumber;
  }
}

/** Numbers in [0, 1) that a seed repeats (mulberry32). */
export function chanceOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
