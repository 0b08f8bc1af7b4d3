import { expect, it } from 'vitest';
import { MAX_BODY_BYTES } from '../../src/server/http/body.ts';
import fc from '../support/fast-check.ts';
import { requestOf, type Sent, serverWorld, TOKENS } from '../support/server-world.ts';

/** A request that can not be right, whatever chance makes of it. */
interface Malformed {
  readonly method: string;
  readonly path: string;
  readonly sent: Sent;
}

const RUNS = 20_000;
const INTENTS = '/api/v3/intents';
const SESSIONS = '/api/v3/sessions';
const START = { type: 'stream.start', serviceRef: 'one', profile: 'hd' };
const NEW = { url: 'http://example.com/', id: 'one', every: '5s' };

const anyText = fc.string({ unit: 'binary', maxLength: 60 });
const asciiText = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map(toChar),
  maxLength: 60,
});
const known = fc.constantFrom<[string, Record<string, unknown>]>([INTENTS, START], [SESSIONS, NEW]);
const anyJson = fc.jsonValue({ maxDepth: 4, noUnicodeString: false });

function toChar(code: number): string {
  return String.fromCharCode(code);
}

const post = (path: string, body: unknown, headers = {}): Malformed => ({
  method: 'POST',
  path,
  sent: { body, headers },
});

/** Bytes that are no request, or none that is whole. */
const brokenBody = fc.oneof(
  fc.tuple(known, fc.uint8Array({ maxLength: 200 })).map(([[path], bytes]) => post(path, bytes)),
  fc.tuple(known, anyText).map(([[path], text]) => post(path, text)),
  fc.tuple(known, anyJson).map(([[path], value]) => post(path, JSON.stringify(value))),
  fc.tuple(known, fc.nat()).map(([[path, body], at]) => {
    const text = JSON.stringify(body);
    return post(path, text.slice(0, at % text.length));
  }),
  fc.tuple(known, fc.integer({ min: 1, max: 5_000 })).map(([[path, body], more]) => {
    return post(path, JSON.stringify(body).padEnd(MAX_BODY_BYTES + more));
  }),
  fc.tuple(known, fc.integer({ min: 17, max: 4_000 })).map(([[path, body], depth]) => {
    const nest = '['.repeat(depth) + ']'.repeat(depth);
    return post(path, JSON.stringify(body).replace('}', `,"x":${nest}}`));
  }),
);

/** JSON in which one field is wrong, unknown, or there twice. */
const brokenField = fc.oneof(
  fc.tuple(known, asciiText, anyJson).map(([[path, body], name, value]) => {
    const field = Object.hasOwn(body, name) || isOptional(name) ? `${name}x` : name;
    return post(path, { ...body, [field]: value });
  }),
  fc
    .tuple(known, fc.nat(), fc.constantFrom(null, {}, [], [1], { a: 1 }, ''))
    .map(([[path, body], at, value]) => {
      const names = Object.keys(body);
      return post(path, { ...body, [names[at % names.length] ?? '']: value });
    }),
  fc.tuple(known, fc.nat(), anyJson).map(([[path, body], at, value]) => {
    const names = Object.keys(body);
    const twice = `{${JSON.stringify(names[at % names.length])}:${JSON.stringify(value)},`;
    return post(path, JSON.stringify(body).replace('{', twice));
  }),
  fc
    .tuple(known, fc.constantFrom('__proto__', 'constructor', 'prototype'), anyJson)
    .map(([[path, body], name, value]) =>
      post(path, JSON.stringify(body).replace('{', `{"${name}":${JSON.stringify(value)},`)),
    ),
  fc.oneof(fc.double(), anyJson).map((startMs) => {
    const isFine = Number.isSafeInteger(startMs) && (startMs as number) >= 0;
    return post(INTENTS, {
      type: 'vod.start',
      recordingId: 'a',
      startMs: isFine ? -1 : (startMs ?? ''),
    });
  }),
);

function isOptional(name: string): boolean {
  return ['clientId', 'isPaused', '__proto__'].includes(name);
}

