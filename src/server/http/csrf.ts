/**
 * Refuses state-changing requests that a page of another site sends (CSRF). Browsers send `Origin`
 * with every such request, and a page cannot change that header. Programs send none.
 */
import { Problem } from './problem.ts';

const SAFE_METHODS = new Set(['GET', 'HEAD']);

/** Compares host and port, not the scheme: a proxy may turn https into http. */
export function csrf(method: string, headers: Headers, url: URL): void {
  const origin = headers.get('origin');
  if (origin === null || SAFE_METHODS.has(method)) return;
  const from = URL.canParse(origin) ? new URL(origin) : null;
  const isWeb = from !== null && /^https?:$/.test(from.protocol);
  if (isWeb && origin === from.origin && from.host === url.host) return;
  throw new Problem('foreign-origin', {
    detail:
      'A page of another site sent this request. Nothing was changed. If there is a proxy in between, it must pass the header Host on unchanged.',
  });
}
