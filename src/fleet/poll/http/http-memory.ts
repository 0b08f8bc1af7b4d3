/** What targets answered the last time, so that it can be said whether they have changed. */
import type { Answer } from './http-request.ts';

export interface Seen {
  /** The target's URL then; under another one, nothing is known. */
  readonly url: string;
  /** Where the answer came from. */
  readonly finalUrl: string;
  /** Headers that ask the server to answer 304 where nothing has changed. */
  readonly validators: Readonly<Record<string, string>>;
  readonly etag: string | undefined;
  readonly hash: string;
  readonly truncated: boolean;
}

export interface Verdict {
  readonly changed: boolean | null;
  readonly etag?: string;
  readonly hash?: string;
}

/** How many targets are remembered; of one more, the one that was polled longest ago is forgotten. */
const MOST_TARGETS = 100_000;
/** A longer one is not worth its memory. */
const LONGEST_VALIDATOR = 256;

export class HttpMemory {
  /** Those polled longest ago first. */
  readonly #seen = new Map<string, Seen>();

  recall(id: string, url: string): Seen | undefined {
    const seen = this.#seen.get(id);
    return seen?.url === url ? seen : undefined;
  }

  forget(id: string): void {
    this.#seen.delete(id);
  }

  /** Whether the target has changed, by what is known of it; and remembers how it is now. */
  judge(id: string, where: { url: string; finalUrl: string }, answer: Answer): Verdict {
    const seen = this.recall(id, where.url);
    if (answer.status === 304 && seen?.finalUrl === where.finalUrl) {
      this.#remember(id, seen);
      return { changed: false, ...tags(seen) };
    }
    // Of an error page nothing follows for what it stands for.
    if (answer.status < 200 || answer.status > 299) return { changed: null };
    const now = seenIn(where, answer);
    this.#remember(id, now);
    return { changed: seen === undefined ? null : !isSame(seen, now), ...tags(now) };
  }

  #remember(id: string, seen: Seen): void {
    this.#seen.delete(id);
    this.#seen.set(id, seen);
    if (this.#seen.size <= MOST_TARGETS) return;
    const [eldest] = this.#seen.keys();
    if (eldest !== undefined) this.#seen.delete(eldest);
  }
}

function seenIn(where: { url: string; finalUrl: string }, answer: Answer): Seen {
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
 * The same bytes are the same, whatever the tag: servers that stand in for each other often disagree about it. Of a body
 * that was not read to its end, only the tag knows the rest.
 */
function isSame(before: Seen, now: Seen): boolean {
  const hasTags = before.etag !== undefined && now.etag !== undefined;
  if (hasTags && before.etag === now.etag) return true;
  return before.hash === now.hash && !(hasTags && (before.truncated || now.truncated));
}

function tags({ etag, hash }: Seen): { etag?: string; hash: string } {
  return { ...(etag !== undefined && { etag }), hash };
}

function short(header: string | undefined): string | undefined {
  return header !== undefined && header.length <= LONGEST_VALIDATOR ? header : undefined;
}
