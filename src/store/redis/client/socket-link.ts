/**
 * A connection to one Redis, and nothing more: each command is sent once, in the turn of the event loop in which it was
 * asked for, and answered in order. It is never sent later, never sent again, and the connection is never made anew
 * behind anybody's back: whoever holds a lease has to know of all that.
 */
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { systemClock } from '../../../core/clock.ts';
import type { Attempt, Credentials, Deadline, Endpoint, Link, MessageListener } from './link.ts';
import { ErrorReply, encodeCommand, type Reply, ReplyReader } from './wire.ts';

/** How long a silent connection may be before the system asks whether the other side is still there. */
const KEEP_ALIVE_MS = 5_000;

/** How many callers that have been answered are kept at most before they are taken away. */
const MOST_ANSWERED = 1_024;

/** The connection, or the time of the request, had ended before the command was sent. */
export class UnsentError extends Error {}

export const TOO_LATE = 'the time for it was over before it could be sent';

/** Connects, and is let in. */
export async function dialSocket(
  endpoint: Endpoint,
  credentials: Credentials,
  attempt: Attempt,
): Promise<Link> {
  attempt.signal.throwIfAborted();
  const sockets = open(endpoint, credentials);
  const link = new SocketLink(sockets, (why) => attempt.onEnd(why));
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

/** What is written to and read from, and the TCP socket underneath: the same where nothing is encrypted. */
interface Sockets {
  readonly socket: Socket;
  readonly tcp: Socket;
}

function open({ host, port }: Endpoint, { tls }: Credentials): Sockets {
  const tcp = connect({ host, port }).setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
  if (tls === undefined) return { socket: tcp, tcp };
  // Not the address that a name was found at, but the name, is what a certificate vouches for.
  const servername = isIP(host) === 0 ? { servername: host } : {};
  // Over a socket of ours, because the one that TLS would make can not be reset.
  return { socket: connectTls({ host, ...servername, ...tls, socket: tcp }), tcp };
}

/**
 * Closes, and drops what the other side has not confirmed. After a plain close the system goes on sending that for
 * minutes, and the other side would carry it out then.
 */
export function reset(tcp: Socket): void {
  try {
    // Before it is connected nothing has been sent, and this would wait for the connection.
    if (!tcp.connecting && !tcp.destroyed) tcp.resetAndDestroy();
  } catch {
    // A socket of this host, not of a network: what was written to it has arrived.
  }
  tcp.destroy();
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

interface Unwritten {
  readonly text: string;
  readonly waiting: Waiting;
  readonly deadline: Deadline | undefined;
}

class SocketLink implements Link {
  readonly #socket: Socket;
  readonly #tcp: Socket;
  readonly #onEnd: (why: string) => void;
  readonly #waiting: Waiting[] = [];
  /** How many of those at the front have been answered: taken away some at a time, not one by one. */
  #answered = 0;
  readonly #listeners = new Map<string, MessageListener>();
  /** What has been asked for in this turn, or since the system takes no more. */
  #unwritten: Unwritten[] = [];
  #end: Error | null = null;

  constructor({ socket, tcp }: Sockets, onEnd: (why: string) => void) {
    this.#socket = socket;
    this.#tcp = tcp;
    this.#onEnd = onEnd;
    const reader = new ReplyReader((reply) => this.#hear(reply));
    socket.on('data', (chunk: Buffer) => {
      try {
        reader.feed(chunk);
      } catch (error) {
        this.#abandon(error as Error);
      }
    });
    socket.on('error', (error) => this.#ended(error));
    socket.on('close', () => this.#ended(new Error('the connection was closed')));
  }

  /** Resolves with the event that says that it is open. */
  opened(event: 'connect' | 'secureConnect'): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve: () => resolve(), reject });
      this.#socket.once(event, () => this.#hear(null));
    });
  }

  send(args: readonly string[], deadline?: Deadline): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#end !== null) {
        reject(new UnsentError(this.#end.message));
        return;
      }
      if (this.#unwritten.length === 0) this.#schedule();
      this.#unwritten.push({ text: encodeCommand(args), waiting: { resolve, reject }, deadline });
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
    const isAnswered = this.#waiting.length === this.#answered;
    this.#fail(new Error('the connection was given up'));
    this.#close(isAnswered);
  };

  /** Ends it because of what was read from it. */
  #abandon(error: Error): void {
    const isAnswered = this.#waiting.length === this.#answered;
    this.#ended(error);
    this.#close(isAnswered);
  }

  /** Where an answer is missing, its request may not have arrived yet: it must not arrive any more. */
  #close(isAnswered: boolean): void {
    if (!isAnswered) reset(this.#tcp);
    this.#socket.destroy();
  }

  #ended(error: Error): void {
    if (this.#end !== null) return;
    this.#fail(error);
    this.#onEnd(error.message || (error as NodeJS.ErrnoException).code || error.name);
  }

  /**
   * What is asked for alone goes out with the end of this turn. Where others wait for an answer already, it goes with whatever else the
   * input of this turn leads to: a write, and reading it at the other end, costs more than most commands.
   */
  #schedule(): void {
    const isAlone = this.#waiting.length === this.#answered;
    // Sockets live in the system's time, whatever clock their user has.
    if (isAlone) systemClock.soon(this.#write);
    else systemClock.afterInput(this.#write);
  }

  /**
   * Here, and not where it was asked for, is decided whether a request is still wanted: the event loop may have been
   * blocked since. What the system does not take waits here, because what Node has been given can not be taken back.
   */
  readonly #write = (): void => {
    if (this.#end !== null) return;
    // Where nothing is left, the system has taken it all, and Node will say so in a moment: that is not waited for.
    if (this.#socket.writableNeedDrain && this.#socket.writableLength > 0) {
      this.#socket.once('drain', this.#write);
      return;
    }
    const all = this.#unwritten;
    this.#unwritten = [];
    let text = '';
    let judged: Deadline | undefined;
    let isOver = false;
    for (const { text: command, waiting, deadline } of all) {
      // All commands of a request go, or none: ASKING alone would be about another one.
      if (deadline !== judged) isOver = deadline?.isOver() ?? false;
      judged = deadline;
      if (isOver) {
        waiting.reject(new UnsentError(TOO_LATE));
        continue;
      }
      this.#waiting.push(waiting);
      text += command;
    }
    if (text !== '') this.#socket.write(text);
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
      this.#abandon(new Error('an answer came that nobody had asked for'));
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
    for (const { waiting: unsent } of this.#unwritten.splice(0))
      unsent.reject(new UnsentError(error.message));
  }
}
