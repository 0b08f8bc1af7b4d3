import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FaultProxy } from '../../testing/fakes/fault-proxy.ts';
import { until } from '../support/until.ts';

/** Answers every byte with the same byte, and remembers what it was sent. */
class EchoServer {
  seen = '';
  readonly sockets = new Set<Socket>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        this.seen += chunk.toString('latin1');
        if (socket.writable) socket.write(chunk);
      });
      socket.on('end', () => socket.end());
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
    await once(this.#server, 'close');
  }
}

/** Half-closing, so that a test can tell "the proxy has read all I sent" from "I have gone". */
class Client {
  received = '';
  error: NodeJS.ErrnoException | undefined;
  isEnded = false;
  readonly socket: Socket;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    this.socket.on('data', (chunk) => {
      this.received += chunk.toString('latin1');
    });
    this.socket.on('end', () => {
      this.isEnded = true;
    });
    this.socket.on('error', (error) => {
      this.error = error;
    });
  }

  async connected(): Promise<this> {
    if (this.socket.connecting) await once(this.socket, 'connect');
    return this;
  }

  send(text: string): void {
    this.socket.write(text);
  }

  hears(text: string): Promise<unknown> {
    return until(() => this.received === text, { what: `the client to hear ${text}` });
  }
}

let server: EchoServer;
let proxy: FaultProxy;
const clients: Client[] = [];

beforeEach(async () => {
  server = new EchoServer();
  await server.listen();
  proxy = await FaultProxy.start({ target: { host: '127.0.0.1', port: server.port } });
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.socket.destroy();
  await proxy.close();
  await server.close();
});

async function join(): Promise<Client> {
  const client = new Client(proxy.port);
  clients.push(client);
  return await client.connected();
}

async function serverSees(text: string): Promise<void> {
  await until(() => server.seen === text, { what: `the server to see ${text}` });
}

/** The end of a stream comes after its bytes: when the proxy knows of it, it has read them all. */
async function proxyHasReadAllOf(client: Client): Promise<void> {
  const before = proxy.connections;
  client.socket.end();
  await until(() => proxy.connections === before - 1, { what: 'the proxy to see the end' });
}

/** A whole round trip of somebody else: what was on its way before has arrived or never will. */
async function roundTripElsewhere(): Promise<void> {
  const other = await join();
  other.send('.');
  await other.hears('.');
}

/** The client has more to send, and nobody takes it any more. */
async function stalled(client: Client): Promise<void> {
  let [waiting, looks] = [client.socket.writableLength, 0];
  const isStalled = () => {
    looks = client.socket.writableLength === waiting ? looks + 1 : 0;
    waiting = client.socket.writableLength;
    return looks === 20;
  };
  await until(isStalled, { what: 'the sender to stand still', deadlineMs: 15_000 });
  expect(client.socket.writableLength).toBeGreaterThan(0);
}

const MIB = 'x'.repeat(1024 * 1024);

describe('a fault proxy that passes', () => {
  it('carries bytes both ways and counts its connections', async () => {
    const first = await join();
    const second = await join();
    first.send('one');
    await first.hears('one');
    second.send('two');
    await second.hears('two');
    expect(proxy.connections).toBe(2);

    first.socket.destroy();
    await until(() => proxy.connections === 1, { what: 'the count to drop' });
    await until(() => server.sockets.size === 1, { what: 'the server to be told' });
  });

  it('carries more than any buffer holds, unharmed', async () => {
    const sent = Array.from({ length: 400_000 }, (_, index) => `${index},`).join('');
    const client = await join();
    client.send(sent);
    await until(() => client.received.length === sent.length, { what: 'all of it' });
    expect(client.received === sent).toBe(true);
  });

  it('makes the client wait for a server that does not read', async () => {
    const client = await join();
    client.send('a');
    await client.hears('a');
    for (const socket of server.sockets) socket.pause();
    for (let sent = 0; sent < 40; sent += 1) client.send(MIB);
    await stalled(client);
    for (const socket of server.sockets) socket.resume();
    await until(() => client.received.length === 1 + 40 * MIB.length, {
      what: 'all of it',
      deadlineMs: 15_000,
    });
  }, 20_000);

  it('lets the client go on sending when the server has said its last word', async () => {
    const client = await join();
    client.send('a');
    await client.hears('a');
    for (const socket of server.sockets) socket.end();
    await until(() => client.isEnded, { what: 'the end' });
    client.send('b');
    await serverSees('ab');
  });

  it('tells the client when the server hangs up', async () => {
    const client = await join();
    client.send('hello');
    await client.hears('hello');
    for (const socket of server.sockets) socket.end();
    await until(() => client.isEnded, { what: 'the end' });
  });

  it('resets the client when nobody listens behind it', async () => {
    await server.close();
    const client = await join();
    await until(() => client.socket.closed, { what: 'the connection to close' });
    expect(client.error?.code).toBe('ECONNRESET');
  });
});

