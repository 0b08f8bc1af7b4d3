import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import { HttpPoller } from '../../../src/fleet/poll/http/http-poller.ts';

/** No test has a public address. This one is loopback to the dialer, which may reach it, and public to all who ask what it is. */
const PUBLIC = '127.0.0.2';

vi.mock('../../../src/fleet/poll/http/addresses.ts', async (original) => {
  const real = await original<typeof import('../../../src/fleet/poll/http/addresses.ts')>();
  const isInside = (address = '') => address !== PUBLIC && real.isInside(address);
  return { ...real, isInside };
});

const held = { fence: 1, signal: new AbortController().signal, assertHeld: () => {} };
const refused = { code: 'ADDRESS_REFUSED', kind: 'loopback' };
const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

function poll() {
  const made = new HttpPoller({ clock: systemClock, instanceId: 'me' }, { allow: ['loopback'] });
  closing.push(() => made.close());
  return made.poll;
}

async function listen(server: Server | TcpServer, host: string): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  closing.push(() => server.close());
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}

/** What only this host can reach; `hits` are the requests that got there. */
async function inside(): Promise<{ url: string; hits: string[] }> {
  const hits: string[] = [];
  const server = createServer((request, response) => {
    hits.push(request.url ?? '');
    response.setHeader('connection', 'close');
    if (request.url === '/moved') response.writeHead(302, { location: '/end' });
    response.end();
  });
  return { url: await listen(server, '127.0.0.1'), hits };
}

/** A public server; `answer` is called for each request, with its number on the connection. */
function outside(answer: (socket: Socket, nth: number) => void): Promise<string> {
  const server = createTcpServer((socket) => {
    let requests = 0;
    socket.on('error', () => {});
    socket.on('data', () => answer(socket, ++requests));
    closing.push(() => socket.destroy());
  });
  return listen(server, PUBLIC);
}

/** Resets the connection right behind the redirect: its address cannot be asked for any more when the answer is read. */
function redirectAndReset(socket: Socket, location: string): void {
  const head = `HTTP/1.1 302 Found\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`;
  socket.write(head, () => socket.resetAndDestroy());
}

it('a redirect from a public address never leads into an allowed zone', async () => {
  const { url, hits } = await inside();
  const redirect = `HTTP/1.1 302 Found\r\nlocation: ${url}/end\r\ncontent-length: 0\r\n\r\n`;
  const from = await outside((socket) => socket.write(redirect));
  const http = poll();
  expect(await http({ id: 'a', url: `${url}/moved` }, held)).toMatchObject({ status: 200 });
  expect(hits).toEqual(['/moved', '/end']);
  await expect(http({ id: 'b', url: from }, held)).rejects.toMatchObject(refused);
  expect(hits).toHaveLength(2);
});

it('a public server that redirects and resets the connection is still public', async () => {
  const { url, hits } = await inside();
  const from = await outside((socket) => redirectAndReset(socket, `${url}/end`));
  const http = poll();
  for (let id = 0; id < 20; id++)
    await expect(http({ id: `t${id}`, url: from }, held)).rejects.toBeDefined();
  expect(hits).toEqual([]);
});

it('a kept connection to a public server stays public when it is used again', async () => {
  const { url, hits } = await inside();
  const from = await outside((socket, nth) => {
    if (nth === 1) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    else redirectAndReset(socket, `${url}/end`);
  });
  const http = poll();
  expect(await http({ id: 'a', url: from }, held)).toMatchObject({ status: 200 });
  await expect(http({ id: 'a', url: from }, held)).rejects.toBeDefined();
  expect(hits).toEqual([]);
});
