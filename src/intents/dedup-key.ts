/**
 * The lease keys that keep two sessions off one channel: `service:<ref>`,
 * `vod:<recording>:<profile>:<bucket>`, and `kind:<kind>:<text>` for declared kinds. The kind is a
 * part of the key, so sessions of two kinds never exclude each other.
 */
import { createHash } from 'node:crypto';
import type { Wanted } from './intent.ts';

/** Longer parts become a digest, because the length of a key is limited. */
const MAX_PART_LENGTH = 100;

export function dedupKey({ kind, target, profile, bucket, exclusive }: Wanted): string {
  if (exclusive !== undefined) return `kind:${kind}:${part(exclusive, /[^A-Za-z0-9._:-]/gu)}`;
  if (kind === 'live') return `service:${part(target, /[^A-Za-z0-9._:-]/gu)}`;
  // A colon would end the part.
  return `vod:${part(target, /[^A-Za-z0-9._-]/gu)}:${part(profile, /[^A-Za-z0-9._-]/gu)}:${bucket}`;
}

/** A client's text as part of a key. Only a digest begins with `~`. */
function part(text: string, unsafe: RegExp): string {
  const encoded = text.replace(unsafe, percent);
  if (encoded.length <= MAX_PART_LENGTH) return encoded;
  return `~${createHash('sha256').update(text).digest('hex')}`;
}

function percent(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
    .join('');
}