describe('a half-open connection', () => {
  it('takes bytes and connections, and neither forwards, answers nor closes', async () => {
    const early = await join();
    early.send('a');
    await early.hears('a');

    await proxy.halfOpen();
    const late = await join();
    early.send('b');
    late.send('c');
    await proxyHasReadAllOf(early);
    await proxyHasReadAllOf(late);

    expect(server.seen).toBe('a');
    expect(server.sockets.size).toBe(2);
    expect([early.received, late.received]).toEqual(['a', '']);
    expect([early.isEnded, late.isEnded]).toEqual([false, false]);
  });

  it('does not tell the client that the server is gone', async () => {
    const client = await join();
    client.send('a');
    await client.hears('a');
    await proxy.halfOpen();
    await server.close();
    client.send('b');
    await proxyHasReadAllOf(client);
    expect(client.isEnded).toBe(false);
    expect(client.socket.closed).toBe(false);
  });

  it('stays silent after bytes were lost, also when the network is back', async () => {
    const client = await join();
    const marker = await join();
    await proxy.halfOpen();
    client.send('lost');
    await proxyHasReadAllOf(marker);
    await until(() => client.socket.bytesWritten === 4, { what: 'the bytes to leave' });
    await proxy.pass();
    client.send('later');
    await roundTripElsewhere();
    expect(server.seen).toBe('.');
    expect(client.received).toBe('');
    expect(client.socket.closed).toBe(false);
  });

  it('goes on after the network is back when nothing was lost', async () => {
    const client = await join();
    client.send('a');
    await client.hears('a');
    await proxy.halfOpen();
    await proxy.pass();
    client.send('b');
    await client.hears('ab');
  });

  it('that has lost bytes is cleared away when its client leaves', async () => {
    const [client, marker] = [await join(), await join()];
    await proxy.halfOpen();
    client.send('lost');
    await proxyHasReadAllOf(marker);
    await proxy.pass();
    await until(() => server.sockets.size === 1, { what: 'the marker to be cleared away' });
    client.socket.destroy();
    await until(() => server.sockets.size === 0, { what: 'the server to be told' });
  });

  it('is cleared away on the server once its client has left and the network is back', async () => {
    const client = await join();
    await until(() => server.sockets.size === 1, { what: 'the server to accept' });
    await proxy.halfOpen();
    await proxyHasReadAllOf(client);
    expect(server.sockets.size).toBe(1);
    await proxy.pass();
    await until(() => server.sockets.size === 0, { what: 'the server to be told' });
  });
});

describe('reset', () => {
  it('resets every open connection and lets new ones through', async () => {
    const [first, second] = [await join(), await join()];
    first.send('a');
    await first.hears('a');
    await until(() => proxy.connections === 2, { what: 'both to be accepted' });
    proxy.reset();
    await until(() => first.socket.closed && second.socket.closed, { what: 'both to close' });
    expect([first.error?.code, second.error?.code]).toEqual(['ECONNRESET', 'ECONNRESET']);
    expect(proxy.connections).toBe(0);
    await roundTripElsewhere();
  });
});

