/**
 * A process that was stopped reads its sockets before its timers fire: when it wakes, nothing but a look at the clock says that its lease
 * is over. `clock.block` is that moment: time has passed, and no timer has run.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Resolve } from '../../../src/fleet/poll/http/connection-pool.ts';
import { HttpPoller } from '../../../src/fleet/poll/http/http-poller.ts';
import { selfSigned } from '../../support/self-signed.ts';
import { until } from '../../support/until.ts';
import { world } from '../../support/world.ts';

const TTL_MS = 3_000;
const closing: (() => unknown)[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const close of closing.splice(0).reverse()) await close();
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A target, one who polls it, and a clock on which the lease runs out while no timer does. */
async function polling(answer: Answer, resolve?: Resolve) {
  const { clock, actor } = world();
  const { take } = await actor();
  const seen: { path: string }[] = [];
  const onRequest: Answer = (request, response) => {
    seen.push({ path: request.url ?? '' });
    answer(request, response);
  };
  const poller = new HttpPoller({ clock, instanceId: 'me' }, { allow: ['loopback'] }, resolve);
  closing.push(() => poller.close());
  const start = async (url: string, id = 'a') => {
    const lease = await take(id, { ttl: TTL_MS });
    const { signal, fence } = lease;
    return {
      done: poller.poll({ id, url }, { signal, fence, assertHeld: () => lease.assertHeld() }),
    };
  };
  return { seen, start, onRequest, expire: () => clock.block(TTL_MS) };
}

const LOST = { code: 'LEASE_LOST', reason: 'expired' };

describe('B-06 after the deadline of its lease', () => {
  it('B-06 a poll does not follow a redirect', async () => {
    const { seen, start, onRequest, expire } = await polling((_, response) => {
      expire();
      response.writeHead(302, { location: '/next' }).end();
    });
    const port = await listen(createServer(onRequest));
    const { done } = await start(`http://127.0.0.1:${port}/first`);
    await expect(done).rejects.toMatchObject(LOST);
    expect(seen.map(({ path }) => path)).toEqual(['/first']);
  });

  it('B-06 a poll does not repeat a request whose kept connection was lost', async () => {
    const { seen, start, onRequest, expire } = await polling((request, response) => {
      if (request.url === '/kept') return response.end('ok');
      expire();
      return request.socket.destroy();
    });
    const port = await listen(createServer(onRequest));
    await (await start(`http://127.0.0.1:${port}/kept`, 'b')).done;
    const { done } = await start(`http://127.0.0.1:${port}/lost`);
    await expect(done).rejects.toMatchObject(LOST);
    expect(seen.map(({ path }) => path)).toEqual(['/kept', '/lost']);
  });

  it('B-06 a poll does not connect to an address that was resolved too late', async () => {
    const resolve: Resolve = (_, __, callback) => {
      expire();
      setImmediate(() => callback(null, [{ address: '127.0.0.1', family: 4 }]));
    };
    const { seen, start, onRequest, expire } = await polling((_, r) => r.end(), resolve);
    const server = createServer(onRequest);
    let connections = 0;
    server.on('connection', () => connections++);
    const port = await listen(server);
    const { done } = await start(`http://target.test:${port}/`);
    await expect(done).rejects.toMatchObject(LOST);
    expect([seen, connections]).toEqual([[], 0]);
  });

  it('B-06 a poll writes nothing to a connection that was made too late', async () => {
    const { start, expire } = await polling(() => {});
    let bytes = 0;
    let isClosed = false;
    const server = createTcpServer((socket) => {
      socket.on('data', (chunk) => {
        bytes += chunk.length;
      });
      socket.on('close', () => {
        isClosed = true;
      });
    });
    const port = await listen(server);
    const { done } = await start(`http://127.0.0.1:${port}/`);
    // The request was made, and the kernel has been asked for a connection.
    expire();
    await expect(done).rejects.toMatchObject(LOST);
    await until(() => isClosed, { what: 'the connection to end' });
    expect(bytes).toBe(0);
  });

  it('B-06 a poll writes no request to a connection whose TLS handshake was done too late', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    const { seen, start, onRequest, expire } = await polling((_, response) => response.end());
    const server = createHttpsServer(selfSigned(), onRequest);
    const securePort = await listen(server);
    let isClosed = false;
    const passOn = createTcpServer((socket) => {
      expire();
      const inner = connect(securePort, '127.0.0.1');
      inner.on('error', () => {});
      inner.on('close', () => {
        isClosed = true;
      });
      socket.pipe(inner).pipe(socket);
    });
    const { done } = await start(`https://127.0.0.1:${await listen(passOn)}/`);
    await expect(done).rejects.toMatchObject(LOST);
    await until(() => isClosed, { what: 'the connection to end' });
    expect(seen).toEqual([]);
  });

  it('B-06 a poll that waited for others to finish writes nothing to the connection it gets', async () => {
    const waiting: ServerResponse[] = [];
    const { seen, start, onRequest, expire } = await polling((_, response) =>
      waiting.push(response),
    );
    const port = await listen(createServer(onRequest));
    const url = `http://127.0.0.1:${port}/`;
    const others = Array.from({ length: 64 }, (_, i) => start(url, `other-${i}`));
    const before = await Promise.all(others);
    await until(() => seen.length === 64, { what: 'all connections to be in use' });
    const { done } = await start(`${url}late`);
    expire();
    for (const response of waiting) response.end('ok');
    await expect(done).rejects.toMatchObject(LOST);
    await Promise.all(before.map((other) => other.done));
    expect(seen.map(({ path }) => path)).not.toContain('/late');
  });
});

it('a poll over TLS keeps its connection for the next one', async () => {
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
  const { seen, start, onRequest } = await polling((_, response) => response.end('ok'));
  const server = createHttpsServer(selfSigned(), onRequest);
  let handshakes = 0;
  server.on('secureConnection', () => handshakes++);
  const url = `https://127.0.0.1:${await listen(server)}/`;
  for (const id of ['a', 'b'])
    expect(await (await start(url, id)).done).toMatchObject({ status: 200, size: 2 });
  expect([seen.length, handshakes]).toEqual([2, 1]);
});
