/**
 * Lets whoever started a server into its page without copying a token. The address that is printed has a pass: it is good once, for a while, and
 * only for the token that was made at the start. A token itself never stands in an address: those are kept by browsers, and shown to others.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/random.ts';
import { Problem } from './problem.ts';

/** Long enough to find the terminal it was printed in. */
const GOOD_FOR_MS = 600_000;
const PASS_DIGITS = 32;
/** Of those that nobody has used, the oldest go. */
const MOST_PASSES = 16;
/** So many wrong ones may come in this time. Nobody types a pass: who has a wrong one has an old address, or is guessing. */
const MOST_WRONG = 10;
const WRONG_WITHIN_MS = 60_000;

interface Pass {
  readonly digest: Buffer;
  readonly goodUntilMs: number;
}

export interface EntryPassesParts {
  /** What a pass is exchanged for. */
  readonly token: string;
  readonly clock: Clock;
  readonly random: Random;
}

export class EntryPasses {
  readonly #parts: EntryPassesParts;
  #passes: Pass[] = [];
  /** When the last wrong ones came. */
  #wrongAtMs: number[] = [];

  constructor(parts: EntryPassesParts) {
    this.#parts = parts;
  }

  issue(): string {
    const { clock, random } = this.#parts;
    const pass = random.hex(PASS_DIGITS);
    const goodUntilMs = clock.monotonicMs() + GOOD_FOR_MS;
    this.#passes = [...this.#passes, { digest: digestOf(pass), goodUntilMs }].slice(-MOST_PASSES);
    return pass;
  }

  /**
   * The token, once; null for a pass that was never given out, was used, or is over. Throws where too many wrong ones come; a right one
   * is taken all the same, or anybody could keep out whoever has it.
   */
  redeem(pass: string): string | null {
    const nowMs = this.#parts.clock.monotonicMs();
    this.#passes = this.#passes.filter(({ goodUntilMs }) => goodUntilMs > nowMs);
    const used = this.#find(digestOf(pass));
    if (used !== null) {
      this.#passes = this.#passes.filter((one) => one !== used);
      return this.#parts.token;
    }
    this.#wrongAtMs = this.#wrongAtMs.filter((atMs) => atMs > nowMs - WRONG_WITHIN_MS);
    if (this.#wrongAtMs.length >= MOST_WRONG) throw tooManyWrong();
    this.#wrongAtMs.push(nowMs);
    return null;
  }

  /** Compares with all of them, whether one has matched or not: how long it takes says nothing. */
  #find(digest: Buffer): Pass | null {
    let found: Pass | null = null;
    for (const pass of this.#passes) if (timingSafeEqual(pass.digest, digest)) found = pass;
    return found;
  }
}

function digestOf(pass: string): Buffer {
  return hash('sha256', pass, 'buffer');
}

function tooManyWrong(): Problem {
  return new Problem('too-many-requests', {
    detail: 'Too many wrong passes have come. Use the token instead, or wait.',
    retryAfterMs: WRONG_WITHIN_MS,
  });
}
