/** The names of the leases that keep two sessions off the same thing: `service:<ref>`, `vod:<recording>:<profile>:<bucket>`. */
import { createHash } from 'node:crypto';
import type { Wanted } from './intent.ts';

/** Longer ones are named by their digest: a key has a longest length, and what others call their things has not. */
const LONGEST_PART = 100;

export function dedupKey({ kind, target, profile, bucket }: Wanted): string {
  if (kind === 'live') return `service:${part(target, /[^A-Za-z0-9._:-]/gu)}`;
  // Here a colon would be the end of the part.
  return `vod:${part(target, /[^A-Za-z0-9._-]/gu)}:${part(profile, /[^A-Za-z0-9._-]/gu)}:${bucket}`;
}

/** Foreign text as part of a key: `~` begins nothing but a digest. */
function part(text: string, unsafe: RegExp): string {
  const encoded = text.replace(unsafe, percent);
  if (encoded.length <= LONGEST_PART) return encoded;
  return `~${createHash('sha256').update(text).digest('hex')}`;
}

function percent(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
    .join('');
}
