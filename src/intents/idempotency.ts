import { createHmac } from 'node:crypto';
import type { Wanted } from './intent.ts';

/** Of the encoding below: another version gives other keys. */
const VERSION = 1;
const DOMAIN = 'v3_intent';
const LENGTH_BYTES = 4;

/** What makes two starts of a built-in kind the same request. */
export function identityOf({ type, target, profile, bucket }: Wanted): readonly string[] {
  return [type, target, profile, bucket];
}

/**
 * The same for equal requests of one tenant. Without the secret, the request cannot be derived from
 * it.
 */
export function idempotencyKey(
  secret: Buffer,
  tenant: string,
  identity: readonly string[],
): string {
  const text = encodeFields([DOMAIN, tenant, ...identity]);
  return createHmac('sha256', secret).update(text).digest('base64url');
}

/**
 * The version, then each field with its length in front: references contain `:`, and ids `|`, so no
 * separator would keep the fields apart. Text that is not well-formed is refused, because different
 * texts would be equal in UTF-8.
 */
export function encodeFields(fields: readonly string[]): Buffer {
  const size = fields.reduce((sum, field) => sum + LENGTH_BYTES + Buffer.byteLength(field), 1);
  const encoded = Buffer.allocUnsafe(size);
  let at = encoded.writeUInt8(VERSION);
  for (const field of fields) {
    if (!field.isWellFormed())
      throw new TypeError('a field of an idempotency key is not well-formed Unicode');
    const bytes = encoded.write(field, at + LENGTH_BYTES);
    encoded.writeUInt32BE(bytes, at);
    at += LENGTH_BYTES + bytes;
  }
  return encoded;
}
