import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { OperatorClient } from '../../src/client/index.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import { type AppOptions, createApp } from '../../src/server/app.ts';
import { type Serving, serve } from '../../src/server/serve.ts';
import { rawClient, rawRequest } from '../support/raw-client.ts';
import { until } from '../support/until.ts';

const SCRIPT = `console.log("${'x'.repeat(100_000)}");`;

const running: { serving: Serving; holdfast: Holdfast; folder: string }[] = [];
afterEach(async () => {
  for (const { serving, holdfast, folder } of running.splice(0)) {
    await serving.close({ within: 0 });
    await holdfast.close();
    rmSync(folder, { recursive: true });
  }
});

async function served(options: AppOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-page-'));
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), '<script src="./assets/a-1.js"></script>');
  writeFileSync(join(folder, 'assets/a-1.js'), SCRIPT);
  const holdfast = await open('memory:', { quarantine: 'off' });
  const app = createApp(holdfast, { pageFolder: folder, ...options });
  const serving = await serve(app);
  running.push({ serving, holdfast, folder });
  return { app, holdfast, serving, port: serving.port };
}

/** As it came over the wire. */
function answered(text: string): { status: number; body: string } {
  const [head = '', body = ''] = text.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), body };
}

describe('the page over a socket', () => {
  it('is compressed, tagged, and not sent twice', async () => {
    const { serving } = await served();
    const url = `${serving.url}/assets/a-1.js`;
    const first = await fetch(url, { headers: { 'accept-encoding': 'gzip' } });
    expect(first.headers.get('content-encoding')).toBe('gzip');
    expect(await first.text()).toBe(SCRIPT);
    const etag = String(first.headers.get('etag'));
    const headers = { 'accept-encoding': 'gzip', 'if-none-match': etag };
    const again = await fetch(url, { headers });
    expect([again.status, await again.text()]).toEqual([304, '']);
    const head = await fetch(url, { method: 'HEAD', headers: { 'accept-encoding': 'gzip' } });
    expect([head.status, head.headers.get('etag'), await head.text()]).toEqual([200, etag, '']);
  });

  it('comes with paths that lead to it, and what they lead to is there', async () => {
    const { serving } = await served();
    const text = await (await fetch(`${serving.url}/`)).text();
    const path = /src="([^"]+)"/.exec(text)?.[1];
    expect(path).toBe('/assets/a-1.js');
    const bytes = await (await fetch(`${serving.url}${path}`)).arrayBuffer();
    expect(Buffer.from(bytes).toString()).toBe(SCRIPT);
    expect(() => gunzipSync(Buffer.from(bytes))).toThrow();
  });

  it.each(['evil.example', 'evil.example:80', 'localhost.evil.example'])(
    'is refused under the name %s',
    async (host) => {
      const { port } = await served();
      const request = rawRequest('GET /', { Host: host, Connection: 'close' });
      const { status, body } = answered(await (await rawClient(port, request)).ended());
      expect(status).toBe(403);
      expect(body).toContain('FOREIGN_HOST');
    },
  );
});

describe('what the page asks for', () => {
  it('is to be had with a pass, once, and shows the fleet as it changes', async () => {
    const { app, holdfast, serving } = await served();
    const pass = app.passes?.issue() ?? '';
    const nobody = new OperatorClient({ url: serving.url });
    const { token } = await nobody.enter(pass);
    await expect(nobody.enter(pass)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    const operator = new OperatorClient({ url: serving.url, token });
    expect(await operator.about()).toMatchObject({ scope: 'v3:admin', store: 'memory:' });
    await holdfast.targets.add({ id: 'a', url: 'http://127.0.0.1:9/' });
    await holdfast.poller({ poll: async () => {} }).start();
    const end = new AbortController();
    const owners = new Map<string, string | null>();
    const following = (async () => {
      for await (const seen of operator.fleetLive({ signal: end.signal })) {
        const targets =
          seen.kind === 'picture'
            ? seen.picture.targets
            : seen.kind === 'change'
              ? seen.change.targets
              : [];
        for (const { id, owner } of targets ?? []) owners.set(id, owner);
      }
    })();
    await until(() => owners.get('a') === holdfast.instanceId, { what: 'the target to be owned' });
    await operator.addSession({ id: 'b', url: 'http://127.0.0.1:9/' });
    await until(() => owners.get('b') === holdfast.instanceId, { what: 'the second to be owned' });
    end.abort();
    await following;
    const acts = await until(
      async () => {
        const { events } = await operator.history({ event: 'operator.acted' });
        return events.length > 0 && events;
      },
      { what: 'what was done to be written down' },
    );
    expect(acts).toMatchObject([{ action: 'session.add', subject: 'b', by: 'api:made-at-start' }]);
  });

  it('is not done for the page of a stranger, whatever token it has got hold of', async () => {
    const { app, serving, port, holdfast } = await served();
    const post = (origin: string) =>
      fetch(`${serving.url}/api/v3/sessions`, {
        method: 'POST',
        headers: {
          ...{ authorization: `Bearer ${app.madeToken}`, 'content-type': 'application/json' },
          origin,
        },
        body: JSON.stringify({ id: 'x', url: 'http://127.0.0.1:9/' }),
      });
    const refused = await post('http://evil.example');
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ code: 'FOREIGN_ORIGIN' });
    expect((await post(`http://127.0.0.1:${port + 1}`)).status).toBe(403);
    expect(await holdfast.targets.get('x')).toBeNull();
    expect((await post(serving.url)).status).toBe(201);
  });
});
