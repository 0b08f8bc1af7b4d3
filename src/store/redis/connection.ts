import { createClient } from '@redis/client';
import { Agenda, type Entry } from '../../base/agenda.ts';
import type { Clock } from '../../base/clock.ts';
import {
  ClosedError,
  HoldfastError,
  OutcomeUnknownError,
  StoreUnreachableError,
} from '../../base/errors.ts';
import { jittered, type Random } from '../../base/random.ts';
import { isErrorReply, isWrongServer, noReply, refused } from './replies.ts';
import type { Script } from './scripts.ts';

/** How long the first attempt to connect and be let in may take. */
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * How long later ones may: a lease is running out meanwhile, so one that fell into a hole is given up soon, and the next
 * gets twice as long, for networks that are merely slow.
 */
const REDIAL_FIRST_MS = 500;
const REDIAL_MOST_MS = 10_000;
/** Pauses between attempts double from the first to the second of these. */
const RECONNECT_FIRST_MS = 50;
const RECONNECT_MOST_MS = 1_000;

export type Client = ReturnType<typeof makeClient>;

/** A client that sends each command once, at once or not at all. */
function makeClient(url: string, connectTimeout: number, signal: AbortSignal) {
  return createClient({
    url,
    RESP: 2,
    disableOfflineQueue: true,
    // Its own time limit only rejects, and costs a timer a command; ours ends the connection too.
    commandOptions: { timeout: 0 },
    maintNotifications: 'disabled',
    // The signal ends a socket that is still connecting, too, which `destroy` does not.
    socket: { reconnectStrategy: false, connectTimeout, signal },
  });
}

export interface ConnectionOptions {
  readonly url: string;
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Runs on every new connection before anyone may use it; if it throws, the connection is dropped. */
  prepare(client: Client): Promise<void>;
  onConnected(): void;
  onDisconnected(why: string): void;
}

/** When a command has to be answered; one timer serves all of them. */
interface Deadline extends Entry {
  pass(): void;
}

/**
 * One connection to one Redis, replaced by a new one whenever it can not be trusted any more. node-redis is told never
 * to queue while offline, never to reconnect and never to resend: a lease command that runs late is worse than one that
 * fails. A command without an answer in time costs the connection, because a half-open socket looks just like that and
 * would otherwise never be noticed.
 */
export class Connection {
  readonly #options: ConnectionOptions;
  #client: Client | null = null;
  #dialing: Promise<void> | null = null;
  readonly #closing = new AbortController();
  /** Why the last attempt to connect failed, for whoever runs out of time waiting for one. */
  #lastFailure = '';

