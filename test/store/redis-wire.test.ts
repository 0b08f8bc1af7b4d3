import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { REPLY_MOST_BYTES } from '../../src/store/port/limits.ts';
import { dialSocket, UnsentError } from '../../src/store/redis/client/socket-connection.ts';
import {
  encodeCommand,
  type Reply,
  ReplyError,
  ReplyReader,
} from '../../src/store/redis/client/wire.ts';
import fc from '../support/fast-check.ts';

/** A reply as a server writes it. */
function encodeReply(reply: Reply): string {
  if (reply === null) return '$-1\r\n';
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`;
  if (Array.isArray(reply)) return `*${reply.length}\r\n${reply.map(encodeReply).join('')}`;
  return `-${reply.message}\r\n`;
}

const { reply: anyReply } = fc.letrec<{ reply: Reply }>((tie) => ({
  reply: fc.oneof(
    { depthSize: 'small' },
    fc.string({ unit: 'grapheme' }),
    fc.maxSafeInteger(),
    fc.constant(null),
    fc.constantFrom('NOSCRIPT No matching script.', 'ERR').map((text) => new ReplyError(text)),
    fc.array(tie('reply'), { maxLength: 5 }),
  ),
}));

describe('the protocol of Redis', () => {
  it('K-07 is read as it was written, in whatever pieces it arrives', () => {
    fc.assert(
      fc.property(fc.array(anyReply), fc.array(fc.integer({ min: 1, max: 7 })), (replies, cuts) => {
        const bytes = Buffer.from(replies.map(encodeReply).join(''));
        const heard: Reply[] = [];
        const reader = new ReplyReader((reply) => heard.push(reply));
        // As a socket does: one buffer for all pieces, with remains of earlier ones behind each.
        const buffer = Buffer.alloc(bytes.length, '\r\n:1');
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = cuts.length === 0 ? bytes.length : (cuts[i % cuts.length] ?? 1);
          const read = bytes.copy(buffer, 0, at, at + size);
          reader.feed(buffer, read);
          at += read;
        }
        expect(heard).toEqual(replies);
      }),
    );
  });

  it('K-07 counts bytes, not characters, in commands', () => {
    expect(encodeCommand(['SET', 'ä', ''])).toBe('*3\r\n$3\r\nSET\r\n$2\r\nä\r\n$0\r\n\r\n');
  });

  it('B-03 a large reply costs time in proportion to its size, whatever the size of the pieces', () => {
    const text = 'x'.repeat(4 * 2 ** 20);
    const bytes = Buffer.from(encodeReply(['small', text]));
    const heard: Reply[] = [];
    const reader = new ReplyReader((reply) => heard.push(reply));
    const concat = vi.spyOn(Buffer, 'concat');
    for (let at = 0; at < bytes.length; at += 4_096) reader.feed(bytes.subarray(at, at + 4_096));
    const joined = concat.mock.results.reduce((sum, { value }) => sum + value.length, 0);
    concat.mockRestore();
    expect(heard).toEqual([['small', text]]);
    expect(joined).toBeLessThan(bytes.length);
  });

  it.each([
    [':9000000000000000000', 9e18],
    [':-9223372036854775808', -(2 ** 63)],
  ])('K-03 %s, the expiry of a foreign key, is a number like any other', (text, number) => {
    const heard: Reply[] = [];
    new ReplyReader((reply) => heard.push(reply)).feed(Buffer.from(`${text}\r\n`));
    expect(heard).toEqual([number]);
  });

  it('B-03 a value or a line that is too large is refused before it is read', () => {
    const value = Buffer.from(`$${REPLY_MOST_BYTES + 1}\r\nabc`);
    expect(() => new ReplyReader(() => {}).feed(value)).toThrow(/reads at most 67108864/);
    const reader = new ReplyReader(() => {});
    expect(() => reader.feed(Buffer.alloc(70_000, '+'))).toThrow(/a line of more than 65536 bytes/);
  });

  it.each(['HTTP/1.1 400 Bad Request\r\n', '$x\r\n', '$-2\r\n', ':1e400\r\n', ':1e20\r\n'])(
    'K-07 %j is not it',
    (text) => {
      const reader = new ReplyReader(() => {});
      expect(() => reader.feed(Buffer.from(text))).toThrow();
    },
  );
});

/** A server that answers as the test says, and a link to it. */
async function dialed(answer: (socket: Socket, request: string) => void) {
  /** How connections ended at the server's end. */
  const closed: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let how = 'closed';
    socket.on('error', (error: NodeJS.ErrnoException) => {
      how = error.code ?? '';
    });
    socket.on('close', () => closed.push(how));
    socket.on('data', (chunk) => answer(socket, chunk.toString()));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ends: string[] = [];
  const attempt = {
    timeoutMs: 5_000,
    signal: new AbortController().signal,
    onEnd: (why: string) => ends.push(why),
  };
  const link = await dialSocket({ host: '127.0.0.1', port }, {}, attempt);
  const close = async () => {
    link.destroy();
    for (const socket of sockets) socket.resume();
    server.close();
    await once(server, 'close');
  };
  return { link, ends, close, closed };
}

describe('a link over a socket', () => {
  it('K-07 sends what is asked for in one turn together, and answers in order', async () => {
    const requests: string[] = [];
    const { link, close } = await dialed((socket, request) => {
      requests.push(request);
      socket.write(':1\r\n-ERR no\r\n:3\r\n');
    });
    const replies = ['a', 'b', 'c'].map((word) => link.send([word]));
    expect(await Promise.allSettled(replies)).toMatchObject([
      { value: 1 },
      { reason: { name: 'ErrorReply', message: 'ERR no' } },
      { value: 3 },
    ]);
    expect(requests).toHaveLength(1);
    await close();
  });

  it('K-07 fails what is under way when it ends, and sends nothing afterwards', async () => {
    const { link, ends, close } = await dialed((socket) => socket.destroy());
    await expect(link.send(['PING'])).rejects.toThrow();
    expect(ends).toHaveLength(1);
    await expect(link.send(['PING'])).rejects.toBeInstanceOf(UnsentError);
    await close();
  });

  it('K-07 ends rather than give an answer to whom it does not belong', async () => {
    const { link, ends, close } = await dialed((socket) => socket.write(':1\r\n:2\r\n'));
    expect(await link.send(['PING'])).toBe(1);
    await expect.poll(() => ends).toEqual(['a reply came without a request']);
    await close();
  });

  it('K-10 hands messages to those who listen, between answers', async () => {
    const message = encodeReply(['message', 'news', 'hello']);
    const { link, close } = await dialed((socket, request) => {
      const confirmed = encodeReply(['subscribe', 'news', 1]);
      socket.write(request.includes('SUBSCRIBE') ? confirmed + message : `${message}+PONG\r\n`);
    });
    const heard: string[] = [];
    await link.subscribe('news', (text, channel) => heard.push(`${channel}: ${text}`));
    expect(await link.send(['PING'])).toBe('PONG');
    expect(heard).toEqual(['news: hello', 'news: hello']);
    await close();
  });

  it('B-01 a command whose time is over when it would be written is not written, and the others are', async () => {
    const requests: string[] = [];
    const { link, close } = await dialed((socket, request) => {
      requests.push(request);
      socket.write('+OK\r\n');
    });
    let isOver = false;
    const late = { isOver: () => isOver };
    const all = Promise.allSettled([
      link.send(['ASKING'], late),
      link.send(['late'], late),
      link.send(['early'], { isOver: () => false }),
    ]);
    // The event loop is blocked from here on, until its time is over.
    isOver = true;
    const unsent = { status: 'rejected', reason: expect.any(UnsentError) };
    expect(await all).toEqual([unsent, unsent, { status: 'fulfilled', value: 'OK' }]);
    expect(requests).toEqual([encodeCommand(['early'])]);
    await close();
  });

  it('B-01 a request without an answer is not left to the system: the connection is reset', async () => {
    const requests: string[] = [];
    const { link, close, closed } = await dialed((_, request) => requests.push(request));
    link.send(['acquire']).catch(() => {});
    await expect.poll(() => requests).toHaveLength(1);
    link.destroy();
    await expect.poll(() => closed).toEqual(['ECONNRESET']);
    await close();
  });

  it('B-01 what the system does not take waits here, and is never written when the link is given up', async () => {
    let heard = '';
    let isReading = false;
    const { link, close } = await dialed((socket, request) => {
      heard += request.replaceAll('x', '');
      if (!isReading) socket.pause();
    });
    const large = 'x'.repeat(2 ** 20);
    for (let i = 0; i < 32; i++) link.send(['SET', 'k', large]).catch(() => {});
    await expect.poll(() => heard).toContain('SET');
    const waits = link.send(['acquire']);
    await new Promise((resolve) => setImmediate(resolve));
    link.destroy();
    await expect(waits).rejects.toBeInstanceOf(UnsentError);
    isReading = true;
    await close();
    expect(heard).not.toContain('acquire');
  });

  it('K-07 a connection that owes no answer is closed, not reset', async () => {
    const { link, close, closed } = await dialed((socket) => socket.write('+PONG\r\n'));
    expect(await link.send(['PING'])).toBe('PONG');
    link.destroy();
    await expect.poll(() => closed).toEqual(['closed']);
    await close();
  });
});
