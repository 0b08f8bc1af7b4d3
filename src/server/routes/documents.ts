/** What there is, told to programs and to people. Nothing of it is secret, and nothing comes from elsewhere. */
import { z } from 'zod';
import { packageVersion } from '../../core/version.ts';
import { PROBLEMS, Problem, type ProblemName } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import { openApi } from '../reference/openapi.ts';
import { problemPage, referencePage } from '../reference/reference-page.ts';
import { STYLE } from '../reference/reference-style.ts';

/** Nothing is loaded but the stylesheet, nothing runs, and nobody may put it into a frame. */
const POLICY =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const nameParams = z.strictObject({ name: z.string() });

/** `table` is asked for when all routes are there, these among them. */
export function documentRoutes(table: () => readonly Route[]): Route[] {
  const version = packageVersion();
  // Where it is mounted is known only from a request, and then is the same for all.
  const document = remembered((base) => openApi(table(), { version, base }));
  const json = remembered((base) => JSON.stringify(document(base)));
  const page = remembered((base) => referencePage(document(base)));
  return [
    route({
      ...OPEN,
      path: '/openapi.json',
      summary: 'This interface, for programs',
      description: 'OpenAPI 3.1, made from the schemas that validate.',
      answers: { 200: { description: 'The document.', mediaType: 'application/json' } },
      problems: [],
      async handle({ base }) {
        return answer(json(base), 'application/json');
      },
    }),
    route({
      ...OPEN,
      path: '/docs',
      summary: 'This interface, for people',
      description: 'The page you may be reading. It needs no network and no script.',
      answers: { 200: { description: 'The page.', mediaType: 'text/html' } },
      problems: [],
      async handle({ base }) {
        return answer(page(base), 'text/html; charset=utf-8');
      },
    }),
    styleRoute(),
    problemRoute(),
  ];
}

const OPEN = { method: 'GET', access: 'open', tenants: 'yes', group: 'operation' } as const;

function styleRoute(): Route {
  return route({
    ...OPEN,
    path: '/docs/style.css',
    summary: 'How the pages look',
    description: 'The stylesheet of the pages.',
    answers: { 200: { description: 'The stylesheet.', mediaType: 'text/css' } },
    problems: [],
    async handle() {
      return answer(STYLE, 'text/css; charset=utf-8');
    },
  });
}

function problemRoute(): Route {
  return route({
    ...OPEN,
    path: '/problems/{name}',
    summary: 'A sort of problem, explained',
    description: 'What the `type` of a problem leads to: when it comes about, and what to do.',
    params: nameParams,
    answers: { 200: { description: 'The page.', mediaType: 'text/html' } },
    problems: ['not-found'],
    async handle({ params: { name } }) {
      if (!isProblem(name)) throw new Problem('not-found', { detail: 'There is no such problem.' });
      return answer(problemPage(name), 'text/html; charset=utf-8');
    },
  });
}

function isProblem(name: string): name is ProblemName {
  return Object.hasOwn(PROBLEMS, name);
}

function answer(text: string, type: string): Response {
  return new Response(text, {
    headers: { 'Content-Type': type, 'Content-Security-Policy': POLICY },
  });
}

/** The last one is kept: it takes some milliseconds to make, and anybody may ask. */
function remembered<T>(make: (base: string) => T): (base: string) => T {
  let last: { readonly base: string; readonly made: T } | null = null;
  return (base) => {
    if (last?.base !== base) last = { base, made: make(base) };
    return last.made;
  };
}
