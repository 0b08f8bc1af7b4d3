/** Numbers from here on are times in µs: fences, versions. */
const LEAST_MICROS = 1e15;
const LATEST_MICROS = 5e15;
/** From here on, times in ms. */
const LEAST_MS = 1e12;
/** From here on, times left (`leftMs`), which the two servers see a moment apart; all counts are below. */
const LEAST_LEFT = 1_000;
/** In a text: digests, positions in the log, ids of other streams, times. */
const TOLD = /\b[\da-f]{40}\b|\b\d{13}-\d{16}\b|\b\d{13}-\d{1,4}\b|\d{16,}|\d{13}/g;
/** Fences that are this close to each other were minted from each other, not from the time. */
const NEAR = 8;

/**
 * Tells what one server has answered so that it can be compared with another one's: each time in µs is called by its
 * number in the order in which it was first told, and one that is a little more than a known one by how much it is more.
 */
export class Telling {
  readonly #micros: number[] = [];
  readonly #digests: string[] = [];
  /** Numbers of entries of logs, which run ahead of the time; and the whole ids. */
  readonly #numbers: number[] = [];
  readonly #positions: string[] = [];

  /** A time that was told: the same one on both servers. */
  micros(pick: number): number {
    return this.#micros[pick % Math.max(1, this.#micros.length)] ?? 1;
  }

  position(pick: number): string {
    return this.#positions[pick % Math.max(1, this.#positions.length)] ?? '';
  }

  /** `{F3}`, `{F3+10}` and `{P3}` in a text as what they stand for on this server. */
  resolve(text: string): string {
    return text
      .replace(/\{F(\d+)(?:\+(\d+))?\}/g, (_, pick: string, more = '0') =>
        String(this.micros(Number(pick)) + Number(more)),
      )
      .replace(/\{P(\d+)\}/g, (_, pick: string) => this.position(Number(pick)));
  }

  tell(answer: unknown): unknown {
    if (typeof answer === 'number') return this.#number(answer);
    if (typeof answer === 'string') return this.#text(answer);
    if (answer instanceof Error) return { error: this.#text(plain(answer.message)) };
    if (Array.isArray(answer)) return answer.map((each) => this.tell(each));
    if (typeof answer !== 'object' || answer === null) return answer;
    const told = Object.entries(answer).map(([name, each]) => [this.#text(name), this.tell(each)]);
    return Object.fromEntries(told);
  }

  #number(number: number): unknown {
    if (number >= LEAST_MICROS && Number.isFinite(number)) return this.#name(number);
    if (number >= LEAST_MS && Number.isFinite(number)) return 'a time in ms';
    return number >= LEAST_LEFT && Number.isFinite(number) ? { leftMs: number } : number;
  }

  #text(text: string): string {
    if (/^\d{13}-\d{16}$/.test(text)) this.#positions.push(text);
    return text.replace(TOLD, (found) => {
      if (found.length === 40) return this.#digest(found);
      // Made by the server: how many it has made within one millisecond is up to its speed.
      if (/^\d{13}-\d{1,4}$/.test(found)) return 'an id';
      if (found.includes('-')) return `${named(this.#numbers, Number(found.slice(14)))} of the log`;
      return found.length < 16 ? 'a time in ms' : this.#name(Number(found));
    });
  }

  /** Digests of times differ, too. */
  #digest(digest: string): string {
    if (!this.#digests.includes(digest)) this.#digests.push(digest);
    return `@${this.#digests.indexOf(digest)}`;
  }

  #name(micros: number): string {
    // What no server can have made from the time; with it, replies could be made that are no numbers any more.
    if (micros > LATEST_MICROS) return String(micros);
    return named(this.#micros, micros);
  }
}

function named(known: number[], number: number): string {
  // Made from another number: one less, or a little more. Anything else is another moment that came close by chance.
  const near = known.findIndex((each) => number - each >= -1 && number - each <= NEAR);
  if (near >= 0) return `#${near}+${number - (known[near] ?? 0)}`;
  known.push(number);
  return `#${known.length - 1}`;
}

/** An error of a script without the names of the variables that it is about. */
function plain(message: string): string {
  return message.replace(/(?:local|global|field|upvalue|method) '[^']*' \((a \w+ value)\)/g, '$1');
}
