import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import { ConnectionPool, type Resolve } from '../../../src/fleet/poll/http/connection-pool.ts';
import type { HttpPollOptions } from '../../../src/fleet/poll/http/http-options.ts';
import { HttpPoller, redirectedTo } from '../../../src/fleet/poll/http/http-poller.ts';
import { until } from '../../support/until.ts';

const closing: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function poll(options: HttpPollOptions = { allow: ['loopback'] }, resolve?: Resolve) {
  const made = new HttpPoller({ clock: systemClock, instanceId: 'me-1-00' }, options, resolve);
  closing.push(() => made.close());
  return Object.assign(made.poll, { forget: (id: string) => made.forget(id) });
}

async function listening<S extends Server | TcpServer>(server: S, host = '127.0.0.1'): Promise<S> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return server;
}

function portOf(server: Server | TcpServer): number {
  return (server.address() as AddressInfo).port;
}

/** A server for the length of a test; gives its address. */
async function serve(listener: RequestListener): Promise<string> {
  const server = await listening(createServer(listener));
  closing.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return `http://127.0.0.1:${portOf(server)}`;
}

async function serveTcp(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    onConnection(socket);
  });
  await listening(server);
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${portOf(server)}`;
}

function held(fence = 7, signal = new AbortController().signal) {
  return { fence, signal, assertHeld: () => {} };
}

describe('a poll over HTTP', () => {
  it('says status, size and latency, and sends the instance and the fence', async () => {
    let headers: Record<string, unknown> = {};
    const url = await serve((request, response) => {
      headers = { method: request.method, ...request.headers };
      response.end('hello');
    });
    const result = await poll()({ id: 'a', url }, held(42));
    expect(result).toMatchObject({ status: 200, size: 5, changed: null, truncated: false });
    expect(result.latencyMs).toBeGreaterThan(0);
    expect(result.hash).toMatch(/^[0-9a-f]{64}$/);
    expect(result).not.toHaveProperty('finalUrl');
    expect(headers).toMatchObject({
      method: 'GET',
      'holdfast-fence': '42',
      'accept-encoding': 'identity',
      'user-agent': expect.stringMatching(/^holdfast\/\d+\.\d+\.\d+\S* \(me-1-00\)$/),
    });
  });

  it.each([204, 400, 404, 429, 500, 503])('takes status %i for an answer', async (status) => {
    const url = await serve((_, response) => response.writeHead(status).end());
    expect(await poll()({ id: 'a', url }, held())).toMatchObject({ status });
  });

  it('uses its connections again', async () => {
    const ports = new Set<number | undefined>();
    const url = await serve((request, response) => {
      ports.add(request.socket.remotePort);
      response.end('x');
    });
    const ask = poll();
    for (let i = 0; i < 5; i++) await ask({ id: `t${i}`, url }, held());
    expect(ports.size).toBe(1);
  });

  it('does not fail for an idle connection that the server closed', async () => {
    let connections = 0;
    const url = await serveTcp((socket) => {
      const mine = ++connections;
      socket.on('data', () => {
        // The first connection answers once, and breaks with the next request.
        if (mine === 1 && socket.bytesWritten > 0) socket.resetAndDestroy();
        else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx');
      });
    });
    const ask = poll();
    await ask({ id: 'a', url }, held());
    expect(await ask({ id: 'a', url }, held())).toMatchObject({ status: 200, changed: false });
    expect(connections).toBe(2);
  });
});

describe('change', () => {
  it('is told by the ETag, and 304 means that there is none', async () => {
    let etag = '"1"';
    const asked: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      asked.push(request.headers['if-none-match']);
      const isSame = request.headers['if-none-match'] === etag;
      response.writeHead(isSame ? 304 : 200, { etag }).end(isSame ? undefined : `v${etag}`);
    });
    const ask = poll();
    const results = [];
    for (const tag of ['"1"', '"1"', '"2"', '"2"']) {
      etag = tag;
      results.push(await ask({ id: 'a', url }, held()));
    }
    expect(results.map(({ status, changed }) => [status, changed])).toEqual([
      [200, null],
      [304, false],
      [200, true],
      [304, false],
    ]);
    expect(asked).toEqual([undefined, '"1"', '"1"', '"2"']);
    expect(results[3]).toMatchObject({ etag: '"2"', hash: results[2]?.hash, size: 0 });
  });

  it('is told by Last-Modified where there is no ETag', async () => {
    const modified = 'Thu, 01 Jan 2026 00:00:00 GMT';
    const url = await serve((request, response) => {
      const isSame = request.headers['if-modified-since'] === modified;
      response.writeHead(isSame ? 304 : 200, { 'last-modified': modified }).end();
    });
    const ask = poll();
    await ask({ id: 'a', url }, held());
    expect(await ask({ id: 'a', url }, held())).toMatchObject({ status: 304, changed: false });
  });

  it('is told by the body where there is no tag', async () => {
    let body = 'one';
    const url = await serve((_, response) => response.end(body));
    const ask = poll();
    const changes = [];
    for (body of ['one', 'one', 'two', 'one'])
      changes.push((await ask({ id: 'a', url }, held())).changed);
    expect(changes).toEqual([null, false, true, true]);
  });

  it('is none where another tag stands for the same bytes', async () => {
    let tag = 0;
    const url = await serve((_, response) =>
      response.writeHead(200, { etag: `"${++tag}"` }).end('same'),
    );
    const ask = poll();
    await ask({ id: 'a', url }, held());
    expect(await ask({ id: 'a', url }, held())).toMatchObject({ changed: false, etag: '"2"' });
  });

  it('is told by the tag where the body was too long to be read', async () => {
    let tag = 0;
    const url = await serve((_, response) =>
      response.writeHead(200, { etag: `"${++tag}"` }).end('x'.repeat(1_000)),
    );
    const ask = poll({ allow: ['loopback'], maxBytes: 10 });
    await ask({ id: 'a', url }, held());
    expect(await ask({ id: 'a', url }, held())).toMatchObject({ changed: true, truncated: true });
  });

  it('does not follow from an error page, and is compared with the answer before it', async () => {
    let status = 200;
    const url = await serve((_, response) => response.writeHead(status).end(`${status}`));
    const ask = poll();
    const changes = [];
    for (status of [200, 500, 200]) changes.push((await ask({ id: 'a', url }, held())).changed);
    expect(changes).toEqual([null, null, false]);
  });

  it('is not told by a 304 of a URL that was not requested before', async () => {
    let place = '/one';
    const url = await serve((request, response) => {
      if (request.url === '/') response.writeHead(302, { location: place }).end();
      else if (request.url === '/one') response.writeHead(200, { etag: '"1"' }).end('one');
      else response.writeHead(304).end();
    });
    const ask = poll();
    await ask({ id: 'a', url }, held());
    place = '/two';
    expect(await ask({ id: 'a', url }, held())).toMatchObject({ status: 304, changed: null });
  });

  it('is of each target on its own, and is not known after its URL has changed or it was forgotten', async () => {
    const url = await serve((request, response) => response.end(request.url));
    const ask = poll();
    const changed = async (id: string, path: string) =>
      (await ask({ id, url: url + path }, held())).changed;
    expect(await changed('a', '/1')).toBeNull();
    expect(await changed('b', '/1')).toBeNull();
    expect(await changed('a', '/1')).toBe(false);
    expect(await changed('a', '/2')).toBeNull();
    ask.forget('a');
    expect(await changed('a', '/2')).toBeNull();
    expect(await changed('b', '/1')).toBe(false);
  });
});

describe('a body', () => {
  it('without end is read up to the limit, and the connection dropped', async () => {
    let isClosed = false;
    const url = await serve((_, response) => {
      const more = () => {
        while (response.write('x'.repeat(10_000)));
      };
      response.on('drain', more).on('close', () => {
        isClosed = true;
      });
      more();
    });
    const result = await poll()({ id: 'a', url }, held());
    expect(result).toMatchObject({ status: 200, truncated: true, size: 1_048_576 });
    await until(() => isClosed, { what: 'the connection to be dropped' });
  });

  it.each([
    [5, 5, false],
    [4, 4, true],
    [0, 0, true],
  ])('of 5 bytes with a limit of %i is %i long', async (maxBytes, size, truncated) => {
    const url = await serve((_, response) => response.end('12345'));
    const ask = poll({ allow: ['loopback'], maxBytes });
    expect(await ask({ id: 'a', url }, held())).toMatchObject({ size, truncated });
  });

  it('that breaks off is an error', async () => {
    const url = await serveTcp((socket) =>
      socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx')),
    );
    await expect(poll()({ id: 'a', url }, held())).rejects.toMatchObject({ code: 'POLL_FAILED' });
  });
});

describe('an error', () => {
  it('is a request without an answer, and says no secrets', async () => {
    const server = await listening(createTcpServer());
    const port = portOf(server);
    await new Promise((resolve) => server.close(resolve));
    const url = `http://user:canary@127.0.0.1:${port}/canary?canary#canary`;
    const failed = poll()({ id: 'a', url }, held());
    await expect(failed).rejects.toMatchObject({
      code: 'POLL_FAILED',
      url: `http://127.0.0.1:${port}`,
      why: 'ECONNREFUSED',
      message: expect.not.stringContaining('canary'),
    });
  });

  it.each<[string, (socket: Socket) => void]>([
    ['a reset', (socket) => socket.resetAndDestroy()],
    ['an end', (socket) => socket.end()],
    ['something that is not HTTP', (socket) => socket.end('hello\r\n\r\n')],
    [
      'another protocol',
      (socket) =>
        socket.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
    ],
  ])('is %s instead of an answer', async (_, act) => {
    const url = await serveTcp((socket) => socket.on('data', () => act(socket)));
    await expect(poll()({ id: 'a', url }, held())).rejects.toMatchObject({ code: 'POLL_FAILED' });
  });

  it.each([
    [undefined, 'no url'],
    ['nonsense canary', 'no URL'],
    ['file:///canary', 'http and https'],
    ['http://user:%zz@127.0.0.1/canary', ''],
  ])('is a URL that can not be asked for: %s', async (url, why) => {
    const failed = poll()({ id: 'a', url }, held());
    await expect(failed).rejects.toMatchObject({
      code: 'POLL_FAILED',
      message: expect.stringContaining(why),
    });
    await expect(failed).rejects.not.toThrow('canary');
  });
});

