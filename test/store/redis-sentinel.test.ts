import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Link } from '../../src/store/redis/client/link.ts';
import { sentinelDialer } from '../../src/store/redis/topology/sentinel-set.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const list = (...texts: string[]) => `*${texts.length}\r\n${texts.map(bulk).join('')}`;

/** A server that speaks Redis as far as it is told to. */
class Stand {
  connections = 0;
  questions = 0;
  readonly sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(answer: (request: string) => string) {
    this.#server = createServer((socket) => {
      this.connections++;
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.sockets.delete(socket));
      socket.on('data', (chunk) => {
        this.questions++;
        socket.write(answer(chunk.toString()));
      });
    });
  }

  async listening(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  stop(): void {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
  }
}

const stands: Stand[] = [];
afterEach(() => {
  for (const stand of stands.splice(0)) stand.stop();
});

async function stand(answer: (request: string) => string): Promise<Stand> {
  const one = await new Stand(answer).listening();
  stands.push(one);
  return one;
}

const primary = () => stand(() => bulk('role:master\r\n'));

interface Said {
  port: number;
  /** Absent from the reply where it is undefined. */
  epoch?: number | undefined;
}

/** A sentinel that says what it is told to; both questions come in one write. */
function sentinel(said: () => Said): Promise<Stand> {
  return stand(() => {
    const { port, epoch } = said();
    const number = epoch === undefined ? [] : ['config-epoch', String(epoch)];
    return list('name', 'main', ...number, 'quorum', '2') + list('127.0.0.1', String(port));
  });
}

async function dial(sentinels: readonly Stand[], clock: FakeClock, count = 1) {
  const endpoints = sentinels.map(({ port }) => ({ host: '127.0.0.1', port }));
  const about = { kind: 'sentinel', name: 'redis+sentinel://stand', primaryName: 'main' } as const;
  const address = { ...about, endpoints, socketPath: '', credentials: {}, sentinelCredentials: {} };
  const dialer = sentinelDialer(address, clock);
  const ends: string[] = [];
  const links: Link[] = [];
  for (let i = 0; i < count; i++) {
    const signal = new AbortController().signal;
    links.push(await dialer.dial({ timeoutMs: 5_000, signal, onEnd: (why) => ends.push(why) }));
  }
  return { links, ends };
}

/** Lets the watch ask so many times. */
async function watch(clock: FakeClock, sentinels: readonly Stand[], times: number): Promise<void> {
  const asked = () => sentinels.reduce((sum, { questions }) => sum + questions, 0);
  for (let i = 0; i < times; i++) {
    const before = asked();
    await clock.advance(1_000);
    await expect.poll(asked).toBe(before + 1);
    // What the answer leads to has happened when the next turn of the event loop is over.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('sentinels', () => {
  it('K-16 are asked over one connection each, however many links there are and however long they last', async () => {
    const clock = new FakeClock();
    const { port } = await primary();
    const sentinels = [
      await sentinel(() => ({ port, epoch: 1 })),
      await sentinel(() => ({ port, epoch: 1 })),
    ];
    const any = vi.spyOn(AbortSignal, 'any');
    const { links, ends } = await dial(sentinels, clock, 3);
    await watch(clock, sentinels, 10);
    // What it makes of a signal that lives long is never freed.
    expect(any).not.toHaveBeenCalled();
    any.mockRestore();
    expect(sentinels.map(({ connections }) => connections)).toEqual([1, 1]);
    expect(ends).toEqual([]);
    for (const link of links) link.destroy();
    await expect.poll(() => sentinels.map(({ sockets }) => sockets.size)).toEqual([0, 0]);
  });

  it('K-16 end every link when they name another primary', async () => {
    const clock = new FakeClock();
    const { port } = await primary();
    const said: Said = { port, epoch: 1 };
    const one = await sentinel(() => said);
    const { ends } = await dial([one], clock, 2);
    await watch(clock, [one], 1);
    Object.assign(said, { port: (await primary()).port, epoch: 2 });
    await watch(clock, [one], 1);
    await expect.poll(() => ends).toHaveLength(2);
    expect(ends[0]).toMatch(/name another primary/);
  });

  it('K-16 an opinion without a number is older than any that has one', async () => {
    const clock = new FakeClock();
    const { port } = await primary();
    const said: Said = { port, epoch: 3 };
    const one = await sentinel(() => said);
    const { links, ends } = await dial([one], clock);
    Object.assign(said, { port: (await primary()).port, epoch: undefined });
    await watch(clock, [one], 2);
    expect(ends).toEqual([]);
    // And it does not make old opinions count again.
    Object.assign(said, { epoch: 2 });
    await watch(clock, [one], 2);
    expect(ends).toEqual([]);
    for (const link of links) link.destroy();
  });

  it('K-16 without numbers are believed where none has ever said one', async () => {
    const clock = new FakeClock();
    const { port } = await primary();
    const one = await sentinel(() => ({ port }));
    const { links } = await dial([one], clock);
    expect(links).toHaveLength(1);
    for (const link of links) link.destroy();
  });
});