describe('refuse', () => {
  it('refuses new connections, keeps open ones, and takes new ones at the same port later', async () => {
    const open = await join();
    open.send('a');
    await open.hears('a');
    const { port } = proxy;

    await proxy.refuse();
    await expect(join()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    open.send('b');
    await open.hears('ab');

    await proxy.pass();
    expect(proxy.port).toBe(port);
    await roundTripElsewhere();
  });

  it('ends up as the last of several changes says, however close they are', async () => {
    await Promise.all([proxy.refuse(), proxy.pass(), proxy.refuse(), proxy.pass()]);
    await roundTripElsewhere();
    await Promise.all([proxy.pass(), proxy.refuse()]);
    await expect(join()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('delay', () => {
  it('delays both directions', async () => {
    const client = await join();
    client.send('a');
    await client.hears('a');
    await proxy.delay(40);
    const sentAt = performance.now();
    client.send('b');
    await serverSees('ab');
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(40);
    await client.hears('ab');
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(80);
  });

  it('keeps the order when it ends', async () => {
    const client = await join();
    const marker = await join();
    await proxy.delay(60);
    client.send('a');
    await proxyHasReadAllOf(marker);
    await proxy.pass();
    client.send('b');
    await roundTripElsewhere();
    await client.hears('ab');
    expect(server.seen).toBe('.ab');
  });

  it('takes no nonsense', () => {
    expect(() => proxy.delay(-1)).toThrow('delay(-1)');
    expect(() => proxy.delay(Number.NaN)).toThrow('delay(NaN)');
  });
});

describe('lost replies', () => {
  it('are never heard although the requests were carried out', async () => {
    const client = await join();
    client.send('a');
    await client.hears('a');
    await proxy.loseReplies();
    client.send('b');
    await serverSees('ab');
    await proxyHasReadAllOf(client);
    await until(() => server.sockets.size === 0, { what: 'the server to be done' });
    await proxy.pass();
    await roundTripElsewhere();
    expect(client.received).toBe('a');
  });

  it('leave a silent connection behind, not one whose replies belong to other requests', async () => {
    const client = await join();
    await proxy.loseReplies();
    client.send('a');
    await serverSees('a');
    // The echo of 'a' left the server before that of '.', which took the same way.
    await roundTripThatNobodyHears();
    await proxy.pass();
    client.send('b');
    await serverSees('a.b');
    await roundTripElsewhere();
    expect(client.received).toBe('');
  });

  async function roundTripThatNobodyHears(): Promise<void> {
    const other = await join();
    other.send('.');
    await serverSees('a.');
    await proxyHasReadAllOf(other);
    await until(() => server.sockets.size === 1, { what: 'the server to be done' });
  }
});

describe('held requests', () => {
  it('are carried out late, after their client has gone and moved on', async () => {
    await proxy.holdRequests();
    const client = await join();
    client.send('late');
    await proxyHasReadAllOf(client);
    client.socket.destroy();
    await proxy.pass();
    await roundTripElsewhere();
    expect(server.seen).toBe('.');

    proxy.releaseHeld();
    await serverSees('.late');
  });

  it('survive the reset of their connection', async () => {
    await proxy.holdRequests();
    const client = await join();
    const marker = await join();
    client.send('late');
    await proxyHasReadAllOf(marker);
    proxy.reset();
    await until(() => client.socket.closed, { what: 'the reset' });
    expect(server.seen).toBe('');
    proxy.releaseHeld();
    await serverSees('late');
    await until(() => server.sockets.size === 0, { what: 'the server to be told' });
  });

  it('go before what the same connection sends later, and are held again in the same mode', async () => {
    const [client, first, second] = [await join(), await join(), await join()];
    await proxy.holdRequests();
    client.send('a');
    await proxyHasReadAllOf(first);
    proxy.releaseHeld();
    await client.hears('a');

    client.send('b');
    await proxyHasReadAllOf(second);
    await proxy.pass();
    client.send('c');
    await roundTripElsewhere();
    expect(server.seen).toBe('a.');

    proxy.releaseHeld();
    await client.hears('abc');
  });

  it('beyond 16 MiB make the sender wait instead of filling the memory', async () => {
    const client = await join();
    await proxy.holdRequests();
    for (let sent = 0; sent < 40; sent += 1) client.send(MIB);
    await stalled(client);

    await proxy.pass();
    proxy.releaseHeld();
    await until(() => client.received.length === 40 * MIB.length, {
      what: 'all of it',
      deadlineMs: 15_000,
    });
  }, 20_000);
});

describe('close', () => {
  it('drops connections and frees the port for good', async () => {
    const client = await join();
    await proxy.holdRequests();
    client.send('held');
    await proxy.close();
    await until(() => client.socket.closed || client.isEnded, { what: 'the end' });
    await proxy.pass();
    await expect(join()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(server.seen).toBe('');
  });
});
