import { createServer, connect as dial, type Server, type Socket } from 'node:net';

/**
 * A TCP proxy that misbehaves on request. Put it between a client and its server to see what the
 * client makes of a slow, silent, one-way or refusing network:
 *
 * ```ts
 * await using proxy = await FaultProxy.start({ target: { host: '127.0.0.1', port: 6379 } });
 * const holdfast = await open(`redis://127.0.0.1:${proxy.port}`);
 * await proxy.loseReplies();
 * ```
 *
 * A mode applies from the call on, to whatever arrives on connections old and new. Its promise is
 * about the listening port alone: that it is open again, or closed (`refuse`).
 *
 * TCP delivers a stream without holes or not at all, and so does this proxy: a direction that has
 * lost anything stays silent, whatever the mode is later. The client must drop such a connection,
 * or `reset()` does. Bytes are never reordered, doubled or changed: TCP lets none of that through.
 */
export class FaultProxy {
  readonly host = '127.0.0.1';
  readonly #target: Address;
  readonly #links = new Set<Link>();
  #port = 0;
  #mode: Mode = { requests: 'pass', replies: 'pass' };
  #server: Server | undefined;
  /** The latest change of the listening port. They run one after the other. */
  #aligned: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(target: Address) {
    this.#target = target;
  }

  /** Listens on a loopback port that the kernel picks. */
  static async start(options: { target: Address }): Promise<FaultProxy> {
    const proxy = new FaultProxy(options.target);
    await proxy.#listen();
    return proxy;
  }

  get port(): number {
    return this.#port;
  }

  /** Connections that their client has not closed, whatever has become of the other side. */
  get connections(): number {
    return [...this.#links].filter((link) => link.isClientOpen).length;
  }

  /** Forwards everything at once. */
  pass(): Promise<void> {
    return this.#change({ requests: 'pass', replies: 'pass' });
  }

  /** Takes bytes and connections, forwards nothing, answers nothing, closes nothing. */
  halfOpen(): Promise<void> {
    return this.#change({ requests: 'lose', replies: 'lose' });
  }

  /** Forwards requests, so that they are carried out, and swallows the replies. */
  loseReplies(): Promise<void> {
    return this.#change({ requests: 'pass', replies: 'lose' });
  }

  /**
   * Keeps requests until `releaseHeld()`, also beyond the end of the client's connection: the
   * server then carries out what its sender has long given up. Later modes do not release them, so
   * that the client can move on meanwhile.
   */
  holdRequests(): Promise<void> {
    return this.#change({ requests: 'hold', replies: 'pass' });
  }

  /** Forwards what is held now. The mode stays. */
  releaseHeld(): void {
    for (const link of this.#links) link.requests.releaseHeld();
  }

  /** Forwards whatever arrives `ms` later, in either direction, in order. */
  delay(ms: number): Promise<void> {
    if (!Number.isFinite(ms) || ms < 0) throw new RangeError(`delay(${ms}): give 0 or more ms`);
    return this.#change({ requests: 'pass', replies: 'pass', delayMs: ms });
  }

  /** Refuses new connections, as a port does where nobody listens. Open ones pass. */
  refuse(): Promise<void> {
    return this.#change({ requests: 'pass', replies: 'pass', isRefusing: true });
  }

  /** Resets every open connection now. The mode stays; what is held or delayed is still sent. */
  reset(): void {
    for (const link of this.#links) link.client.resetAndDestroy();
  }

  /** Drops every connection and all that is held, and gives up the port permanently. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const aligned = this.refuse();
    for (const link of this.#links) link.destroy();
    await aligned;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #change(mode: Mode): Promise<void> {
    this.#mode = mode;
    for (const link of this.#links) link.hangUpIfForgotten();
    this.#aligned = this.#aligned.catch(() => {}).then(() => this.#align());
    return this.#aligned;
  }

  async #align(): Promise<void> {
    if (this.#mode.isRefusing || this.#isClosed) {
      // Stops listening at once; connections that are open stay so.
      this.#server?.close();
      this.#server = undefined;
    } else if (this.#server === undefined) {
      await this.#listen();
    }
  }

  async #listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    server.on('connection', (client) => this.#accept(client));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, this.host, resolve);
    });
    const address = server.address();
    if (address !== null && typeof address === 'object') this.#port = address.port;
    this.#server = server;
  }

  #accept(client: Socket): void {
    if (this.#mode.isRefusing) {
      client.resetAndDestroy();
      return;
    }
    const link = new Link(client, this.#target, () => this.#mode);
    this.#links.add(link);
    link.onGone(() => this.#links.delete(link));
  }
}

export interface Address {
  host: string;
  port: number;
}

type Fate = 'pass' | 'hold' | 'lose';

interface Mode {
  requests: Fate;
  replies: Fate;
  delayMs?: number;
  isRefusing?: boolean;
}

/** One client's connection and its counterpart towards the target. */
class Link {
  readonly client: Socket;
  readonly requests: Pipe;
  readonly #upstream: Socket;
  readonly #replies: Pipe;
  readonly #mode: () => Mode;
  #isClientOpen = true;

  constructor(client: Socket, target: Address, mode: () => Mode) {
    const upstream = dial({ ...target, allowHalfOpen: true, noDelay: true });
    this.client = client;
    this.#upstream = upstream;
    this.#mode = mode;
    this.requests = new Pipe(client, upstream, () => ({ ...mode(), fate: mode().requests }));
    this.#replies = new Pipe(upstream, client, () => ({ ...mode(), fate: mode().replies }));

    // However the client goes, its requests end in order: what it sent before is carried out.
    client.once('end', () => this.#clientLeft());
    client.once('close', () => this.#clientLeft());
    upstream.once('end', () => this.#replies.put(END));
    upstream.once('close', (hadError) => this.#replies.put(hadError ? RESET : END));
  }

  get isClientOpen(): boolean {
    return this.#isClientOpen;
  }

  onGone(listener: () => void): void {
    const check = () => {
      if (this.client.closed && this.#upstream.closed) listener();
    };
    this.client.once('close', check);
    this.#upstream.once('close', check);
  }

  /** Ends a link when the client has left and, the news being lost, nothing else would end it. */
  hangUpIfForgotten(): void {
    if (this.#isClientOpen || this.#mode().replies === 'lose') return;
    if (this.requests.isLost || this.#upstream.closed) this.destroy();
  }

  destroy(): void {
    this.requests.clear();
    this.#replies.clear();
    this.client.destroy();
    this.#upstream.destroy();
  }

  #clientLeft(): void {
    if (!this.#isClientOpen) return;
    this.#isClientOpen = false;
    this.requests.put(END);
    this.hangUpIfForgotten();
  }
}

const END = Symbol('end');
const RESET = Symbol('reset');
type Item = Buffer | typeof END | typeof RESET;

/** At this many bytes held or delayed, a pipe stops reading: the sender feels a full window. */
const MAX_QUEUED_BYTES = 16 * 1024 * 1024;

/** One direction of a link: forwards, keeps or loses what arrives, and never changes the order. */
class Pipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #mode: () => { fate: Fate; delayMs?: number };
  readonly #queue: { item: Item; dueMs: number; isHeld: boolean }[] = [];
  #queuedBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #isLost = false;

  constructor(from: Socket, to: Socket, mode: () => { fate: Fate; delayMs?: number }) {
    this.#from = from;
    this.#to = to;
    this.#mode = mode;
    from.on('data', (chunk) => this.put(chunk));
    from.on('error', () => {
      // A 'close' follows, and the link passes that on.
    });
    to.on('drain', () => this.#throttle());
    to.on('close', () => this.#throttle());
  }

  /** Something that should have gone this way did not. */
  get isLost(): boolean {
    return this.#isLost;
  }

  put(item: Item): void {
    const { fate, delayMs = 0 } = this.#mode();
    if (fate === 'lose') this.#isLost = true;
    if (this.#isLost) return;
    this.#queue.push({ item, dueMs: performance.now() + delayMs, isHeld: fate === 'hold' });
    this.#queuedBytes += sizeOf(item);
    this.#pump();
  }

  releaseHeld(): void {
    for (const entry of this.#queue) entry.isHeld = false;
    this.#pump();
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#queue.length = 0;
    this.#queuedBytes = 0;
  }

  #pump(): void {
    clearTimeout(this.#timer);
    for (let head = this.#queue[0]; head !== undefined && !head.isHeld; head = this.#queue[0]) {
      const waitMs = head.dueMs - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#pump(), waitMs);
        break;
      }
      this.#queue.shift();
      this.#queuedBytes -= sizeOf(head.item);
      this.#forward(head.item);
    }
    this.#throttle();
  }

  #forward(item: Item): void {
    if (item === RESET) this.#to.resetAndDestroy();
    else if (item === END) this.#to.end();
    else if (this.#to.writable) this.#to.write(item);
  }

  #throttle(): void {
    const isFull = this.#queuedBytes > MAX_QUEUED_BYTES || this.#to.writableNeedDrain;
    if (isFull) this.#from.pause();
    else this.#from.resume();
  }
}

function sizeOf(item: Item): number {
  return typeof item === 'symbol' ? 0 : item.length;
}
