import { ConfigError } from '../core/errors.ts';

/** Not for the name of a lease: on a Cluster braces decide where a key lies, and leases are taken together without them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is encoded
const ENCODED = /[%{}\u0000-\u001f\u007f-\u009f]/g;

/** The resources as text: redlock's users also pass numbers, which its client makes text of. */
export function resourcesOf(resources: unknown): string[] {
  if (!Array.isArray(resources) || resources.length === 0) {
    const rule = 'resources are an array of at least one name';
    throw new ConfigError({ field: 'resources', value: resources, rule });
  }
  return resources.map((resource) => {
    if (typeof resource === 'string') return resource;
    if (typeof resource === 'number') return String(resource);
    const rule = 'a resource is named by text or a number';
    throw new ConfigError({ field: 'resources', value: resource, rule });
  });
}

/** The lease of a resource: its name, with what a lease may not be called percent-encoded. Two resources never share one. */
export function keyOf(resource: string): string {
  return resource.replace(ENCODED, (sign) => encodeURIComponent(sign));
}
