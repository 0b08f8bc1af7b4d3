import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { Hono } from 'hono';
import { afterAll, describe, expect, it } from 'vitest';
import { serverWorld } from '../support/server-world.ts';

const SCRIPT = 'export const page = "'.concat('x'.repeat(2_000), '";');
const INDEX =
  '<!doctype html><html><head><link rel="stylesheet" href="./assets/page-1a2b.css"></head>' +
  '<body><script type="module" src="./assets/page-3c4d.js"></script></body></html>';
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const folder = mkdtempSync(join(tmpdir(), 'holdfast-page-'));
mkdirSync(join(folder, 'assets'));
writeFileSync(join(folder, 'index.html'), INDEX);
writeFileSync(join(folder, 'secret.txt'), 'canary');
writeFileSync(join(folder, 'assets/page-3c4d.js'), SCRIPT);
writeFileSync(join(folder, 'assets/page-1a2b.css'), 'body{color:red}');
writeFileSync(join(folder, 'assets/dot.png'), Buffer.from([1, 2, 3]));
afterAll(() => rmSync(folder, { recursive: true }));

async function pageWorld(options: Parameters<typeof serverWorld>[0] = {}) {
  const world = await serverWorld({ pageFolder: folder, ...options });
  const get = (path: string, headers: Record<string, string> = {}, host = 'localhost') =>
    world.app.fetch(new Request(`http://${host}${path}`, { headers }));
  return { ...world, get };
}

describe('the page', () => {
  it('is there for everybody, and nothing of a stranger can run in it', async () => {
    const { get, calls } = await pageWorld();
    const response = await get('/');
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    });
    const text = await response.text();
    expect(text).toContain('src="/assets/page-3c4d.js"');
    expect(text).toContain('href="/assets/page-1a2b.css"');
    expect(calls).toEqual([]);
  });

  it('is made of files that may be kept for ever, as their names change with them', async () => {
    const { get } = await pageWorld();
    const script = await get('/assets/page-3c4d.js');
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(script.headers.get('content-security-policy')).toBe(POLICY);
    expect(await script.text()).toBe(SCRIPT);
    expect((await get('/assets/page-1a2b.css')).headers.get('content-type')).toMatch(/^text\/css/);
    expect((await get('/assets/dot.png')).headers.get('content-type')).toBe('image/png');
  });

  it.each([
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['GZIP;q=0.5', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['br;q=0.0', null],
    ['', null],
    ['identity', null],
    ['brotli', null],
  ])('comes to who takes "%s" as %s', async (accepted, encoding) => {
    const { get } = await pageWorld();
    const response = await get('/assets/page-3c4d.js', { 'accept-encoding': accepted });
    expect(response.headers.get('content-encoding')).toBe(encoding);
    expect(response.headers.get('vary')).toBe('Accept-Encoding');
    const bytes = Buffer.from(await response.arrayBuffer());
    const read = { br: brotliDecompressSync, gzip: gunzipSync }[String(encoding)];
    expect((read?.(bytes) ?? bytes).toString()).toBe(SCRIPT);
    if (encoding !== null) expect(bytes.length).toBeLessThan(200);
  });

  it('is not compressed where that would gain nothing', async () => {
    const { get } = await pageWorld();
    const response = await get('/assets/dot.png', { 'accept-encoding': 'br, gzip' });
    expect(response.headers.get('content-encoding')).toBeNull();
    expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([1, 2, 3]);
  });

  it('is not sent again to who has it', async () => {
    const { get } = await pageWorld();
    const etag = String((await get('/')).headers.get('etag'));
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const response = await get('/', { 'if-none-match': known });
      expect([response.status, await response.text()]).toEqual([304, '']);
      expect(response.headers.get('etag')).toBe(etag);
      expect(response.headers.get('content-security-policy')).toBe(POLICY);
    }
    const compressed = await get('/', { 'if-none-match': etag, 'accept-encoding': 'gzip' });
    expect(compressed.status).toBe(200);
  });

  it('finds its files wherever it is mounted', async () => {
    const { app } = await pageWorld();
    const outer = new Hono().route('/ops/:team', app.hono);
    const at = async (path: string) => outer.fetch(new Request(`http://localhost${path}`));
    expect(await (await at('/ops/tv')).text()).toContain('src="/ops/tv/assets/page-3c4d.js"');
    expect((await at('/ops/tv/assets/page-3c4d.js')).status).toBe(200);
    const nasty = await (await at('/ops/%22%3E%3Cscript%3E')).text();
    expect(nasty).not.toMatch(/"><script>/);
    expect(nasty).toContain('/assets/page-3c4d.js"');
  });

  it.each([
    'secret.txt',
    '..%2Fsecret.txt',
    '%2e%2e%2fsecret.txt',
    '..%5Csecret.txt',
    'page-3c4d.js%00',
    '__proto__',
    'constructor',
    '.',
  ])('has no file %s', async (name) => {
    const { get } = await pageWorld();
    const response = await get(`/assets/${name}`);
    expect([400, 404]).toContain(response.status);
    expect(await response.text()).not.toContain('canary');
  });

  it('says what to do where it was not built, and is there once it is', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'holdfast-page-'));
    const { get } = await pageWorld({ pageFolder: empty });
    const missing = await get('/');
    expect(missing.status).toBe(503);
    expect(await missing.text()).toContain('npm run build');
    expect(missing.headers.get('content-security-policy')).toBe(POLICY);
    expect((await get('/assets/page-3c4d.js')).status).toBe(404);
    mkdirSync(join(empty, 'assets'));
    writeFileSync(join(empty, 'index.html'), INDEX);
    expect((await get('/')).status).toBe(200);
    rmSync(empty, { recursive: true });
  });
});

