/** The last answers of targets, to tell whether they have changed. */
import type { Answer } from './http-request.ts';

export interface KnownAnswer {
  /** The target's URL then; under another URL nothing is known. */
  readonly url: string;
  /** Where the answer came from. */
  readonly finalUrl: string;
  /** Headers that ask the server to answer 304 if nothing has changed. */
  readonly validators: Readonly<Record<string, string>>;
  readonly etag: string | undefined;
  readonly hash: string;
  readonly truncated: boolean;
}

export interface Comparison {
  readonly changed: boolean | null;
  readonly etag?: string;
  readonly hash?: string;
}

/** Targets kept; beyond this the one that was polled longest ago goes. */
const MAX_TARGETS = 100_000;
/** A longer validator is not worth its memory. */
const MAX_VALIDATOR_CHARS = 256;

export class HttpMemory {
  /** The one that was polled longest ago first. */
  readonly #seen = new Map<string, KnownAnswer>();

  get(id: string, url: string): KnownAnswer | undefined {
    const seen = this.#seen.get(id);
    return seen?.url === url ? seen : undefined;
  }

  forget(id: string): void {
    this.#seen.delete(id);
  }

  /** Whether the target has changed since the last answer. Keeps this one. */
  compare(id: string, where: { url: string; finalUrl: string }, answer: Answer): Comparison {
    const seen = this.get(id, where.url);
    if (answer.status === 304 && seen?.finalUrl === where.finalUrl) {
      this.#remember(id, seen);
      return { changed: false, ...tags(seen) };
    }
    // An error page says nothing about the target.
    if (answer.status < 200 || answer.status > 299) return { changed: null };
    const now = knownAnswer(where, answer);
    this.#remember(id, now);
    return { changed: seen === undefined ? null : !isSame(seen, now), ...tags(now) };
  }

  #remember(id: string, seen: KnownAnswer): void {
    this.#seen.delete(id);
    this.#seen.set(id, seen);
    if (this.#seen.size <= MAX_TARGETS) return;
    const [eldest] = this.#seen.keys();
    if (eldest !== undefined) this.#seen.delete(eldest);
  }
}

function knownAnswer(where: { url: string; finalUrl: string }, answer: Answer): KnownAnswer {
  const etag = short(answer.headers.etag);
  const modified = short(answer.headers['last-modified']);
  const validators = {
    ...(etag !== undefined && { 'if-none-match': etag }),
    ...(modified !== undefined && { 'if-modified-since': modified }),
  };
  const { hash, truncated } = answer;
  return { ...where, validators, etag, hash, truncated };
}

/**
 * The same bytes are the same, whatever the tag: replicas of a server often disagree about it. For
 * a body that was not read to its end, only the tag covers the rest.
 */
function isSame(before: KnownAnswer, now: KnownAnswer): boolean {
  const hasTags = before.etag !== undefined && now.etag !== undefined;
  if (hasTags && before.etag === now.etag) return true;
  return before.hash === now.hash && !(hasTags && (before.truncated || now.truncated));
}

function tags({ etag, hash }: KnownAnswer): { etag?: string; hash: string } {
  return { ...(etag !== undefined && { etag }), hash };
}

function short(header: string | undefined): string | undefined {
  return header !== undefined && header.length <= MAX_VALIDATOR_CHARS ? header : undefined;
}
