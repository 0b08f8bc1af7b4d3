/**
 * Two defences against pages of other sites in a user's browser.
 *
 * DNS rebinding: a page can make its own name resolve to this host, but it cannot change the `Host`
 * header that browsers send. So the server answers only under configured host names.
 *
 * CSRF: browsers send `Origin` with every request that changes something, and a page cannot change
 * that header either. Programs send none.
 */
import { isIP } from 'node:net';
import { ConfigError } from '../../core/errors.ts';
import type { Exchange } from './hono-request.ts';
import { Problem } from './problem.ts';

const NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
const SAFE_METHODS = new Set(['GET', 'HEAD']);

/** The names in lower case, with `localhost`. */
export function hostNames(names: readonly string[]): ReadonlySet<string> {
  names.forEach((name, i) => {
    if (typeof name === 'string' && NAME.test(name.toLowerCase())) return;
    const rule = 'must be a host name without a port';
    throw new ConfigError({ field: `hosts[${i}]`, value: name, rule });
  });
  return new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
}

/** Bare IP addresses are allowed: without a name there is no rebinding. */
export function checkHost(names: ReadonlySet<string>, url: URL): void {
  const name = url.hostname.toLowerCase();
  const isAddress = isIP(name) !== 0 || isIP(name.replace(/^\[|\]$/g, '')) !== 0;
  if (isAddress || names.has(name)) return;
  throw new Problem('foreign-host', {
    detail: 'This server is not configured to answer under this host name (api.hosts).',
  });
}

/** Compares host and port, not the scheme: a proxy may turn https into http. */
export function checkOrigin(request: Pick<Exchange, 'method' | 'headers' | 'url'>): void {
  const origin = request.headers.get('origin');
  if (origin === null || SAFE_METHODS.has(request.method)) return;
  const from = URL.canParse(origin) ? new URL(origin) : null;
  const isWeb = from !== null && /^https?:$/.test(from.protocol);
  if (isWeb && origin === from.origin && from.host === request.url.host) return;
  throw new Problem('foreign-origin', {
    detail:
      'A page of another site sent this request. Nothing was changed. If there is a proxy in between, it must pass the header Host on unchanged.',
  });
}
