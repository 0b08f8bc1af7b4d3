/**
 * The page (dashboard). Its files are public and contain no secrets; the page uses the API with a
 * token, like any client. It answers only under `pageHosts`, against DNS rebinding.
 */
import { z } from 'zod';
import { html } from '../../core/html.ts';
import type { Encoding, PageFile, PageReader } from '../dashboard-files.ts';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';

/** The page loads and connects to this server only, has no inline code, and cannot be framed. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PAGE_HEADERS = {
  'Content-Security-Policy': POLICY,
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};
/** For assets: the build puts a digest of their content into their names. */
const IMMUTABLE = 'public, max-age=31536000, immutable';
const REVALIDATE = 'no-cache';

const OPEN = {
  method: 'GET',
  access: 'open',
  tenants: 'yes',
  group: 'operation',
  isPage: true,
} as const;

const fileParams = z.strictObject({ file: z.string() });

export function pageRoutes(readPage: PageReader): Route[] {
  return [indexRoute(readPage), assetRoute(readPage)];
}

function indexRoute(readPage: PageReader): Route {
  return route({
    ...OPEN,
    path: '/',
    summary: 'The page',
    description:
      'The dashboard: targets and their owners, events, and actions. It asks for a token.',
    responses: { 200: { description: 'The page.', mediaType: 'text/html' } },
    problems: [],
    async handle({ base, headers }) {
      const page = await readPage();
      if (page === null) return notBuilt();
      return fileResponse(await page.index(base), headers, REVALIDATE);
    },
  });
}

function assetRoute(readPage: PageReader): Route {
  return route({
    ...OPEN,
    path: '/assets/{file}',
    summary: 'Files of the page',
    description: 'Scripts and styles of the page. Their names change with their content.',
    params: fileParams,
    responses: { 200: { description: 'The file.', mediaType: 'application/octet-stream' } },
    problems: ['not-found'],
    async handle({ params: { file }, headers }) {
      const found = (await readPage())?.assets.get(file);
      if (found === undefined)
        throw new Problem('not-found', { detail: 'There is no such file. Reload the page.' });
      return fileResponse(found, headers, IMMUTABLE);
    },
  });
}

function fileResponse(
  { type, etag, bodies }: PageFile,
  requestHeaders: Headers,
  caching: string,
): Response {
  const encoding = encodingFor(bodies, requestHeaders.get('accept-encoding') ?? '');
  const tag = `"${etag}-${encoding}"`;
  const headers: Record<string, string> = {
    ...PAGE_HEADERS,
    'Cache-Control': caching,
    ETag: tag,
    Vary: 'Accept-Encoding',
    'Content-Type': type,
  };
  if (encoding !== 'identity') headers['Content-Encoding'] = encoding;
  const known = (requestHeaders.get('if-none-match') ?? '').split(',').map((one) => one.trim());
  if (known.some((one) => one === tag || one === `W/${tag}`))
    return new Response(null, { status: 304, headers });
  return new Response(bodies[encoding], { headers });
}

/** The best encoding that the file has and the client accepts; `q=0` means not accepted. */
function encodingFor(bodies: PageFile['bodies'], accepted: string): Encoding {
  const acceptable = new Set(
    accepted
      .toLowerCase()
      .split(',')
      .filter((one) => !/;\s*q=0(\.0*)?\s*$/.test(one))
      .map((one) => one.replace(/;.*$/, '').trim()),
  );
  const order: readonly Encoding[] = ['br', 'gzip'];
  return order.find((one) => acceptable.has(one) && bodies[one] !== undefined) ?? 'identity';
}

/** Only in a source checkout: an installed package has the page. */
function notBuilt(): Response {
  const { text } = html`<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast</title>
<h1>The page has not been built</h1>
<p>Run <code>npm run build</code> and reload this page. The API works without it: <a href="docs">docs</a>.</p></html>`;
  const headers = { ...PAGE_HEADERS, 'Content-Type': 'text/html; charset=utf-8' };
  return new Response(text, { status: 503, headers });
}
