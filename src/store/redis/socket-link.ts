/**
 * A connection to one Redis, and nothing more: each command is sent once, in the turn of the event loop in which it was
 * asked for, and answered in order. It is never sent later, never sent again, and the connection is never made anew
 * behind anybody's back: whoever holds a lease has to know of all that.
 */
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { systemClock } from '../../base/clock.ts';
import type { Attempt, Credentials, Endpoint, Link, MessageListener } from './link.ts';
import { ErrorReply, encodeCommand, type Reply, ReplyReader } from './wire.ts';

/** How long a silent connection may be before the system asks whether the other side is still there. */
const KEEP_ALIVE_MS = 5_000;

/** How many callers that have been answered are kept at most before they are taken away. */
const MOST_ANSWERED = 1_024;

/** The connection had ended before the command was sent. */
export class UnsentError extends Error {}

/** Connects, and is let in. */
export async function dialSocket(
  endpoint: Endpoint,
  credentials: Credentials,
  attempt: Attempt,
): Promise<Link> {
  attempt.signal.throwIfAborted();
  const socket = open(endpoint, credentials);
  const link = new SocketLink(socket, (why) => attempt.onEnd(why));
  attempt.signal.addEventListener('abort', link.destroy);
  try {
    await link.opened(credentials.tls === undefined ? 'connect' : 'secureConnect');
    await letIn(link, credentials);
    return link;
  } catch (error) {
    link.destroy();
    throw error;
  } finally {
    attempt.signal.removeEventListener('abort', link.destroy);
  }
}

function open({ host, port }: Endpoint, { tls }: Credentials): Socket {
  // Not the address that a name was found at, but the name, is what a certificate vouches for.
  const servername = isIP(host) === 0 ? { servername: host } : {};
  const socket =
    tls === undefined ? connect({ host, port }) : connectTls({ host, port, ...servername, ...tls });
  return socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
}

async function letIn(link: Link, { username, password, database }: Credentials): Promise<void> {
  if (password !== undefined)
    await link.send(['AUTH', ...(username === undefined ? [] : [username]), password]);
  if (database !== undefined && database !== 0) await link.send(['SELECT', String(database)]);
}

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

class SocketLink implements Link {
  readonly #socket: Socket;
  readonly #waiting: Waiting[] = [];
  /** How many of those at the front have been answered: taken away some at a time, not one by one. */
  #answered = 0;
  readonly #listeners = new Map<string, MessageListener>();
  /** What has been asked for in this turn. */
  #unwritten = '';
  #end: Error | null = null;

  constructor(socket: Socket, onEnd: (why: string) => void) {
    this.#socket = socket;
    const reader = new ReplyReader((reply) => this.#hear(reply));
    socket.on('data', (chunk: Buffer) => {
      try {
        reader.feed(chunk);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    const ended = (error: Error) => {
      if (this.#end !== null) return;
      this.#fail(error);
      onEnd(error.message || (error as NodeJS.ErrnoException).code || error.name);
    };
    socket.on('error', (error) => ended(error));
    socket.on('close', () => ended(new Error('the connection was closed')));
  }

  /** Resolves with the event that says that it is open. */
  opened(event: 'connect' | 'secureConnect'): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve: () => resolve(), reject });
      this.#socket.once(event, () => this.#hear(null));
    });
  }

  send(args: readonly string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#end !== null) {
        reject(new UnsentError(this.#end.message));
        return;
      }
      this.#waiting.push({ resolve, reject });
      if (this.#unwritten === '') this.#schedule();
      this.#unwritten += encodeCommand(args);
    });
  }

  async subscribe(channel: string, listener: MessageListener): Promise<void> {
    this.#listeners.set(channel, listener);
    await this.send(['SUBSCRIBE', channel]);
  }

  async unsubscribe(channel: string): Promise<void> {
    this.#listeners.delete(channel);
    await this.send(['UNSUBSCRIBE', channel]);
  }

  readonly destroy = (): void => {
    if (this.#end !== null) return;
    this.#fail(new Error('the connection was given up'));
    this.#socket.destroy();
  };

  /**
   * What is asked for alone goes out with the end of this turn. Where others wait for an answer already, it goes with whatever else the
   * input of this turn leads to: a write, and reading it at the other end, costs more than most commands.
   */
  #schedule(): void {
    const isAlone = this.#waiting.length - this.#answered === 1;
    // Sockets live in the system's time, whatever clock their user has.
    if (isAlone) systemClock.soon(this.#write);
    else systemClock.afterInput(this.#write);
  }

  readonly #write = (): void => {
    const text = this.#unwritten;
    this.#unwritten = '';
    if (this.#end === null) this.#socket.write(text);
  };

  #hear(reply: Reply): void {
    if (this.#listeners.size > 0 && Array.isArray(reply) && reply[0] === 'message') {
      const [, channel, message] = reply as [string, string, string];
      this.#listeners.get(channel)?.(message, channel);
      return;
    }
    const waiting = this.#waiting[this.#answered];
    // An answer to nothing: whoever counts wrong must not give one caller's answer to another.
    if (waiting === undefined) {
      this.#socket.destroy(new Error('an answer came that nobody had asked for'));
      return;
    }
    this.#answered++;
    if (this.#answered === this.#waiting.length || this.#answered >= MOST_ANSWERED) {
      this.#waiting.splice(0, this.#answered);
      this.#answered = 0;
    }
    if (reply instanceof ErrorReply) waiting.reject(reply);
    else waiting.resolve(reply);
  }

  #fail(error: Error): void {
    this.#end = error;
    const waiting = this.#waiting.splice(0).slice(this.#answered);
    this.#answered = 0;
    for (const { reject } of waiting) reject(error);
  }
}
