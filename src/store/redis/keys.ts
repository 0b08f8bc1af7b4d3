import { ConfigError } from '../../base/errors.ts';

/**
 * Names in Redis. A lease lives under its plain name, so that another program can share it; what belongs to it lives in
 * sibling keys, which only the scripts name (`lua/siblings.lua`).
 */
export class Keys {
  readonly prefix: string;
  readonly marker: string;

  constructor(prefix: string) {
    if (
      typeof prefix !== 'string' ||
      !/^[A-Za-z0-9._:~/@-]{0,64}(\{[A-Za-z0-9._:~/@-]{1,64}\}:?)?$/.test(prefix)
    ) {
      throw new ConfigError({
        field: 'prefix',
        value: prefix,
        rule: "a prefix is up to 64 of the characters A-Z a-z 0-9 . _ : ~ / @ -, and may end in one hash tag such as '{team}:'",
      });
    }
    this.prefix = prefix;
    this.marker = `${prefix}holdfast:marker`;
  }

  lease(key: string): string {
    return this.prefix + key;
  }

  record(collection: string, id: string): string {
    return `${this.prefix}${collection}:${id}`;
  }

  index(collection: string): string {
    return `${this.prefix}index:${collection}`;
  }

  member(id: string): string {
    return `${this.prefix}poll:node:${id}`;
  }

  get members(): string {
    return `${this.prefix}poll:nodes`;
  }

  get log(): string {
    return `${this.prefix}holdfast:log`;
  }

  channel(topic: string): string {
    return `${this.prefix}signal:${topic}`;
  }

  withoutPrefix(name: string): string {
    return name.slice(this.prefix.length);
  }
}

/** What `lua/siblings.lua` calls the fence record of a lease, for those who must name it before a script can. */
export function fenceOf(lease: string): string {
  return lease.includes('{') ? `${lease}:fence` : `fence:{${lease}}`;
}

/** Text as a pattern that means nothing but itself. */
export function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&');
}
