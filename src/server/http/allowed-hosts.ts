/**
 * Answers only under configured host names, against DNS rebinding: a page of another site can make
 * its own name resolve to this host, but it cannot change the `Host` header that browsers send.
 */
import { isIP } from 'node:net';
import { ConfigError } from '../../core/errors.ts';
import { Problem } from './problem.ts';

const NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

export class AllowedHosts {
  readonly #names: ReadonlySet<string>;

  constructor(names: readonly string[]) {
    names.forEach((name, i) => {
      if (typeof name === 'string' && NAME.test(name.toLowerCase())) return;
      const rule = 'must be a host name without a port';
      throw new ConfigError({ field: `hosts[${i}]`, value: name, rule });
    });
    this.#names = new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
  }

  /** Bare IP addresses are allowed: without a name there is no rebinding. */
  check(url: URL): void {
    const name = url.hostname.toLowerCase();
    const isAddress = isIP(name) !== 0 || isIP(name.replace(/^\[|\]$/g, '')) !== 0;
    if (isAddress || this.#names.has(name)) return;
    throw new Problem('foreign-host', {
      detail: 'This server is not configured to answer under this host name (api.hosts).',
    });
  }
}
