import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { within } from './until.ts';

/** One connection, on which a test writes what no proper client would. */
export interface RawClient {
  readonly socket: Socket;
  /** What has come so far. */
  text(): string;
  write(text: string): void;
  /** All that came until the other side ended the connection; an error where it does not. */
  ended(deadlineMs?: number): Promise<string>;
}

export async function rawClient(port: number, text = ''): Promise<RawClient> {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  // To be cut off is what is tested.
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await once(socket, 'connect');
  if (text !== '') socket.write(text);
  return {
    socket,
    text: () => received,
    write: (more) => socket.write(more),
    async ended(deadlineMs = 5_000) {
      await within(deadlineMs, closed);
      return received;
    },
  };
}

/** A request as it goes over the wire. */
export function rawRequest(line: string, headers: Record<string, string>, body = ''): string {
  const lines = Object.entries({ Host: 'localhost', ...headers });
  return `${line} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
}
