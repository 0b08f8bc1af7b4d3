/**
 * One-time passes into the page. The person who started a server opens the printed address, which
 * has a pass, and the page exchanges the pass for the token that the server made at its start.
 *
 * The address never has the token itself: browsers keep addresses in their history and show them.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/random.ts';
import { Problem } from './problem.ts';

/** Long enough to find the terminal that it was printed in. */
const VALID_MS = 600_000;
const PASS_DIGITS = 32;
/** Above this number of unused passes, the oldest are dropped. */
const MAX_PASSES = 16;
/** Wrong passes that are tolerated in a window. Users do not type passes: more is guessing. */
const MAX_WRONG = 10;
const WRONG_WINDOW_MS = 60_000;

interface Pass {
  readonly digest: Buffer;
  readonly validUntilMs: number;
}

export interface EntryPassOptions {
  /** The token that a pass is exchanged for. */
  readonly token: string;
  readonly clock: Clock;
  readonly random: Random;
}

export class EntryPasses {
  readonly #token: string;
  readonly #clock: Clock;
  readonly #random: Random;
  #passes: Pass[] = [];
  /** When the last wrong passes arrived. */
  #wrongAtMs: number[] = [];

  constructor({ token, clock, random }: EntryPassOptions) {
    this.#token = token;
    this.#clock = clock;
    this.#random = random;
  }

  issue(): string {
    const pass = this.#random.hex(PASS_DIGITS);
    const validUntilMs = this.#clock.monotonicMs() + VALID_MS;
    this.#passes = [...this.#passes, { digest: digestOf(pass), validUntilMs }].slice(-MAX_PASSES);
    return pass;
  }

  /**
   * The token, once; null for a pass that is unknown, used or expired. Throws after too many wrong
   * passes. A right one is accepted even then, so that guessing cannot lock out its owner.
   */
  redeem(pass: string): string | null {
    const nowMs = this.#clock.monotonicMs();
    this.#passes = this.#passes.filter(({ validUntilMs }) => validUntilMs > nowMs);
    const used = this.#find(digestOf(pass));
    if (used !== null) {
      this.#passes = this.#passes.filter((other) => other !== used);
      return this.#token;
    }
    this.#wrongAtMs = this.#wrongAtMs.filter((atMs) => atMs > nowMs - WRONG_WINDOW_MS);
    if (this.#wrongAtMs.length >= MAX_WRONG) throw tooManyWrong();
    this.#wrongAtMs.push(nowMs);
    return null;
  }

  /** Compares with every pass even after a match, so that the time taken reveals nothing. */
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
    detail: 'Too many wrong passes were tried. Use the token instead, or wait.',
    retryAfterMs: WRONG_WINDOW_MS,
  });
}
