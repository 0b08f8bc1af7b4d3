import { Hono } from 'hono';
import { Problem } from './problem.ts';
import type { RequestHandler } from './request.ts';
import type { Route } from './route.ts';

/** The routes as an app that can stand alone or be mounted in another; what is none of them is answered here, too. */
export function mount(routes: readonly Route[], exchange: RequestHandler): Hono {
  const hono = new Hono();
  for (const route of routes)
    hono.on(route.method, patternOf(route.path), (c) => exchange.answer(c, route));
  for (const [path, allowed] of methodsByPath(routes))
    hono.all(patternOf(path), (c) => exchange.answer(c, notAllowed(allowed)));
  hono.all('*', (c) => exchange.answer(c, nothingHere()));
  return hono;
}

/** `{id}` in the table, `:id` to Hono. */
function patternOf(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

function methodsByPath(routes: readonly Route[]): Map<string, string[]> {
  const methods = new Map<string, string[]>();
  for (const { path, method } of routes) {
    const known = methods.get(path) ?? [];
    methods.set(path, [...known, ...(method === 'GET' ? ['GET', 'HEAD'] : [method])]);
  }
  return methods;
}

function notAllowed(allowed: readonly string[]): Problem {
  const list = allowed.join(', ');
  return new Problem('method-not-allowed', {
    detail: `Here there is ${list}.`,
    headers: { Allow: list },
  });
}

function nothingHere(): Problem {
  return new Problem('not-found', {
    detail: 'There is nothing under this path. /openapi.json has all there are.',
  });
}
