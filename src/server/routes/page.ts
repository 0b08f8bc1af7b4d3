/**
 * The page for people: its files are open to all, as nothing in them is secret, and what it shows it asks for with a token like anybody else.
 * It answers only under names that are ours, so that no stranger's page can have its own name lead here and read what is shown.
 */
import { z } from 'zod';
import type { DashboardFiles, Encoding, PageFile } from '../dashboard-files.ts';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import { html } from '../reference/html.ts';

/** Everything comes from here, nothing is inline, nobody may put it into a frame, and nothing that runs in it may ask elsewhere. */
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
/** The build puts a digest of their content into their names. */
const FOR_EVER = 'public, max-age=31536000, immutable';
const ASK_FIRST = 'no-cache';

const OPEN = {
  method: 'GET',
  access: 'open',
  tenants: 'yes',
  group: 'operation',
  isPage: true,
} as const;

const fileParams = z.strictObject({ file: z.string() });

export function pageRoutes(files: DashboardFiles): Route[] {
  return [indexRoute(files), assetRoute(files)];
}

function indexRoute(files: DashboardFiles): Route {
  return route({
    ...OPEN,
    path: '/',
    summary: 'The page for people',
    description: 'Who owns what, what happens, and the means to change it. It asks for a token.',
    answers: { 200: { description: 'The page.', mediaType: 'text/html' } },
    problems: [],
    async handle({ base, headers }) {
      const page = await files.page();
      if (page === null) return notBuilt();
      return fileAnswer(await page.index(base), headers, ASK_FIRST);
    },
  });
}

function assetRoute(files: DashboardFiles): Route {
  return route({
    ...OPEN,
    path: '/assets/{file}',
    summary: 'What the page is made of',
    description: 'Scripts and styles of the page; their names change with their content.',
    params: fileParams,
    answers: { 200: { description: 'The file.', mediaType: 'application/octet-stream' } },
    problems: ['not-found'],
    async handle({ params: { file }, headers }) {
      const found = (await files.page())?.assets.get(file);
      if (found === undefined)
        throw new Problem('not-found', { detail: 'There is no such file. Load the page anew.' });
      return fileAnswer(found, headers, FOR_EVER);
    },
  });
}

function fileAnswer({ type, etag, bodies }: PageFile, asked: Headers, caching: string): Response {
  const encoding = encodingFor(bodies, asked.get('accept-encoding') ?? '');
  const tag = `"${etag}-${encoding}"`;
  const headers = {
    ...PAGE_HEADERS,
    'Cache-Control': caching,
    ETag: tag,
    Vary: 'Accept-Encoding',
    'Content-Type': type,
    ...(encoding !== 'identity' && { 'Content-Encoding': encoding }),
  };
  const known = (asked.get('if-none-match') ?? '').split(',').map((one) => one.trim());
  if (known.some((one) => one === tag || one === `W/${tag}`))
    return new Response(null, { status: 304, headers });
  return new Response(bodies[encoding], { headers });
}

/** The smallest that is there and taken; who says `q=0` does not take it. */
function encodingFor(bodies: PageFile['bodies'], accepted: string): Encoding {
  const taken = new Set(
    accepted
      .toLowerCase()
      .split(',')
      .filter((one) => !/;\s*q=0(\.0*)?\s*$/.test(one))
      .map((one) => one.replace(/;.*$/, '').trim()),
  );
  const order: readonly Encoding[] = ['br', 'gzip'];
  return order.find((one) => taken.has(one) && bodies[one] !== undefined) ?? 'identity';
}

/** For who works on this: an installed package has it. */
function notBuilt(): Response {
  const { text } = html`<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast</title>
<h1>The page has not been built</h1>
<p>Run <code>npm run build</code>, and load this again. The interface works without it: <a href="docs">docs</a>.</p></html>`;
  const headers = { ...PAGE_HEADERS, 'Content-Type': 'text/html; charset=utf-8' };
  return new Response(text, { status: 503, headers });
}
