import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { PROBLEMS } from '../../src/server/http/problem.ts';
import type { JsonSchema, OpenApi, Operation } from '../../src/server/reference/openapi.ts';
import { requestOf, serverWorld } from '../support/server-world.ts';

const { app, ask, calls } = await serverWorld();
const document = (await ask('GET', '/openapi.json', { token: null })).json as OpenApi;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]): [string, string, Operation] => [
    method.toUpperCase(),
    path,
    operation,
  ]),
);

/** Everything in it that is called so, wherever it is. */
function everything(name: string, within: unknown): unknown[] {
  if (typeof within !== 'object' || within === null) return [];
  return Object.entries(within).flatMap(([key, value]) => [
    ...(key === name ? [value] : []),
    ...everything(name, value),
  ]);
}

describe('/openapi.json', () => {
  it('has every route of the table, and no other', () => {
    const table = app.routes.map(({ method, path }) => `${method} ${path}`);
    expect(operations.map(([method, path]) => `${method} ${path}`).sort()).toEqual(table.sort());
    expect(document.openapi).toBe('3.1.0');
    expect(calls).toEqual([]);
  });

  it('names every operation once', () => {
    const ids = operations.map(([, , { operationId }]) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain('postMembersIdDrain');
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]+$/);
  });

  it('has what every reference leads to, and no schema that nothing refers to', () => {
    const refs = new Set(everything('$ref', document));
    const shared = Object.keys(document.components.schemas).map(
      (name) => `#/components/schemas/${name}`,
    );
    expect([...refs].filter((ref) => !shared.includes(String(ref)))).toEqual([]);
    expect(shared.filter((ref) => !refs.has(ref))).toEqual([]);
    expect(everything('$defs', document)).toEqual([]);
    expect(everything('$schema', document)).toEqual([]);
  });

  it('declares every parameter of a path, and each once', () => {
    for (const [, path, { parameters = [] }] of operations) {
      const inPath = parameters.filter((one) => one.in === 'path').map(({ name }) => name);
      expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      expect(new Set(parameters.map((one) => `${one.in} ${one.name}`)).size).toBe(
        parameters.length,
      );
      for (const one of parameters) expect(one.required).toBe(one.in === 'path');
    }
  });

  it('says who may, and that each may be refused', () => {
    for (const [method, path, { security, responses, description }] of operations) {
      const route = app.routes.find((one) => one.method === method && one.path === path);
      if (route?.access === 'open') expect(security).toEqual([]);
      else {
        expect(security).toEqual([{ bearer: [route?.access] }]);
        expect(description).toContain(`\`${route?.access}\``);
        expect(Object.keys(responses)).toEqual(expect.arrayContaining(['400', '401', '403']));
      }
      expect(Object.keys(responses).some((status) => status.startsWith('2'))).toBe(true);
    }
  });

  it('describes what is taken and given: bodies of intents, filters that may be repeated', () => {
    const body = document.paths['/api/v3/intents']?.post?.requestBody?.content['application/json'];
    const options = body?.schema.oneOf ?? body?.schema.anyOf ?? [];
    expect(options.map(({ $ref }) => $ref)).toEqual(
      ['StreamStart', 'VodStart', 'StreamStop', 'Start', 'Stop'].map(
        (name) => `#/components/schemas/${name}`,
      ),
    );
    const start = document.components.schemas.StreamStart as JsonSchema;
    expect(start).toMatchObject({ required: ['type', 'serviceRef'], additionalProperties: false });
    const filter = document.paths['/api/v3/events']?.get?.parameters ?? [];
    expect(filter.find(({ name }) => name === 'event')?.schema).toEqual({
      type: 'array',
      maxItems: 50,
      items: { type: 'string' },
    });
    expect(filter.map(({ name }) => name)).toContain('Last-Event-ID');
  });

  it('says where it is mounted', async () => {
    const mine = new Hono().route('/holdfast', app.hono);
    const response = await mine.fetch(requestOf('GET', '/holdfast/openapi.json', { token: null }));
    expect(((await response.json()) as OpenApi).servers).toEqual([{ url: '/holdfast' }]);
    expect(document.servers).toEqual([{ url: '/' }]);
  });
});

describe('the reference', () => {
  it('is a page with every route, a way to try each, and every problem', async () => {
    const { status, text, headers } = await ask('GET', '/docs', { token: null });
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    for (const [, , { operationId, summary }] of operations) {
      expect(text).toContain(`<article id="${operationId}">`);
      expect(text).toContain(summary.replaceAll("'", '&#39;'));
    }
    expect(text.match(/curl /g)).toHaveLength(operations.length);
    for (const name of Object.keys(PROBLEMS)) expect(text).toContain(`href="problems/${name}"`);
    expect(calls).toEqual([]);
  });

  it('runs nothing, loads nothing from elsewhere, and may be put into no frame', async () => {
    for (const path of ['/docs', '/problems/conflict', '/docs/style.css']) {
      const { text, headers } = await ask('GET', path, { token: null });
      const policy = headers.get('content-security-policy');
      expect(policy).toContain("default-src 'none'; style-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(text).not.toMatch(/<script|<style|style=|javascript:|\son\w+=|@import|url\(/i);
      expect(text).not.toMatch(/(src|href)="(https?:)?\/\//);
    }
  });

  it('has links that lead somewhere, wherever it is mounted', async () => {
    const mine = new Hono().route('/some/where', app.hono);
    for (const from of ['/some/where/docs', '/some/where/problems/conflict']) {
      const get = (path: string) => mine.fetch(requestOf('GET', path, { token: null }));
      const text = await (await get(from)).text();
      const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
      for (const [, href = ''] of text.matchAll(/href="([^"]+)"/g)) {
        const { pathname, hash } = new URL(href, `http://localhost${from}`);
        if (href.startsWith('#')) expect(ids).toContain(hash.slice(1));
        else expect([href, (await get(pathname)).status]).toEqual([href, 200]);
      }
    }
  });

  it.each(Object.keys(PROBLEMS))('explains %s where its type leads', async (name) => {
    const { status, text } = await ask('GET', `/problems/${name}`, { token: null });
    expect(status).toBe(200);
    expect(text).toContain('What to do');
    expect(text).toContain(name.toUpperCase().replaceAll('-', '_'));
  });

  it.each(['nope', '__proto__', 'constructor', 'toString', '%3Cscript%3E', '..%2Fdocs'])(
    'knows no problem called %s, and does not repeat it',
    async (name) => {
      const { status, text } = await ask('GET', `/problems/${name}`, { token: null });
      expect(status).toBe(404);
      expect(text).not.toContain(decodeURIComponent(name));
    },
  );
});