/** Tokens, types and other headers that are not what they should be. */
const brokenHeaders = fc.oneof(
  fc
    .tuple(known, asciiText)
    .map(([[path, body], text]) => post(path, body, { authorization: `Bearer ${text}` })),
  fc
    .tuple(known, asciiText)
    .map(([[path, body], text]) =>
      post(path, body, { authorization: text.replace(/^bearer /i, '') }),
    ),
  fc
    .tuple(known, fc.constantFrom(...Object.values(TOKENS)), asciiText)
    .map(([[path, body], { token }, text]) =>
      post(path, body, { authorization: `Bearer ${token}${text === '' ? '.' : text}` }),
    ),
  fc
    .tuple(known, asciiText)
    .map(([[path, body], text]) => post(path, body, { 'content-type': `${text};x` })),
  fc
    .tuple(known, asciiText)
    .map(([[path, body], text]) => post(path, body, { 'content-encoding': `x${text}` })),
);

const methods = fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS', 'PURGE', 'M-X');
const badId = fc
  .tuple(
    asciiText,
    fc.constantFrom('*', '{', '}', '%00', '%0a', '%-', '%zz', '%ff', '%2f', '@', '%F0%9F'),
  )
  .map(([text, bad]) => bad + text.replace(/[/?#\\.]/g, '-'));

/** Paths to nothing, ids that are none, methods that are not there. */
const brokenPath = fc.oneof(
  fc.tuple(methods, asciiText).map(([method, text]) => ({ method, path: `/x${text}`, sent: {} })),
  fc.tuple(methods, asciiText).map(([method, text]) => ({
    method,
    path: `/api/v3/sessions/one/${text.replace(/[?#\\]/g, '')}/x`,
    sent: {},
  })),
  fc.tuple(fc.constantFrom('GET', 'DELETE'), badId).map(([method, id]) => ({
    method,
    path: `${SESSIONS}/${id}`,
    sent: {},
  })),
  fc.tuple(fc.constantFrom('pause', 'resume'), badId).map(([verb, id]) => ({
    method: 'POST',
    path: `${SESSIONS}/${id}/${verb}`,
    sent: {},
  })),
  fc.constantFrom('PUT', 'PATCH', 'OPTIONS', 'PURGE').map((method) => ({
    method,
    path: SESSIONS,
    sent: {},
  })),
);

/** Queries with something that is not known or makes no sense. */
const brokenQuery = fc.oneof(
  fc.tuple(asciiText, anyText).map(([name, value]) => {
    const search = new URLSearchParams([[`x${name}`, value.toWellFormed()]]);
    return { method: 'GET', path: `${SESSIONS}?${search}`, sent: {} };
  }),
  fc.tuple(fc.constantFrom('kind', 'state', 'limit', 'cursor'), anyText).map(([name, value]) => {
    const search = new URLSearchParams([[name, `!${value.toWellFormed()}`]]);
    return { method: 'GET', path: `${SESSIONS}?${search}`, sent: {} };
  }),
  asciiText.map((text) => ({
    method: 'GET',
    path: `${SESSIONS}?=${text.replace('#', '')}`,
    sent: {},
  })),
  fc.tuple(known, asciiText).map(([[path, body], text]) => ({
    ...post(`${path}?q=${text.replace('#', '')}`, body),
  })),
);

const malformed: fc.Arbitrary<Malformed> = fc.oneof(
  ...[brokenBody, brokenField, brokenHeaders, brokenPath, brokenQuery],
);

it('I-02 I-03 20,000 malformed requests are refused, each with a problem, and the store hears of none', async () => {
  const { app, calls, errors } = await serverWorld();
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(malformed, async ({ method, path, sent }) => {
      calls.length = 0;
      const response = await app.fetch(requestOf(method, path, sent));
      const { status } = response;
      const type = response.headers.get('content-type');
      const told = JSON.parse(await response.text());
      const isRefusal = status >= 400 && status < 500 && told.status === status;
      // Asserted once for all of it: twenty thousand times it adds up.
      if (!isRefusal || type !== 'application/problem+json' || calls.length > 0)
        expect.fail(`answered ${status} as ${type}, after ${calls.join(', ') || 'no call'}`);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }),
    { numRuns: RUNS },
  );
  expect(errors).toEqual([]);
  // Each of them was reached, and often: otherwise chance has missed the point.
  for (const status of [400, 401, 404, 405, 413, 415])
    expect(statuses.get(status) ?? 0).toBeGreaterThan(50);
}, 60_000);