describe('a signal', () => {
  it('that is aborted already lets nothing be sent', async () => {
    let requests = 0;
    const url = await serve((_, response) => {
      requests++;
      response.end();
    });
    const reason = new Error('lost');
    await expect(poll()({ id: 'a', url }, held(1, AbortSignal.abort(reason)))).rejects.toBe(reason);
    expect(requests).toBe(0);
  });

  it.each<[string, RequestListener]>([
    ['before the answer', () => {}],
    ['in the middle of the body', (_, response) => void response.write('x')],
  ])('ends a poll at once, %s', async (_, listener) => {
    let isAsked = false;
    let isClosed = false;
    const url = await serve((request, response) => {
      isAsked = true;
      response.on('close', () => {
        isClosed = true;
      });
      listener(request, response);
    });
    const stop = new AbortController();
    const reason = new Error('lost');
    const polled = poll()({ id: 'a', url }, held(1, stop.signal));
    const outcome = polled.catch((error: unknown) => error);
    await until(() => isAsked, { what: 'the request' });
    stop.abort(reason);
    expect(await outcome).toBe(reason);
    await until(() => isClosed, { what: 'the connection to be dropped' });
  });

  it('ends a poll whose name is still being resolved', async () => {
    const ask = poll({}, () => {});
    const stop = new AbortController();
    const polled = ask({ id: 'a', url: 'http://h/' }, held(1, stop.signal));
    const outcome = polled.catch((error: unknown) => error);
    stop.abort('lost');
    expect(await outcome).toBe('lost');
  });
});

