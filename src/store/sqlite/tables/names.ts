import { checkPrefix } from '../../port/prefix.ts';

/** Names in the file: a prefix stands before every one, so that two Holdfasts with different ones never meet. */
export class Names {
  readonly prefix: string;

  constructor(prefix: string) {
    checkPrefix(prefix);
    this.prefix = prefix;
  }

  of(name: string): string {
    return this.prefix + name;
  }

  plain(name: string): string {
    return name.slice(this.prefix.length);
  }
}
