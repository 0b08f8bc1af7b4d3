import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { HoldfastClient } from '../../src/client/index.ts';
import { freePort, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { cli, privateFolder } from './support/cli.ts';
import { leaveNothingBehind, openAt } from './support/holdfasts.ts';
import { startUp, type UpInstance } from './support/instances.ts';

leaveNothingBehind();

const SLOW = { timeout: 60_000 };
/** On a machine that does something else, too. */
const START_MS = 20_000;
const TOKEN = 'a-token-of-the-tests';
const WITH_TOKEN = { HOLDFAST_API_TOKEN: TOKEN };

const file = () => ({ url: `sqlite:${join(privateFolder(), 'holdfast.db')}` });

/** Where it listens. */
async function urlOf(up: UpInstance): Promise<string> {
  return String((await up.says(/^listens on /, START_MS)).url);
}

function clientOf(url: string, token = TOKEN): HoldfastClient {
  return new HoldfastClient({ url, token });
}

async function stopped(up: UpInstance): Promise<void> {
  up.running.signal('SIGTERM');
  expect(await up.running.end()).toMatchObject({ code: 0 });
}

// One after the other: a process with a server in it takes a while to start, and ten at once take ten times as long.
describe('holdfast up, with the role api', () => {
  it(
    'I-01 I-19 makes a token, shows it once and not in its log, and accepts intents with it',
    SLOW,
    async () => {
      const at = file();
      await using up = startUp('ana', { at, roles: 'api,poller', config: 'poll: () => 1' });
      const url = await urlOf(up);
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
      await up.says(/^is up: 0 targets for 1 instance$/);
      const token = /^TOKEN=(\S+)$/m.exec(up.running.stderr)?.[1] ?? '';
      expect(token).toMatch(/^[0-9a-f]{48}$/);
      const accepted = await clientOf(url, token).start({ serviceRef: 'channel-7' });
      expect(accepted).toMatchObject({ state: 'NEW', kind: 'live', replayed: false });
      const bare = await fetch(`${url}/api/v3/sessions/${accepted.sessionId}`);
      expect(bare.status).toBe(401);
      await stopped(up);
      expect(up.running.stderr.split(token)).toHaveLength(2);
      expect(up.running.stdout).not.toContain(token);
      expect(up.log.map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/^handed over/));
      const listed = await cli(['sessions', 'ls', '--kind', 'live', '--json'], { at });
      expect(JSON.parse(listed.stdout)).toMatchObject([{ id: accepted.sessionId }]);
    },
  );

  it('I-12 is not ready while its worker waits for its name', SLOW, async () => {
    const at = file();
    const other = await openAt(at);
    const taken = await other.acquire('worker:box', { class: 'resource', ttl: '10s' });
    const env = { ...WITH_TOKEN, HOLDFAST_WORKER_NAME: 'box' };
    await using up = startUp('ana', { at, roles: 'api,worker', env });
    const url = await urlOf(up);
    const ready = () => fetch(`${url}/readyz`);
    const waits = await until(
      async () => {
        const { reasons = [] } = (await (await ready()).json()) as { reasons?: string[] };
        return reasons.includes('its worker waits for its name') ? reasons : null;
      },
      { what: 'it says what its worker waits for', deadlineMs: START_MS },
    );
    expect(waits).toHaveLength(1);
    if (taken.ok) await taken.lease.release();
    await until(async () => (await ready()).status === 200, {
      ...{ what: 'it is ready', deadlineMs: START_MS },
    });
    await stopped(up);
  });

  it('I-07 several on one store find the same session', SLOW, async () => {
    const at = file();
    await using one = startUp('ana', { at, roles: 'api', env: WITH_TOKEN });
    await using two = startUp('ben', { at, roles: 'api', env: WITH_TOKEN });
    const clients = [clientOf(await urlOf(one)), clientOf(await urlOf(two))];
    const starts = Array.from({ length: 40 }, (_, i) =>
      clients[i % 2]?.start({ serviceRef: 'channel-7', clientId: `client-${i}` }),
    );
    const accepted = await Promise.all(starts);
    expect(new Set(accepted.map((each) => each?.sessionId)).size).toBe(1);
    expect(accepted.filter((each) => each?.replayed === false)).toHaveLength(1);
    await Promise.all([stopped(one), stopped(two)]);
    expect(one.running.stderr).toBe('');
  });

  it(
    'I-10 who watches is told by SSE what came of it, and loses nothing while the instance is killed and started anew',
    SLOW,
    async () => {
      const at = file();
      const port = await freePort();
      const start = () =>
        startUp('ana', { at, roles: 'api', env: WITH_TOKEN, args: ['--port', String(port)] });
      const over = new AbortController();
      const seen: string[] = [];
      let sessionId = '';
      {
        await using first = start();
        const client = clientOf(await urlOf(first));
        await first.says(/^is up/);
        ({ sessionId } = await client.start({ serviceRef: 'channel-0' }));
        const query = { event: ['intent.accepted', 'session.advanced'], from: 'oldest' } as const;
        void (async () => {
          for await (const one of client.events({ ...query, signal: over.signal })) {
            if (one.kind === 'gap') seen.push('gap');
            else seen.push(`${one.event.event} ${one.event.session}`);
          }
        })();
        await client.stop(sessionId);
        await until(() => seen.length >= 3, { what: 'three events', deadlineMs: 10_000 });
      }
      // Killed by now.
      const { stdout } = await cli(['intents', 'start', 'channel-1', '--json'], { at });
      const { id } = JSON.parse(stdout) as { id: string };
      await using second = start();
      const next = await clientOf(await urlOf(second)).start({ serviceRef: 'channel-2' });
      await until(() => seen.length >= 5, { what: 'five events', deadlineMs: 20_000 });
      over.abort();
      expect(seen).toEqual([
        ...[`intent.accepted ${sessionId}`, `intent.accepted ${sessionId}`],
        ...[`session.advanced ${sessionId}`, `intent.accepted ${id}`],
        `intent.accepted ${next.sessionId}`,
      ]);
      await stopped(second);
    },
  );

  it(
    'I-03 says that it is not ready while the store is away at its start, and goes on by itself when it is there',
    SLOW,
    async () => {
      const port = await freePort();
      const at = { url: `redis://:canary@127.0.0.1:${port}` };
      await using up = startUp('ana', { at, roles: 'api,poller', env: WITH_TOKEN });
      const url = await urlOf(up);
      await up.says(/is unreachable/);
      const ready = await fetch(`${url}/readyz`);
      expect([ready.status, ready.headers.get('retry-after')]).toEqual([503, '1']);
      const told = await ready.json();
      expect(told).toMatchObject({
        code: 'NOT_READY',
        reasons: ['it has not connected to the store yet'],
      });
      expect(JSON.stringify(told)).not.toContain(String(port));
      const health = await fetch(`${url}/healthz`);
      expect([health.status, await health.json()]).toEqual([200, { alive: true }]);
      const refused = await fetch(`${url}/api/v3/intents`, { method: 'POST', body: '{}' });
      expect(refused.status).toBe(503);
      expect(refused.headers.get('content-type')).toBe('application/problem+json');
      expect(await refused.json()).toMatchObject({ code: 'STORE_UNAVAILABLE' });
      const starting = clientOf(url).start({ serviceRef: 'channel-7' });
      await using _late = await startRedis({ port, credentials: { password: 'canary' } });
      expect(await starting).toMatchObject({ state: 'NEW', replayed: false });
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      await stopped(up);
      expect(up.running.stdout + up.running.stderr).not.toContain('canary');
    },
  );

  it('is ended by SIGTERM while it still tries to connect', SLOW, async () => {
    const at = { url: `redis://127.0.0.1:${await freePort()}` };
    await using up = startUp('ana', { at, roles: 'api,poller', env: WITH_TOKEN });
    await up.says(/is unreachable/);
    await stopped(up);
  });

  it(
    'finishes on SIGTERM what it has begun to answer, takes nothing new, and ends with 0',
    SLOW,
    async () => {
      const at = file();
      await using up = startUp('ana', { at, roles: 'api,poller', env: WITH_TOKEN });
      const url = new URL(await urlOf(up));
      await up.says(/^is up/);
      const body = JSON.stringify({ type: 'stream.start', serviceRef: 'channel-7' });
      const socket = connect(Number(url.port), url.hostname);
      const answer = textOf(socket);
      socket.write(
        [
          ...[
            'POST /api/v3/intents HTTP/1.1',
            `Host: ${url.host}`,
            `Authorization: Bearer ${TOKEN}`,
          ],
          ...['Content-Type: application/json', `Content-Length: ${body.length}`, '', ''],
        ].join('\r\n') + body.slice(0, 10),
      );
      // It has begun with it when the next one, on another connection, has been answered.
      await fetch(`${url.origin}/api/v3/sessions`);
      up.running.signal('SIGTERM');
      const isClosed = async () => !(await isListening(url));
      await until(isClosed, { what: 'nobody to listen any more', deadlineMs: 10_000 });
      expect(up.log.map(({ msg }) => msg)).not.toContainEqual(expect.stringMatching(/handed over/));
      socket.write(body.slice(10));
      expect(await answer).toMatch(/^HTTP\/1\.1 202 /);
      expect(await up.running.end()).toMatchObject({ code: 0 });
      expect(up.log.at(-1)?.msg).toMatch(/^handed over 0 targets/);
    },
  );

  it('does not wait longer than it is told to for a request that never arrives', SLOW, async () => {
    const at = file();
    const args = ['--stop-within', '600ms'];
    await using up = startUp('ana', { at, roles: 'api', env: WITH_TOKEN, args });
    const url = new URL(await urlOf(up));
    await up.says(/^is up/);
    const socket = connect(Number(url.port), url.hostname);
    const answer = textOf(socket);
    socket.write(`POST /api/v3/intents HTTP/1.1\r\nHost: ${url.host}\r\nContent-Length: 9\r\n`);
    await fetch(`${url.origin}/api/v3/sessions`);
    await stopped(up);
    await answer;
    expect(up.log.at(-1)?.msg).toMatch(/^stopped in /);
  });

  it('alone takes no share of the targets', SLOW, async () => {
    const at = file();
    await using holdfast = await openAt(at);
    await holdfast.targets.add({ id: 'a' });
    await using up = startUp('ana', { at, roles: 'api', env: WITH_TOKEN });
    await up.says(/^is up$/, START_MS);
    const { members, targets } = await holdfast.fleet.view();
    expect([members, targets]).toMatchObject([[], [{ target: 'a', owner: null }]]);
    await stopped(up);
  });

  it('listens on the configured address, or says that it cannot', SLOW, async () => {
    const at = file();
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const taken = await cli(['up', '--port', String(port)], { at });
    expect(taken).toMatchObject({ code: 78, stdout: '' });
    expect(taken.stderr).toMatch(
      /^holdfast: port \d+ of 127\.0\.0\.1 is used by another program.* --port/,
    );
    other.close();
    const free = await freePort();
    const config = `api: { host: 'localhost', port: ${free} }`;
    await using up = startUp('ana', { at, roles: 'api', env: WITH_TOKEN, config });
    expect(new URL(await urlOf(up)).port).toBe(String(free));
    await up.says(/^is up/);
    await stopped(up);
  });

  it('finds a free port where the usual one is taken, and says so', SLOW, async () => {
    const at = file();
    const first = createServer();
    // Whoever has it, it is taken.
    await new Promise<void>((resolve) => {
      first.once('error', () => resolve());
      first.listen(4747, '127.0.0.1', resolve);
    });
    await using up = startUp('ana', { at, roles: 'api', env: WITH_TOKEN });
    const { msg, url } = await up.says(/^listens on /, START_MS);
    expect(msg).toMatch(/: the default port is taken$/);
    expect(new URL(String(url)).port).not.toBe('4747');
    await up.says(/^is up/);
    expect((await fetch(`${url}/api/v3/sessions`)).status).toBe(401);
    await stopped(up);
    first.close();
  });

  it(
    'I-19 knows the tokens of its environment, its file and its configuration, and warns of a file that all may read',
    SLOW,
    async () => {
      const at = file();
      const path = join(privateFolder(), 'tokens.json');
      const token = 'of-the-file-of-the-file';
      writeFileSync(
        path,
        JSON.stringify([{ id: 'web', token, scope: 'v3:write', tenant: 'acme' }]),
      );
      chmodSync(path, 0o644);
      const env = { ...WITH_TOKEN, HOLDFAST_API_TOKENS_FILE: path };
      const tokens = `[{ id: 'eye', token: 'of-the-configuration', scope: 'v3:read' }]`;
      const config = `api: { tokens: ${tokens}, limits: { inFlight: 50 } }, intents: { apiLeases: 'off' }, retention: { sessions: '1h' }`;
      await using up = startUp('ana', { at, roles: 'api', env, config });
      const url = await urlOf(up);
      await up.says(/every user of this host can read the tokens/);
      await up.says(/^is up/);
      const { sessionId } = await clientOf(url, token).start({ serviceRef: 'a' });
      expect(await clientOf(url, token).session(sessionId)).toMatchObject({ tenant: 'acme' });
      expect(await clientOf(url).session(sessionId)).toMatchObject({ tenant: 'acme' });
      const reader = clientOf(url, 'of-the-configuration');
      expect(await reader.session(sessionId)).toBeNull();
      await expect(reader.start({ serviceRef: 'a' })).rejects.toMatchObject({ status: 403 });
      await stopped(up);
      for (const secret of [TOKEN, token, 'of-the-configuration'])
        expect(up.running.stdout + up.running.stderr).not.toContain(secret);
    },
  );
});