  readonly #deadlines: Agenda<Deadline>;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#deadlines = new Agenda(options.clock, () => {
      for (const { pass } of this.#deadlines.takeDue(options.clock.monotonicMs())) pass();
    });
  }

  /** The first connection, or the reason why there is none. Later ones are made in the background. */
  async open(): Promise<void> {
    await this.#dial(CONNECT_TIMEOUT_MS);
  }

  /** Whether a command would be sent at once. */
  get isConnected(): boolean {
    return this.#client !== null;
  }

  /** Sends one command and gives its reply, inside `timeoutMs` whatever happens. */
  async send(operation: string, args: readonly string[], timeoutMs: number): Promise<unknown> {
    return this.use(operation, timeoutMs, (client) => client.sendCommand(args as string[]));
  }

  /** Runs a script by its digest; a server that does not know it gets its source. Not executed, so safe to send again. */
  async script(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    timeoutMs: number,
  ): Promise<unknown> {
    const command = ['EVALSHA', script.sha, String(keys.length)];
    for (const key of keys) command.push(key);
    for (const arg of args) command.push(arg);
    return this.use(script.verb, timeoutMs, (client) =>
      client.sendCommand(command).catch((error: unknown) => {
        if (!isErrorReply(error) || !error.message.startsWith('NOSCRIPT')) throw error;
        return client.sendCommand(['EVAL', script.source, ...command.slice(2)]);
      }),
    );
  }

  /** Waits for a connection if there is none, then runs `send` on it; both inside `timeoutMs`. */
  async use<T>(
    operation: string,
    timeoutMs: number,
    send: (client: Client) => Promise<T>,
  ): Promise<T> {
    const startMs = this.#options.clock.monotonicMs();
    const client = this.#client ?? (await this.#connected(operation, timeoutMs));
    return this.#within(
      client,
      operation,
      timeoutMs - (this.#options.clock.monotonicMs() - startMs),
      send,
    );
  }

  /** Gives up the present connection; a new one is made at once. */
  drop(why: string): void {
    if (this.#client !== null) this.#discard(this.#client, why);
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new ClosedError('connection'));
    const client = this.#client;
    this.#client = null;
    client?.destroy();
    this.#deadlines.clear();
    // An attempt under way ends by itself: at once, or, towards an address that does not answer at all, at its timeout.
    this.#dialing?.catch(() => {});
    // A destroyed socket is gone one turn of the event loop later.
    await new Promise<void>((resolve) => this.#options.clock.afterInput(resolve));
  }

  #within<T>(
    client: Client,
    operation: string,
    timeoutMs: number,
    send: (client: Client) => Promise<T>,
  ): Promise<T> {
    const { clock, name } = this.#options;
    const where = { store: name, operation };
    const sentMs = clock.monotonicMs();
    return new Promise((resolve, reject) => {
      const deadline: Deadline = {
        dueMs: 0,
        slot: -1,
        // After a blocked event loop timers run before sockets are read: the answer may already be here.
        pass: () => clock.afterInput(() => !isSettled && giveUp()),
      };
      let isSettled = false;
      const giveUp = () => {
        isSettled = true;
        const why = `no answer within ${Math.round(timeoutMs)} ms`;
        const afterMs = clock.monotonicMs() - sentMs;
        reject(new OutcomeUnknownError({ ...where, afterMs, why }));
        this.#discard(client, why);
      };
      const settle = () => {
        isSettled = true;
        this.#deadlines.remove(deadline);
      };
      this.#deadlines.schedule(deadline, sentMs + timeoutMs);
      send(client).then(
        (reply) => {
          settle();
          resolve(reply);
        },
        (error: unknown) => {
          settle();
          if (!isErrorReply(error))
            return reject(noReply(error, where, clock.monotonicMs() - sentMs));
          reject(refused(error.message, where));
          if (isWrongServer(error.message)) this.#discard(client, error.message);
        },
      );
    });
  }

  /** A client once there is one, or `STORE_UNREACHABLE` when `timeoutMs` is over: nothing has been sent then. */
  #connected(operation: string, timeoutMs: number): Promise<Client> {
    const { clock, name } = this.#options;
    if (this.#closing.signal.aborted) return Promise.reject(new ClosedError(operation));
    this.#dialing ??= this.#redial();
    return new Promise((resolve, reject) => {
      const unreachable = (why: string) =>
        new StoreUnreachableError({ store: name, operation, why });
      const timer = clock.after(timeoutMs, () => {
        reject(unreachable(`no connection within ${Math.round(timeoutMs)} ms${this.#lastFailure}`));
      });
      void this.#dialing?.then(
        () => {
          timer.cancel();
          if (this.#client) resolve(this.#client);
          else reject(unreachable('the connection was lost again at once'));
        },
        (error: unknown) => {
          timer.cancel();
          reject(error);
        },
      );
    });
  }

  /** Tries again until there is a connection, or this has been closed. */
  async #redial(): Promise<void> {
    const { clock, random } = this.#options;
    let pauseMs = RECONNECT_FIRST_MS;
    let timeoutMs = REDIAL_FIRST_MS;
    try {
      for (;;) {
        try {
          return await this.#dial(timeoutMs);
        } catch (error) {
          if (error instanceof Error) this.#lastFailure = `; the last attempt: ${error.message}`;
          await clock.sleep(jittered(pauseMs, random), this.#closing.signal);
        }
        pauseMs = Math.min(pauseMs * 2, RECONNECT_MOST_MS);
        timeoutMs = Math.min(timeoutMs * 2, REDIAL_MOST_MS);
      }
    } finally {
      this.#dialing = null;
    }
  }

  async #dial(timeoutMs: number): Promise<void> {
    const { clock, name, url } = this.#options;
    this.#closing.signal.throwIfAborted();
    const attempt = new AbortController();
    const client = makeClient(url, timeoutMs, attempt.signal);
    const abort = () => {
      client.destroy();
      attempt.abort();
    };
    const giveUp = clock.after(timeoutMs, abort);
    this.#closing.signal.addEventListener('abort', abort);
    let ended: string | null = null;
    client.on('error', (error: Error) => {
      ended ??= error.message || error.name;
      this.#discard(client, ended);
    });
    try {
      await client.connect();
      await this.#options.prepare(client);
      if (ended !== null) throw new Error(ended);
      this.#closing.signal.throwIfAborted();
      this.#client = client;
      this.#options.onConnected();
    } catch (error) {
      client.destroy();
      throw this.#dialFailure(error, name);
    } finally {
      giveUp.cancel();
      this.#closing.signal.removeEventListener('abort', abort);
    }
  }

  #dialFailure(error: unknown, name: string): unknown {
    const where = { store: name, operation: 'connect' };
    if (isErrorReply(error)) return refused(error.message, where);
    if (error instanceof HoldfastError) return error;
    const why =
      error instanceof Error
        ? error.message || String((error as NodeJS.ErrnoException).code)
        : String(error);
    return new StoreUnreachableError({ ...where, why }, { cause: error });
  }

  #discard(client: Client, why: string): void {
    client.destroy();
    if (this.#client !== client) return;
    this.#client = null;
    this.#options.onDisconnected(why);
    if (!this.#closing.signal.aborted) this.#dialing ??= this.#redial();
    // Who waits for the connection hears of its failure; nobody waiting is no reason to crash.
    this.#dialing?.catch(() => {});
  }
}