describe('a redirect', () => {
  it('is followed, without credentials, fence or tags for another origin', async () => {
    const heard: Record<string, unknown>[] = [];
    const other = await serve((request, response) => {
      heard.push(request.headers);
      response.writeHead(200, { etag: '"x"' }).end('there');
    });
    const url = await serve((request, response) => {
      heard.push(request.headers);
      const location = request.url === '/' ? '/next' : `${other}/end?q=1#part`;
      response.writeHead(302, { location }).end('elsewhere');
    });
    const ask = poll();
    const withName = url.replace('//', '//user:secret@');
    const result = await ask({ id: 'a', url: withName }, held(7));
    expect(result).toMatchObject({ status: 200, size: 5, finalUrl: `${other}/end?q=1` });
    expect(
      heard.map((headers) => [headers.authorization !== undefined, headers['holdfast-fence']]),
    ).toEqual([
      [true, '7'],
      [true, '7'],
      [false, undefined],
    ]);
    await ask({ id: 'a', url: withName }, held(7));
    expect(heard.map((headers) => headers['if-none-match'])).toEqual([
      ...[undefined, undefined, undefined],
      ...[undefined, undefined, '"x"'],
    ]);
  });

  it('without a place to go to is an answer', async () => {
    const url = await serve((_, response) => response.writeHead(302).end());
    expect(await poll()({ id: 'a', url }, held())).toMatchObject({ status: 302, changed: null });
  });

  it('is followed five times, not more', async () => {
    let requests = 0;
    const url = await serve((request, response) => {
      requests++;
      const left = Number(request.url?.slice(1));
      if (left === 0) response.end('there');
      else response.writeHead(307, { location: `/${left - 1}` }).end();
    });
    expect(await poll()({ id: 'a', url: `${url}/5` }, held())).toMatchObject({ status: 200 });
    requests = 0;
    await expect(poll()({ id: 'a', url: `${url}/6` }, held())).rejects.toThrow('5 redirects');
    expect(requests).toBe(6);
  });

  it.each([
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[::ffff:169.254.169.254]/',
    'http://0.0.0.0/',
    'http://[::]/',
  ])('to %s is refused', async (location) => {
    const url = await serve((_, response) => response.writeHead(301, { location }).end());
    await expect(poll()({ id: 'a', url }, held())).rejects.toMatchObject({
      code: 'ADDRESS_REFUSED',
    });
  });

  it.each(['file:///etc/passwd', 'ftp://h/', 'javascript:1', 'http://[', 'data:text/plain,x'])(
    'to %s is refused',
    async (location) => {
      const url = await serve((_, response) => response.writeHead(301, { location }).end());
      await expect(poll()({ id: 'a', url }, held())).rejects.toMatchObject({
        code: 'POLL_FAILED',
        why: expect.stringContaining('redirects to'),
      });
    },
  );

  it('does not lead out of encryption', () => {
    const from = new URL('https://h/a');
    expect(() => redirectedTo(from, 'http://h/a')).toThrow('from https to http');
    expect(redirectedTo(from, 'https://other/').href).toBe('https://other/');
    expect(redirectedTo(from, '//other/').href).toBe('https://other/');
    expect(redirectedTo(new URL('http://h/a'), 'https://h/').href).toBe('https://h/');
  });
});

