import { type Context, Hono } from 'hono';
import { Problem } from './problem.ts';
import type { Destination } from './request.ts';
import type { Route } from './route.ts';

/** A Hono app of the routes, which can stand alone or be mounted in another app. */
export function mount(
  routes: readonly Route[],
  handle: (c: Context, destination: Destination) => Promise<Response>,
): Hono {
  const hono = new Hono();
  for (const route of routes) hono.on(route.method, patternOf(route.path), (c) => handle(c, route));
  for (const [path, allowed] of methodsByPath(routes))
    hono.all(patternOf(path), (c) => handle(c, methodNotAllowed(allowed)));
  hono.all('*', (c) => handle(c, notFound()));
  return hono;
}

/**
 * Keeps the result for the last `base`, the path that the app is mounted at. Only a request tells
 * it, but it is the same for all requests, and the results take milliseconds to make.
 */
export function memoizeBase<T>(make: (base: string) => T): (base: string) => T {
  let last: { readonly base: string; readonly made: T } | null = null;
  return (base) => {
    if (last?.base !== base) last = { base, made: make(base) };
    return last.made;
  };
}

/** `{id}` in the route table is `:id` in Hono. */
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

function methodNotAllowed(allowed: readonly string[]): Problem {
  const list = allowed.join(', ');
  return new Problem('method-not-allowed', {
    detail: `This path has the methods ${list}.`,
    headers: { Allow: list },
  });
}

function notFound(): Problem {
  return new Problem('not-found', {
    detail: 'There is no such path. /openapi.json lists all paths.',
  });
}
