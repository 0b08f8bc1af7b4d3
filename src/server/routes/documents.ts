/** The description of the API, for programs and for people. It is public. */
import { z } from 'zod';
import { packageVersion } from '../../core/version.ts';
import { memoizeBase } from '../http/mount.ts';
import { PROBLEMS, Problem, type ProblemName } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import { openApi } from '../reference/openapi.ts';
import { problemPage, referencePage } from '../reference/reference-page.ts';
import { STYLE } from '../reference/reference-style.ts';

/** The pages load only the stylesheet, run no scripts and cannot be framed. */
const POLICY =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const nameParams = z.strictObject({ name: z.string() });

const OPEN = { method: 'GET', access: 'open', tenants: 'yes', group: 'operation' } as const;

/** `table` returns all routes, these included. It is called with the first request. */
export function documentRoutes(table: () => readonly Route[]): Route[] {
  const version = packageVersion();
  const document = memoizeBase((base) => openApi(table(), { version, base }));
  const json = memoizeBase((base) => JSON.stringify(document(base)));
  const page = memoizeBase((base) => referencePage(document(base)));
  return [
    route({
      ...OPEN,
      path: '/openapi.json',
      summary: 'API description for programs',
      description: 'OpenAPI 3.1, generated from the schemas that validate requests.',
      responses: { 200: { description: 'The document.', mediaType: 'application/json' } },
      problems: [],
      async handle({ base }) {
        return textResponse(json(base), 'application/json');
      },
    }),
    route({
      ...OPEN,
      path: '/docs',
      summary: 'API reference for people',
      description: 'The page you may be reading. It needs no network and no scripts.',
      responses: { 200: { description: 'The page.', mediaType: 'text/html' } },
      problems: [],
      async handle({ base }) {
        return textResponse(page(base), 'text/html; charset=utf-8');
      },
    }),
    styleRoute(),
    problemRoute(),
  ];
}

function styleRoute(): Route {
  return route({
    ...OPEN,
    path: '/docs/style.css',
    summary: 'Stylesheet of the reference',
    description: 'The stylesheet of the reference pages.',
    responses: { 200: { description: 'The stylesheet.', mediaType: 'text/css' } },
    problems: [],
    async handle() {
      return textResponse(STYLE, 'text/css; charset=utf-8');
    },
  });
}

function problemRoute(): Route {
  return route({
    ...OPEN,
    path: '/problems/{name}',
    summary: 'Explain a problem type',
    description: 'The page that a problem’s `type` links to: when it occurs, and what to do.',
    params: nameParams,
    responses: { 200: { description: 'The page.', mediaType: 'text/html' } },
    problems: ['not-found'],
    async handle({ params: { name } }) {
      if (!isProblem(name))
        throw new Problem('not-found', { detail: 'There is no such problem type.' });
      return textResponse(problemPage(name), 'text/html; charset=utf-8');
    },
  });
}

function isProblem(name: string): name is ProblemName {
  return Object.hasOwn(PROBLEMS, name);
}

function textResponse(text: string, type: string): Response {
  return new Response(text, {
    headers: { 'Content-Type': type, 'Content-Security-Policy': POLICY },
  });
}
