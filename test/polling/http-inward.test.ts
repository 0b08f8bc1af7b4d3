import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { Exchange } from '../../src/polling/http-exchange.ts';
import { httpPoll } from '../../src/polling/http-poll.ts';

// No test has a public address: the first answer is made to look as if it came from one.
vi.mock('../../src/polling/http-exchange.ts', async (original) => {
  const real = await original<typeof import('../../src/polling/http-exchange.ts')>();
  const exchange = async (wanted: Exchange) => {
    const answer = await real.exchange(wanted);
    return { ...answer, isFromOutside: wanted.url.pathname === '/public' };
  };
  return { ...real, exchange };
});

const server = createServer((request, response) => {
  if (request.url === '/end') response.end('secret');
  else response.writeHead(302, { location: '/end' }).end();
});

afterEach(() => {
  server.close();
  server.closeAllConnections();
});

it('a redirect from a public address never leads to one that is allowed only besides', async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const parts = { clock: systemClock, instanceId: 'me' };
  const poll = httpPoll({ allow: ['loopback'] }, parts);
  const held = { fence: 1, signal: new AbortController().signal };
  expect(await poll({ id: 'a', url: `${url}/inside` }, held)).toMatchObject({ status: 200 });
  await expect(poll({ id: 'b', url: `${url}/public` }, held)).rejects.toMatchObject({
    code: 'ADDRESS_REFUSED',
    kind: 'loopback',
  });
  poll.close();
});
