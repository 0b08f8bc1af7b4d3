/** Compares the answer of a target with its last one, to tell whether the target has changed. */
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

/** A longer validator is not worth its memory. */
const MAX_VALIDATOR_CHARS = 256;

/**
 * Whether the target has changed since the answer `seen`, and the answer to compare the next one
 * with; null where this one says nothing about the target.
 */
export function compareAnswer(
  seen: KnownAnswer | undefined,
  where: { url: string; finalUrl: string },
  answer: Answer,
): { comparison: Comparison; known: KnownAnswer | null } {
  if (answer.status === 304 && seen?.finalUrl === where.finalUrl)
    return { comparison: { changed: false, ...tags(seen) }, known: seen };
  // An error page says nothing about the target.
  if (answer.status < 200 || answer.status > 299)
    return { comparison: { changed: null }, known: null };
  const known = knownAnswer(where, answer);
  const changed = seen === undefined ? null : !isSame(seen, known);
  return { comparison: { changed, ...tags(known) }, known };
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
