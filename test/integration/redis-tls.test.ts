import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dialSocket } from '../../src/store/redis/client/socket-connection.ts';
import { freePort, type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';
import { SHORT } from './support/lease-watch.ts';

leaveNothingBehind();

const dir = mkdtempSync(join(tmpdir(), 'holdfast-tls-'));
const file = (name: string) => join(dir, name);

/** A certificate of its own making, which is its own authority. */
function certify(name: string): void {
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', file(`${name}.key`), '-out', file(`${name}.crt`)];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const args = ['req', '-x509', ...curve, '-days', '2', ...subject, ...files];
  execFileSync('openssl', args, { stdio: 'ignore' });
}

let redis: RedisServer;
let address: string;
beforeAll(async () => {
  certify('server');
  certify('stranger');
  const port = await freePort();
  address = `127.0.0.1:${port}`;
  const files = ['--tls-cert-file', file('server.crt'), '--tls-key-file', file('server.key')];
  const args = [...files, '--tls-port', String(port), '--tls-auth-clients', 'no'];
  redis = await startRedis({ args: [...args, '--tls-ca-cert-file', file('server.crt')] });
});
afterAll(async () => {
  await redis.stop();
  rmSync(dir, { recursive: true, force: true });
});

describe('an encrypted connection', () => {
  it('K-16 stands with the authority named in the URL, or given as an option', async () => {
    const byUrl = `rediss://${address}?ca=${encodeURIComponent(file('server.crt'))}`;
    await using one = await openAt({ url: byUrl });
    const tls = { ca: readFileSync(file('server.crt')) };
    await using other = await openAt({ url: `rediss://${address}` }, { tls });
    const lease = await take(one, 'k', SHORT);
    expect(await other.acquire('k', SHORT)).toMatchObject({ ok: false, holder: lease.holder });
    const waiting = take(other, 'k', { ...SHORT, wait: '10s' });
    await lease.release();
    expect((await waiting).isHeld()).toBe(true);
  });

  it.each([
    ['another authority', `?ca=${encodeURIComponent(file('stranger.crt'))}`],
    ['none', ''],
  ])('K-16 does not with %s, and the error says why', async (_, query) => {
    const opening = openAt({ url: `rediss://${address}${query}` });
    const error = await opening.then(
      () => null,
      (thrown: Error) => thrown,
    );
    expect(error).toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(error?.message).toMatch(/certificate/);
  });

  it('B-01 is reset where an answer is missing: what lies below it is not left to the system', async () => {
    const keys = { key: readFileSync(file('server.key')), cert: readFileSync(file('server.crt')) };
    let heard = '';
    const ends: string[] = [];
    const server = createServer(keys, (socket) => {
      socket.on('data', (chunk) => {
        heard += chunk.toString();
      });
      socket.on('error', (error: NodeJS.ErrnoException) => ends.push(error.code ?? ''));
      socket.on('end', () => ends.push('closed'));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const signal = new AbortController().signal;
    const tls = { ca: keys.cert };
    const attempt = { timeoutMs: 5_000, signal, onEnd: () => {} };
    const link = await dialSocket({ host: '127.0.0.1', port }, { tls }, attempt);
    link.send(['PING']).catch(() => {});
    await until(() => heard.includes('PING'), { what: 'the request' });
    link.destroy();
    await until(() => ends.length > 0, { what: 'the end' });
    expect(ends).toEqual(['ECONNRESET']);
    server.close();
  });
});
