import { ConfigError } from '../../base/errors.ts';

/**
 * Names in Redis. A lease lives under its plain name, so that another program can share it; what belongs to it lives in
 * sibling keys that hash to the same slot of a Cluster: the sibling's hash tag *is* the lease's key, or the one it has.
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

  fence(lease: string): string {
    return this.#sibling(lease, 'fence');
  }

  /** The inboxes that wait for a lease, in the order of their coming. */
  line(lease: string): string {
    return this.#sibling(lease, 'line');
  }

  record(key: string): string {
    return `${this.prefix}record:${key}`;
  }

  channel(topic: string): string {
    return `${this.prefix}signal:${topic}`;
  }

  withoutPrefix(name: string): string {
    return name.slice(this.prefix.length);
  }

  #sibling(lease: string, what: string): string {
    return this.prefix.includes('{') ? `${lease}:${what}` : `${what}:{${lease}}`;
  }
}