describe('an address that is not allowed', () => {
  /** A server that must not be asked anything. */
  async function untouched(): Promise<{ port: number; connections: () => number }> {
    let count = 0;
    const url = await serveTcp(() => {
      count++;
    });
    return { port: Number(new URL(url).port), connections: () => count };
  }

  it.each([
    ...['127.0.0.1', '127.1', '2130706433', '0x7f.1', '0177.0.0.1', '127.0.0.1.', 'localhost'],
    ...['[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '0.0.0.0', '0', '[::]'],
  ])('is not connected to, written as %s', async (host) => {
    const { port, connections } = await untouched();
    const asked = poll({})({ id: 'a', url: `http://${host}:${port}/` }, held());
    await expect(asked).rejects.toMatchObject({ code: 'ADDRESS_REFUSED' });
    expect(connections()).toBe(0);
  });

  it('is named by its kind, with what to do about it', async () => {
    const asked = (url: string) => poll({})({ id: 'a', url }, held());
    await expect(asked('http://127.0.0.1/')).rejects.toThrow("allow: ['loopback']");
    await expect(asked('http://10.0.0.1/')).rejects.toThrow("allow: ['private']");
    await expect(asked('http://169.254.169.254/')).rejects.toThrow('never polled');
  });

  it('is passed over where a name has others', async () => {
    const resolve: Resolve = (_, __, callback) =>
      callback(null, [
        { address: '10.0.0.1', family: 4 },
        { address: '127.0.0.1', family: 4 },
        { address: 'fe80::1', family: 6 },
      ]);
    const pool = new ConnectionPool(new Set(['loopback'] as const), resolve);
    closing.push(() => pool.close());
    const { lookup } = pool.requestOptions(new URL('http://device.example/'), {
      isFresh: false,
      assertHeld: () => {},
    });
    const found: unknown[] = [];
    lookup?.('device.example', { all: true }, (...reply) => found.push(reply));
    lookup?.('device.example', {}, (...reply) => found.push(reply));
    expect(found).toEqual([
      [null, [{ address: '127.0.0.1', family: 4 }]],
      [null, '127.0.0.1', 4],
    ]);
  });

  it('is asked for once for a connection, by its name', async () => {
    let host: string | undefined;
    const url = await serve((request, response) => {
      host = request.headers.host;
      response.end('here');
    });
    const names: string[] = [];
    const resolve: Resolve = (name, _, callback) => {
      names.push(name);
      callback(null, [{ address: '127.0.0.1', family: 4 }]);
    };
    const named = url.replace('127.0.0.1', 'device.example');
    const ask = poll({ allow: ['loopback'] }, resolve);
    for (let i = 0; i < 3; i++)
      expect(await ask({ id: 'a', url: named }, held())).toMatchObject({ status: 200 });
    expect(names).toEqual(['device.example']);
    expect(host).toBe(new URL(named).host);
  });

  it('is not reached by a name that leads elsewhere the second time', async () => {
    const { port, connections } = await untouched();
    let calls = 0;
    const resolve: Resolve = (_, __, callback) => {
      const address = ++calls === 1 ? '10.0.0.1' : '127.0.0.1';
      callback(null, [{ address, family: 4 }]);
    };
    const ask = poll({}, resolve);
    for (let i = 0; i < 2; i++)
      await expect(
        ask({ id: 'a', url: `http://device.example:${port}/` }, held()),
      ).rejects.toMatchObject({ code: 'ADDRESS_REFUSED' });
    expect(calls).toBe(2);
    expect(connections()).toBe(0);
  });

  it('is refused where a name has none at all', async () => {
    const ask = poll({}, (_, __, callback) => callback(null, []));
    const asked = ask({ id: 'a', url: 'http://device.example/' }, held());
    await expect(asked).rejects.toMatchObject({ code: 'ADDRESS_REFUSED' });
  });

  it('is not reported for a name that cannot be resolved', async () => {
    const error = Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' });
    const ask = poll({}, (_, __, callback) => callback(error, []));
    await expect(ask({ id: 'a', url: 'http://device.example/' }, held())).rejects.toMatchObject({
      code: 'POLL_FAILED',
      why: 'ENOTFOUND',
    });
  });
});

describe('options', () => {
  it.each<[object, string]>([
    [{ allow: 'loopback' }, 'allow'],
    [{ allow: ['link-local'] }, 'allow'],
    [{ allow: ['constructor'] }, 'allow'],
    [{ maxBytes: -1 }, 'maxBytes'],
    [{ maxBytes: 1.5 }, 'maxBytes'],
    [{ maxByte: 1 }, 'maxByte'],
  ])('such as %j are refused', (options, field) => {
    expect(() => poll(options)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', field }));
  });
});
