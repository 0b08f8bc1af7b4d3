/**
 * Answers only under the names it was given. A page of a stranger can have its own name lead to this host and then read what is here
 * as if it were its own; but it can not change what browsers send as `Host`.
 */
import { isIP } from 'node:net';
import { ConfigError } from '../../core/errors.ts';
import { Problem } from './problem.ts';

const NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

export class HostGuard {
  readonly #names: ReadonlySet<string>;

  constructor(names: readonly string[]) {
    names.forEach((name, i) => {
      if (typeof name === 'string' && NAME.test(name.toLowerCase())) return;
      const rule = 'it is the name of a host, without a port';
      throw new ConfigError({ field: `hosts[${i}]`, value: name, rule });
    });
    this.#names = new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
  }

  /** A bare address is fine: no name can be made to lead elsewhere where there is none. */
  check(url: URL): void {
    const name = url.hostname.toLowerCase();
    const isAddress = isIP(name) !== 0 || isIP(name.replace(/^\[|\]$/g, '')) !== 0;
    if (isAddress || this.#names.has(name)) return;
    throw new Problem('foreign-host', {
      detail: 'This server does not answer under that name. Whoever runs it names its hosts.',
    });
  }
}
