import { ConfigError } from '../../base/errors.ts';

/** Names in the file: a prefix stands before every one, so that two Holdfasts with different ones never meet. */
export class Names {
  readonly prefix: string;

  constructor(prefix: string) {
    if (typeof prefix !== 'string' || !/^[A-Za-z0-9._:~/@{}-]{0,64}$/.test(prefix)) {
      throw new ConfigError({
        field: 'prefix',
        value: prefix,
        rule: 'a prefix is up to 64 of the characters A-Z a-z 0-9 . _ : ~ / @ - { }',
      });
    }
    this.prefix = prefix;
  }

  of(name: string): string {
    return this.prefix + name;
  }

  plain(name: string): string {
    return name.slice(this.prefix.length);
  }
}
