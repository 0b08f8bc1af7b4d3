/**
 * What changes something is not taken from pages of strangers. A browser that has both open says with every such request whose page sends it,
 * and no page can change that; programs say nothing.
 */
import { Problem } from './problem.ts';

/** With these nothing changes. */
const HARMLESS = new Set(['GET', 'HEAD']);

/** Names and ports are compared, not schemes: what is https to a browser may be http to us, behind a proxy. */
export function checkOrigin(method: string, headers: Headers, url: URL): void {
  const origin = headers.get('origin');
  if (origin === null || HARMLESS.has(method)) return;
  const from = URL.canParse(origin) ? new URL(origin) : null;
  const isWeb = from !== null && /^https?:$/.test(from.protocol);
  if (isWeb && origin === from.origin && from.host === url.host) return;
  throw new Problem('foreign-origin', {
    detail:
      'The page that sends this is not one of this server. Nothing was done. A proxy in between has to pass the header Host on as it is.',
  });
}