describe('the host in a request for the page', () => {
  it.each([
    'localhost',
    'localhost:4747',
    '127.0.0.1:4747',
    '[::1]:4747',
    '192.168.7.7',
    'LOCALHOST',
  ])('may be %s', async (host) => {
    const { get } = await pageWorld();
    expect((await get('/', {}, host)).status).toBe(200);
  });

  it.each(['evil.example', 'localhost.evil.example', 'rebind.localhost.example:4747', 'local'])(
    'may not be %s, although programs may ask under any name',
    async (host) => {
      const { get, app } = await pageWorld();
      for (const path of ['/', '/assets/page-3c4d.js']) {
        const response = await get(path, {}, host);
        expect(response.status).toBe(403);
        expect(await response.json()).toMatchObject({ code: 'FOREIGN_HOST' });
      }
      const enter = new Request(`http://${host}/api/v3/enter`, { method: 'POST' });
      expect((await app.fetch(enter)).status).toBe(403);
      expect((await get('/healthz', {}, host)).status).toBe(200);
    },
  );

  it('may be one that is configured', async () => {
    const { get } = await pageWorld({ hosts: ['ops.example'] });
    expect((await get('/', {}, 'ops.example')).status).toBe(200);
    expect((await get('/', {}, 'evil.example')).status).toBe(403);
  });
});

describe('POST /api/v3/enter', () => {
  async function passWorld() {
    const world = await serverWorld({ tokens: [] });
    const { app, clock, ask } = world;
    const passes = app.passes;
    if (passes === null) throw new Error('there are no passes');
    const enter = (pass: unknown) => ask('POST', '/api/v3/enter', { token: null, body: { pass } });
    return { ...world, passes, enter, clock };
  }

  it('gives the token that was made for a pass, once', async () => {
    const { app, passes, enter, calls } = await passWorld();
    const pass = passes.issue();
    expect(pass).toMatch(/^[0-9a-f]{32}$/);
    const got = await enter(pass);
    expect([got.status, got.json]).toEqual([200, { token: app.madeToken }]);
    expect(got.headers.get('cache-control')).toBe('no-store');
    const again = await enter(pass);
    expect([again.status, again.json.code]).toEqual([401, 'UNAUTHENTICATED']);
    expect(again.text).not.toContain(pass);
    expect(calls).toEqual([]);
  });

  it('is for ten minutes', async () => {
    const { passes, enter, clock } = await passWorld();
    const [early, late] = [passes.issue(), passes.issue()];
    await clock.advance(599_000);
    expect((await enter(early)).status).toBe(200);
    await clock.advance(1_000);
    expect((await enter(late)).status).toBe(401);
  });

  it('I-19 refuses wrong passes for a while when many come, and never the right one', async () => {
    const { passes, enter, clock } = await passWorld();
    const pass = passes.issue();
    for (let i = 0; i < 10; i++) expect((await enter(`wrong${i}`)).status).toBe(401);
    const refused = await enter('wrong');
    expect([refused.status, refused.json.code]).toEqual([429, 'TOO_MANY_REQUESTS']);
    expect((await enter(pass)).status).toBe(200);
    await clock.advance(60_000);
    expect((await enter('wrong')).status).toBe(401);
  });

  it.each([undefined, '', 7, 'a b', '<script>', 'x'.repeat(65), ['a'], {}])(
    'refuses %.20j as a pass',
    async (pass) => {
      const { enter } = await passWorld();
      const got = await enter(pass);
      expect([got.status, got.json.errors[0].field]).toEqual([400, 'pass']);
    },
  );

  it('has no pass for tokens that are configured', async () => {
    const { app, ask } = await serverWorld();
    expect(app.passes).toBeNull();
    const got = await ask('POST', '/api/v3/enter', { token: null, body: { pass: 'a'.repeat(32) } });
    expect(got.status).toBe(401);
  });

  it('keeps the latest passes only', async () => {
    const { passes, enter } = await passWorld();
    const [first = '', ...others] = Array.from({ length: 17 }, () => passes.issue());
    expect((await enter(first)).status).toBe(401);
    expect((await enter(others[0])).status).toBe(200);
  });
});
