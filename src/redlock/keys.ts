import { ConfigError } from '../core/errors.ts';

/** Characters that a key must not have. Braces decide the slot of a key in Redis Cluster. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are encoded
const ENCODED = /[%{}\u0000-\u001f\u007f-\u009f]/g;

/** The resources as text. redlock also accepts numbers, which its client turns into text. */
export function resourcesOf(resources: unknown): string[] {
  if (!Array.isArray(resources) || resources.length === 0) {
    const rule = 'must be an array with at least one resource';
    throw new ConfigError({ field: 'resources', value: resources, rule });
  }
  return resources.map((resource) => {
    if (typeof resource === 'string') return resource;
    if (typeof resource === 'number') return String(resource);
    const rule = 'a resource must be a string or a number';
    throw new ConfigError({ field: 'resources', value: resource, rule });
  });
}

/** The resource of a key that `keyOf` made. */
export function resourceOf(key: string): string {
  return decodeURIComponent(key);
}

/** The key of a resource's lease, with forbidden characters percent-encoded. Keys are unique. */
export function keyOf(resource: string): string {
  return resource.replace(ENCODED, (sign) => encodeURIComponent(sign));
}
