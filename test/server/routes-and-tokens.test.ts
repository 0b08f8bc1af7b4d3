import { describe, expect, it } from 'vitest';
import { type Route, SCOPES } from '../../src/server/http/route.ts';
import { type Sent, serverWorld, TOKENS, type TokenName } from '../support/server-world.ts';
import { StandInStage } from '../support/stand-in-stage.ts';

const world = await serverWorld({ stage: new StandInStage() });
const { app, ask, calls } = world;

/** What would be a request, if it were allowed: whoever is refused has not been read, either. */
function requestFor(route: Route): [method: string, path: string, sent: Sent] {
  const path = route.path.replace(/\{\w+\}/g, 'some-id');
  const body = route.body === undefined ? {} : { body: { type: 'stream.start', serviceRef: 'x' } };
  return [route.method, path, body];
}

/** 401, 403, or null for whoever gets past the door. */
function refusalOf(route: Route, token: TokenName | 'none' | 'wrong'): 401 | 403 | null {
  if (route.access === 'open') return null;
  if (token === 'none' || token === 'wrong' || token === 'expired') return 401;
  const settings = TOKENS[token];
  if (SCOPES.indexOf(settings.scope) < SCOPES.indexOf(route.access)) return 403;
  return 'tenant' in settings && route.tenants === 'no' ? 403 : null;
}

const KINDS = ['none', 'wrong', ...(Object.keys(TOKENS) as TokenName[])] as const;
const cases = app.routes.flatMap((route) =>
  KINDS.map((token) => [`${route.method} ${route.path}`, token, route] as const),
);

describe('every route there is', () => {
  it('is in the table once, and mounted', async () => {
    const names = app.routes.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain('POST /api/v3/intents');
    expect(names).toContain('DELETE /api/v3/sessions/{id}');
    const mounted = new Set(app.hono.routes.map(({ method, path }) => `${method} ${path}`));
    const pattern = (name: string) => name.replace(/\{(\w+)\}/g, ':$1');
    expect(names.filter((name) => !mounted.has(pattern(name)))).toEqual([]);
    // What else is mounted answers with a problem for every method of a path, and for all other paths.
    const others = [...mounted].filter((name) => !names.map(pattern).includes(name));
    expect(others.filter((name) => !name.startsWith('ALL '))).toEqual([]);
  });

  it.each(cases)('I-03 I-19 %s, asked with the token %s', async (_, token, route) => {
    calls.length = 0;
    const [method, path, sent] = requestFor(route);
    const headers = token === 'wrong' ? { authorization: 'Bearer not-a-token-of-ours' } : {};
    const named = token === 'none' || token === 'wrong' ? null : token;
    const got = await ask(method, path, { ...sent, token: named, headers });
    const refusal = refusalOf(route, token);
    if (refusal === null) {
      expect([401, 403]).not.toContain(got.status);
      return;
    }
    expect(got.status).toBe(refusal);
    expect(got.headers.get('content-type')).toBe('application/problem+json');
    expect(got.json.code).toBe(refusal === 401 ? 'UNAUTHENTICATED' : 'FORBIDDEN');

    expect(calls).toEqual([]);
  });

  it.each(cases.filter(([, token]) => token === 'none').map(([name, , route]) => [name, route]))(
    '%s refuses other methods, whoever asks, and asks no store',
    async (_, route) => {
      calls.length = 0;
      const [, path] = requestFor(route as Route);
      const here = app.routes.filter(({ path }) => path === (route as Route).path);
      const allowed = here.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PURGE']) {
        if (allowed.includes(method)) continue;
        const got = await ask(method, path, { token: null });
        expect(got.status).toBe(405);
        expect(got.headers.get('allow')).toBe(allowed.join(', '));
      }
      expect(calls).toEqual([]);
    },
  );
});

describe('a token', () => {
  const VALID = TOKENS.read.token;

  it.each([
    ['another scheme', `Basic ${VALID}`],
    ['no scheme', VALID],
    ['only the scheme', 'Bearer'],
    ['only the scheme and a space', 'Bearer '],
    ['two tokens', `Bearer ${VALID} ${VALID}`],
    ['a comma after it', `Bearer ${VALID}, Bearer ${VALID}`],
    ['quotes', `Bearer "${VALID}"`],
    ['a tab', `Bearer\t${VALID}`],
    ['one letter less', `Bearer ${VALID.slice(0, -1)}`],
    ['one letter more', `Bearer ${VALID}x`],
    ['a very long text', `Bearer ${'x'.repeat(100_000)}`],
  ])('I-19 with %s is none', async (_, authorization) => {
    calls.length = 0;
    const got = await ask('GET', '/api/v3/sessions', { token: null, headers: { authorization } });
    expect(got.status).toBe(401);
    expect(got.headers.get('www-authenticate')).toContain('error="invalid_token"');
    expect(got.text).not.toContain(VALID);
    expect(calls).toEqual([]);
  });

  it('I-19 is there once', async () => {
    const headers = new Headers();
    headers.append('authorization', `Bearer ${VALID}`);
    headers.append('authorization', `Bearer ${VALID}`);
    expect((await ask('GET', '/api/v3/sessions', { token: null, headers })).status).toBe(401);
  });

  it('is never taken from the URL, a cookie or another header', async () => {
    const paths = ['token', 'access_token', 'authorization'].map(
      (name) => `/api/v3/sessions?${name}=${VALID}`,
    );
    for (const path of paths) expect((await ask('GET', path, { token: null })).status).toBe(401);
    const headers = { cookie: `token=${VALID}`, 'x-api-key': VALID, 'proxy-authorization': VALID };
    expect((await ask('GET', '/api/v3/sessions', { token: null, headers })).status).toBe(401);
  });

  it('may have its scheme in any case', async () => {
    for (const scheme of ['bearer', 'BEARER', 'Bearer ']) {
      const headers = { authorization: `${scheme} ${VALID}` };
      expect((await ask('GET', '/api/v3/sessions', { token: null, headers })).status).toBe(200);
    }
  });

  it('that lacks a scope is told which', async () => {
    const body = { type: 'stream.start', serviceRef: 'x' };
    const got = await ask('POST', '/api/v3/intents', { token: 'read', body });
    expect(got.status).toBe(403);
    expect(got.json).toMatchObject({ code: 'FORBIDDEN', scope: 'v3:write' });
    expect(got.headers.get('www-authenticate')).toContain('scope="v3:write"');
  });

  it('I-19 that was made because there was none may do everything', async () => {
    const { app } = await serverWorld({ tokens: [] });
    expect(app.madeToken).toMatch(/^[0-9a-f]{48}$/);
    const ask = (authorization: string) =>
      app.fetch(new Request('http://localhost/api/v3/sessions', { headers: { authorization } }));
    expect((await ask(`Bearer ${app.madeToken}`)).status).toBe(200);
    expect((await ask(`Bearer ${VALID}`)).status).toBe(401);
    expect(world.app.madeToken).toBeNull();
  });
});
