/**
 * What has happened in a world: a digest of all of it, by which two runs are compared, and the last
 * part of it in words.
 */

export interface Note {
  readonly atMs: number;
  readonly who: string;
  readonly what: string;
  readonly facts: object;
}

/** So much is kept to be shown. */
const KEPT = 4_000;

export class Trace {
  readonly #nowMs: () => number;
  readonly #notes: Note[] = [];
  #next = 0;
  #digest = 0x811c9dc5;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Of everything so far. */
  get digest(): string {
    return this.#digest.toString(16).padStart(8, '0');
  }

  /** The last notes, the oldest first. */
  get notes(): readonly Note[] {
    return [...this.#notes.slice(this.#next), ...this.#notes.slice(0, this.#next)];
  }

  note(who: string, what: string, facts: object = {}): void {
    this.mix(what);
    this.mix(who);
    this.#notes[this.#next] = { atMs: this.#nowMs(), who, what, facts };
    this.#next = (this.#next + 1) % KEPT;
  }

  /** Something that is not worth a note, but has to be the same in another run. */
  mix(text: string): void {
    let digest = Math.imul(this.#digest ^ Math.round(this.#nowMs() * 1_000), 0x01000193);
    for (let i = 0; i < text.length; i++)
      digest = Math.imul(digest ^ text.charCodeAt(i), 0x01000193);
    this.#digest = digest >>> 0;
  }
}