it('a configuration that makes no sense is one line, before anything listens', SLOW, async () => {
  const at = file();
  const cases: [string, RegExp, Record<string, string>?][] = [
    [`api: { token: 'canary' }`, /api\.token is .*: unknown option\. Known options: host, port/],
    ['api: 7', /api is 7: it must be an object/],
    [`api: { limits: { inFlight: 0 } }`, /limits\.inFlight is 0/],
    [`api: { lan: { allow: ['10.0.0.0/99'] } }`, /10\.0\.0\.0\/99/],
    [`api: { tokens: [{ id: 'a', token: 'canary', scope: 'v3:read' }] }`, /token is /],
    [`retention: { sessions: '0s' }`, /retention\.sessions is "0s": it must be from 1s to 3650d/],
    [`intents: { apiLeases: 'maybe' }`, /apiLeases is "maybe"/],
    [`intents: { secret: 'canary' }`, /intents\.secret is .* HOLDFAST_IDEM_SECRET/],
    ['', /HOLDFAST_API_TOKEN/, { HOLDFAST_API_TOKEN: 'canary' }],
    ['', /HOLDFAST_API_TOKENS_FILE/, { HOLDFAST_API_TOKENS_FILE: '/no/such/file' }],
    ['', /at least 32 bytes/, { HOLDFAST_IDEM_SECRET: 'canary' }],
  ];
  const ended = cases.map(async ([config, , env = {}]) => {
    await using up = startUp('ana', { at, roles: 'api', config, env });
    return await up.running.end();
  });
  for (const [i, [config, message]] of cases.entries()) {
    const { code, stdout, stderr } = await (ended[i] as (typeof ended)[number]);
    expect({ config, stdout }).toEqual({ config, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^holdfast: [^\n]*\n$/);
    expect(stderr).not.toContain('canary');
    expect({ config, code }).toEqual({ config, code: 78 });
  }
});

async function textOf(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('error', () => {});
  socket.on('data', (chunk) => chunks.push(chunk));
  await once(socket, 'close');
  return Buffer.concat(chunks).toString();
}

async function isListening({ hostname, port }: URL): Promise<boolean> {
  const socket = connect(Number(port), hostname);
  try {
    return await new Promise((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}
