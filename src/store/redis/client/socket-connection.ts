/**
 * A connection to one Redis. Each command is sent once, in the turn of the event loop in which it
 * was requested, and answered in order. It is never sent later or again, and the connection never
 * reconnects silently: a holder of leases has to know of all that.
 */
import { connect, isIP, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { systemClock } from '../../../core/clock.ts';
import type {
  Answer,
  Attempt,
  Credentials,
  Deadline,
  Endpoint,
  Link,
  MessageListener,
  UnixSocket,
} from './link.ts';
import { encodeCommand, isAscii, type Reply, ReplyError, ReplyReader } from './wire.ts';

/** After so much silence the system probes whether the other side is still there. */
const KEEP_ALIVE_MS = 5_000;

/** How much is read from a socket at a time. */
const READ_BYTES = 65_536;

/** Answered entries are removed from the queue in blocks of this size. */
const MAX_ANSWERED = 1_024;

/** The connection, or the time of the request, had ended before the command was sent. */
export class UnsentError extends Error {}

export const TOO_LATE = 'the time for it was over before it could be sent';

/** Connects and authenticates. */
export async function dialSocket(
  at: Endpoint | UnixSocket,
  credentials: Credentials,
  attempt: Attempt,
): Promise<Link> {
  attempt.signal.throwIfAborted();
  const user = await currentUser(credentials, attempt.signal);
  attempt.signal.throwIfAborted();
  const link = new SocketConnection(at, credentials, (why) => attempt.onEnd(why));
  await connectOrDestroy(link.destroy, attempt, async () => {
    await link.opened(credentials.tls === undefined ? 'connect' : 'secureConnect');
    await letIn(link, user);
    nameLink(link, credentials, attempt);
  });
  return link;
}

/** Destroys the link if `connect` fails, or if the attempt is aborted before it has connected. */
export async function connectOrDestroy(
  destroy: () => void,
  { signal }: Attempt,
  connect: () => Promise<void>,
): Promise<void> {
  signal.addEventListener('abort', destroy);
  try {
    await connect();
  } catch (error) {
    destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', destroy);
  }
}

/** The socket to write to and read from, and the TCP socket underneath: the same without TLS. */
interface Sockets {
  readonly socket: Socket;
  readonly tcp: Socket;
}

/** `onBytes`: called with what arrives, valid during the call only; with its length, if shorter. */
function open(
  at: Endpoint | UnixSocket,
  { tls }: Credentials,
  onBytes: (bytes: Buffer, length?: number) => void,
): Sockets {
  const onread = tls === undefined ? { onread: intoOneBuffer(onBytes) } : {};
  if ('path' in at) {
    const socket = connect({ path: at.path, ...onread });
    return { socket, tcp: socket };
  }
  const { host, port } = at;
  const tcp = connect({ host, port, ...onread })
    .setNoDelay(true)
    .setKeepAlive(true, KEEP_ALIVE_MS);
  if (tls === undefined) return { socket: tcp, tcp };
  // A certificate vouches for a name, not for the address that the name resolves to.
  const servername = isIP(host) === 0 ? { servername: host } : {};
  // Over a socket of ours, because the one that TLS would make cannot be reset.
  const socket = connectTls({ host, ...servername, ...tls, socket: tcp });
  return { socket: socket.on('data', (bytes: Buffer) => onBytes(bytes)), tcp };
}

/** Reads into the same buffer each time: a stream would make a new one, and queue it. */
function intoOneBuffer(onBytes: (bytes: Buffer, length: number) => void): OnReadOpts {
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  const callback = (length: number) => {
    onBytes(buffer, length);
    return true;
  };
  return { buffer, callback };
}

/**
 * Closes the socket and drops data that the other side has not confirmed. After a plain close the
 * system would keep sending it for minutes, and Redis would execute it late.
 */
export function reset(tcp: Socket): void {
  try {
    // Before the connection nothing has been sent, and a reset would wait for the connection.
    if (!tcp.connecting && !tcp.destroyed) tcp.resetAndDestroy();
  } catch {
    // A socket of this host: data written to it has arrived.
  }
  tcp.destroy();
}

/** User and password as they are now. Rejects when the attempt ends first. */
async function currentUser(credentials: Credentials, signal: AbortSignal): Promise<Credentials> {
  const { ask } = credentials;
  if (ask === undefined) return credentials;
  let stop = () => {};
  const ended = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop);
  });
  try {
    const { username = credentials.username, password } = await Promise.race([ask(), ended]);
    return { ...credentials, password, ...(username !== undefined && { username }) };
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Names the connection for CLIENT LIST. It serves without a name where a user may not name it. */
export function nameLink(
  link: Link,
  { clientName }: Pick<Credentials, 'clientName'>,
  { role = 'other' }: Attempt,
): void {
  if (clientName === undefined) return;
  link.send(['CLIENT', 'SETNAME', `${clientName}:${role}`]).catch(() => {});
}

async function letIn(link: Link, { username, password, database }: Credentials): Promise<void> {
  if (password !== undefined)
    await link.send(['AUTH', ...(username === undefined ? [] : [username]), password]);
  if (database !== undefined && database !== 0) await link.send(['SELECT', String(database)]);
}

interface Unwritten {
  readonly text: string;
  readonly waiting: Answer;
  readonly deadline: Deadline | undefined;
}

class SocketConnection implements Link {
  readonly #socket: Socket;
  readonly #tcp: Socket;
  readonly #onEnd: (why: string) => void;
  readonly #waiting: Answer[] = [];
  /** How many at the front are answered. They are removed in blocks, not one by one. */
  #answered = 0;
  readonly #listeners = new Map<string, MessageListener>();
  /** The commands of this turn, or since the system accepts no more data. */
  #unwritten: Unwritten[] = [];
  /** Whether the last write had one command: then the next command is likely to be alone, too. */
  #isSparse = true;
  #end: Error | null = null;

  constructor(at: Endpoint | UnixSocket, credentials: Credentials, onEnd: (why: string) => void) {
    const reader = new ReplyReader((reply) => this.#receive(reply));
    const { socket, tcp } = open(at, credentials, (bytes, length) => {
      try {
        reader.feed(bytes, length);
      } catch (error) {
        this.#abort(error as Error);
      }
    });
    this.#socket = socket;
    this.#tcp = tcp;
    this.#onEnd = onEnd;
    socket.on('error', (error) => this.#ended(error));
    socket.on('close', () => this.#ended(new Error('the connection was closed')));
  }

  /** Resolves with the event that says that it is open. */
  opened(event: 'connect' | 'secureConnect'): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve: () => resolve(), reject });
      this.#socket.once(event, () => this.#receive(null));
    });
  }

  send(args: readonly string[], deadline?: Deadline): Promise<unknown> {
    return new Promise((resolve, reject) => this.submit(args, deadline, { resolve, reject }));
  }

  submit(args: readonly string[], deadline: Deadline | undefined, waiting: Answer): void {
    if (this.#end !== null) {
      waiting.reject(new UnsentError(this.#end.message));
      return;
    }
    const isFirst = this.#unwritten.length === 0;
    this.#unwritten.push({ text: encodeCommand(args), waiting, deadline });
    if (isFirst) this.#schedule(args[0] === 'EVALSHA');
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

  /** Ends the link because of an invalid reply. */
  #abort(error: Error): void {
    const isAnswered = this.#waiting.length === this.#answered;
    this.#ended(error);
    this.#close(isAnswered);
  }

  /**
   * An unanswered request may not have arrived yet. It must not arrive any more, so the socket is
   * reset.
   */
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
   * A single command is written at the end of this turn. While others wait for answers, it is
   * written together with the commands that the input of this turn leads to: a write costs more
   * than most commands. A script that is likely to stay alone is written at once.
   */
  #schedule(isScript: boolean): void {
    const isAlone = this.#waiting.length === this.#answered;
    // Sockets use the system's time, even under another clock.
    if (!isAlone) systemClock.afterInput(this.#writeInTime);
    else if (this.#isSparse && isScript) this.#write(false);
    else systemClock.soon(this.#writeInTime);
  }

  /** Deadlines are checked, because the event loop may have been blocked since `send`. */
  readonly #writeInTime = (): void => this.#write(true);

  /**
   * Commands that the system does not accept wait here: they cannot be taken back from Node.
   */
  #write(mayBeLate: boolean): void {
    if (this.#end !== null) return;
    // With nothing left the system has accepted all data, and Node reports that soon: no need to
    // wait.
    if (this.#socket.writableNeedDrain && this.#socket.writableLength > 0) {
      this.#socket.once('drain', this.#writeInTime);
      return;
    }
    const all = this.#unwritten;
    this.#unwritten = [];
    this.#isSparse = all.length === 1;
    let text = '';
    let judged: Deadline | undefined;
    let isOver = false;
    for (const { text: command, waiting, deadline } of all) {
      // All commands of a request are sent, or none: ASKING alone would apply to another command.
      if (mayBeLate && deadline !== judged) isOver = deadline?.isOver() ?? false;
      judged = deadline;
      if (isOver) {
        waiting.reject(new UnsentError(TOO_LATE));
        continue;
      }
      this.#waiting.push(waiting);
      text += command;
    }
    // The encodings give the same bytes then, and this one needs no conversion.
    if (text !== '') this.#socket.write(text, isAscii(text) ? 'latin1' : 'utf8');
  }

  #receive(reply: Reply): void {
    if (this.#listeners.size > 0 && Array.isArray(reply) && reply[0] === 'message') {
      const [, channel, message] = reply as [string, string, string];
      this.#listeners.get(channel)?.(message, channel);
      return;
    }
    const waiting = this.#waiting[this.#answered];
    // One reply too many: the next answers would go to the wrong callers.
    if (waiting === undefined) {
      this.#abort(new Error('a reply came without a request'));
      return;
    }
    this.#answered++;
    if (this.#answered === this.#waiting.length || this.#answered >= MAX_ANSWERED) {
      this.#waiting.splice(0, this.#answered);
      this.#answered = 0;
    }
    if (reply instanceof ReplyError) waiting.reject(reply);
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
