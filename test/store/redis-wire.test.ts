import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { dialSocket, UnsentError } from '../../src/store/redis/socket-link.ts';
import { ErrorReply, encodeCommand, type Reply, ReplyReader } from '../../src/store/redis/wire.ts';
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
    fc.constantFrom('NOSCRIPT No matching script.', 'ERR').map((text) => new ErrorReply(text)),
    fc.array(tie('reply'), { maxLength: 5 }),
  ),
}));

describe('the language of Redis', () => {
  it('K-07 is read as it was written, in whatever pieces it arrives', () => {
    fc.assert(
      fc.property(fc.array(anyReply), fc.array(fc.integer({ min: 1, max: 7 })), (replies, cuts) => {
        const bytes = Buffer.from(replies.map(encodeReply).join(''));
        const heard: Reply[] = [];
        const reader = new ReplyReader((reply) => heard.push(reply));
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = cuts.length === 0 ? bytes.length : (cuts[i % cuts.length] ?? 1);
          reader.feed(bytes.subarray(at, at + size));
          at += size;
        }
        expect(heard).toEqual(replies);
      }),
    );
  });

  it('K-07 counts bytes, not characters, in commands', () => {
    expect(encodeCommand(['SET', 'ä', ''])).toBe('*3\r\n$3\r\nSET\r\n$2\r\nä\r\n$0\r\n\r\n');
  });

  it.each(['HTTP/1.1 400 Bad Request\r\n', '$x\r\n', ':1e400\r\n'])('K-07 %j is not it', (text) => {
    const reader = new ReplyReader(() => {});
    expect(() => reader.feed(Buffer.from(text))).toThrow();
  });
});

/** A server that answers as the test says, and a link to it. */
async function dialed(answer: (socket: Socket, request: string) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => {});
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
    server.close();
    await once(server, 'close');
  };
  return { link, ends, close };
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
    await expect.poll(() => ends).toEqual(['an answer came that nobody had asked for']);
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
});
