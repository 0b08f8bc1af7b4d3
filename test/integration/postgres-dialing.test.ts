import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import {
  caughtUp,
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { until } from '../support/until.ts';

const programs = postgresPrograms() ?? '';
let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres(programs, { isDurable: true });
}, 60_000);
afterAll(() => server[Symbol.asyncDispose]());

const CALL = { timeoutMs: 1_000 };
const RENEW = { ...CALL, ttlMs: 20_000 };
const ACQUIRE = { ...CALL, ttlMs: 20_000, inbox: 'inbox' };

describe('a connection to PostgreSQL', () => {
  it('B-21 is made again if the network goes silent while the server is examined', async () => {
    await using proxy = await silentAt('server_examine');
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;
    const store = await openPostgresStore(url);
    proxy.silence();
    const granted = async () => {
      const [reply] = await store.leases.acquire([{ key: 'lease:a', holder: 'a' }], ACQUIRE);
      return reply?.kind === 'granted';
    };
    const fails = () => granted().catch(() => false);
    await until(async () => !(await fails()) && proxy.swallowed > 0, {
      what: 'the examination to be swallowed',
    });
    proxy.pass();
    await until(granted, { what: 'a grant over a new connection', deadlineMs: 15_000 });
    await store.close();
  });

  it('B-24 with several hosts leads to the primary, wherever that is, and follows a promotion', async () => {
    await using standby = await startPostgres(programs, { isDurable: true, standbyOf: server });
    const hosts = [standby, server].map(({ port }) => `127.0.0.1:${port}`).join(',');
    const url = `postgres://postgres@${hosts}/postgres?target_session_attrs=read-write`;
    const store = await openPostgresStore(url);
    expect(store.name).toBe(`postgres://${hosts}/postgres`);
    const [held] = await store.leases.acquire([{ key: 'lease:b', holder: 'a' }], ACQUIRE);
    expect(held).toMatchObject({ kind: 'granted' });
    await caughtUp(server, standby);
    await server.kill();
    await standby.promote();
    const renewed = async () => {
      const [reply] = await store.leases.renew([{ key: 'lease:b', holder: 'a' }], RENEW);
      return reply?.kind === 'renewed';
    };
    await until(renewed, { what: 'a renewal by the new primary', deadlineMs: 15_000 });
    const [other] = await store.leases.acquire([{ key: 'lease:c', holder: 'a' }], ACQUIRE);
    expect(other).toMatchObject({ kind: 'busy', reason: 'quarantine' });
    await store.close();
    await server.restart();
  }, 60_000);

  it('B-24 with several hosts, of which one hangs, does not wait for that one', async () => {
    await using standby = await startPostgres(programs, { isDurable: true, standbyOf: server });
    await standby.freeze();
    const hosts = [standby, server].map(({ port }) => `127.0.0.1:${port}`).join(',');
    const store = await openPostgresStore(`postgres://postgres@${hosts}/postgres`);
    const [held] = await store.leases.acquire([{ key: 'lease:d', holder: 'a' }], ACQUIRE);
    expect(held).toMatchObject({ kind: 'granted' });
    await store.close();
    await standby.thaw();
  }, 60_000);

  it('B-24 with several hosts and no primary says what each of them answers', async () => {
    await using standby = await startPostgres(programs, { isDurable: true, standbyOf: server });
    const url = `postgres://postgres@127.0.0.1:${standby.port},127.0.0.1:1/postgres`;
    await expect(openPostgresStore(url)).rejects.toThrow(/standby in recovery; .*ECONNREFUSED/);
  }, 60_000);
});

/** A proxy that, once told so, ends all connections, and swallows everything from a text on. */
async function silentAt(text: string) {
  const sockets = new Set<Socket>();
  let isArmed = false;
  let swallowed = 0;
  const proxy = createServer((client) => {
    const upstream = connect(server.port, '127.0.0.1');
    let isSilent = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        for (const other of [client, upstream]) other.destroy();
      });
    }
    client.on('data', (bytes) => {
      if (isArmed && bytes.includes(text)) {
        isSilent = true;
        swallowed += 1;
      }
      if (!isSilent) upstream.write(bytes);
    });
    upstream.on('data', (bytes) => isSilent || client.write(bytes));
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    get swallowed() {
      return swallowed;
    },
    silence() {
      isArmed = true;
      for (const socket of sockets) socket.destroy();
    },
    pass() {
      isArmed = false;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, 'close');
    },
  };
}
