/**
 * One request and its response, as `request.ts` sees them: over Hono, or over Node's own objects
 * (`direct.ts`). Both give the same answers to the same questions.
 */
import type { Context } from 'hono';
import { baseRoutePath } from 'hono/route';
import { type BodyLimits, readBody } from './body.ts';
import { Problem } from './problem.ts';
import { type BufferedResponse, send } from './response.ts';
import type { Route } from './route.ts';

export interface Exchange {
  readonly method: string;
  readonly headers: Pick<Headers, 'get'>;
  readonly url: URL;
  /** Behind the question mark. */
  readonly search: string;
  /** The path that the app is mounted at, still escaped, because headers repeat it. */
  readonly base: string;
  /** The other end of the connection, where the HTTP server says so. */
  readonly peer: string | undefined;
  /** Fires when the client closes the connection. */
  readonly gone: AbortSignal;
  readonly allHeaders: Headers;
  params(route: Route): Record<string, string>;
  readBody(limits: BodyLimits): Promise<Readonly<Record<string, unknown>>>;
}

export class HonoRequest implements Exchange {
  readonly #c: Context;

  constructor(c: Context) {
    this.#c = c;
  }

  get method(): string {
    return this.#c.req.method;
  }

  get headers(): Headers {
    return this.#c.req.raw.headers;
  }

  get allHeaders(): Headers {
    return this.headers;
  }

  get url(): URL {
    return new URL(this.#c.req.url);
  }

  get search(): string {
    const { url } = this.#c.req.raw;
    const at = url.indexOf('?');
    return at === -1 ? '' : url.slice(at + 1);
  }

  get base(): string {
    const pattern = baseRoutePath(this.#c);
    if (pattern === '/') return '';
    return this.url.pathname.split('/').slice(0, pattern.split('/').length).join('/');
  }

  /** `@hono/node-server` tells it. */
  get peer(): string | undefined {
    const env = this.#c.env as { incoming?: { socket?: { remoteAddress?: unknown } } } | undefined;
    const address = env?.incoming?.socket?.remoteAddress;
    return typeof address === 'string' ? address : undefined;
  }

  get gone(): AbortSignal {
    return this.#c.req.raw.signal;
  }

  /** Only those of the route: an app that mounts this one may have parameters of its own. */
  params(route: Route): Record<string, string> {
    const params: Record<string, string> = {};
    for (const [, name = ''] of route.path.matchAll(/\{(\w+)\}/g)) {
      checkEscapes(this.#c.req.path);
      params[name] = this.#c.req.param(name) ?? '';
    }
    return params;
  }

  readBody(limits: BodyLimits): Promise<Readonly<Record<string, unknown>>> {
    return readBody(this.#c.req.raw, limits, this.peer !== undefined);
  }

  send(response: BufferedResponse | Response, requestId: string): Promise<Response> {
    return send(this.#c, response, requestId);
  }
}

/** Hono would pass a wrong escape on as text. */
function checkEscapes(path: string): void {
  if (!path.includes('%')) return;
  try {
    decodeURIComponent(path);
  } catch {
    throw new Problem('invalid-request', { detail: 'The path has invalid percent-encoding.' });
  }
}
