import { type Clock, timeLeft } from '../../../core/clock.ts';
import {
  ClosedError,
  HoldfastError,
  OutcomeUnknownError,
  StoreUnreachableError,
} from '../../../core/errors.ts';
import { jittered, type Random } from '../../../core/random.ts';
import { type Entry, TimerHeap } from '../../../core/timer-heap.ts';
import type { Script } from '../scripts.ts';
import type { Deadline, Dialer, Link } from './link.ts';
import { isErrorReply, isWrongServer, noReply, refused } from './replies.ts';
import { TOO_LATE } from './socket-link.ts';

/** How long the first attempt to connect and be let in may take. */
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * How long later ones may: a lease is running out meanwhile, so one that fell into a hole is given up soon, and the next
 * gets twice as long, for networks that are merely slow.
 */
const REDIAL_FIRST_MS = 500;
const REDIAL_MOST_MS = 10_000;
/**
 * A connection is given up over an unanswered request no sooner than this after it was sent: a caller may have had
 * hardly any time left, and that is no reason to take the connection from everybody else.
 */
const PATIENCE_MS = 100;
/**
 * Who has waited for a connection and has less time left than this is refused: an answer might not come in time, and nobody
 * would know whether the request was carried out.
 */
const LEAST_LEFT_MS = 20;
/** What is left of a time limit that is over: `timeLeft` gives no less. */
const OVER_MS = 1;
/** Pauses between attempts double from the first to the second of these. */
const RECONNECT_FIRST_MS = 50;
const RECONNECT_MOST_MS = 1_000;

export interface ConnectionOptions {
  readonly dialer: Dialer;
  readonly clock: Clock;
  readonly random: Random;
  /** Why an attempt to connect again has no chance, or null where it has one; asked before each. */
  obstacle?(): string | null;
  /** Runs on every new connection before anyone may use it; if it throws, the connection is dropped. */
  prepare(link: Link): Promise<void>;
  onConnected(): void;
  onDisconnected(why: string): void;
}

/** When a request has to be answered; one timer serves all of them. */
interface Due extends Entry {
  pass(): void;
}

/**
 * One connection to one Redis, replaced by a new one whenever it can not be trusted any more. Its link never
 * queues while offline, never reconnects and never resends: a lease command that runs late is worse than one that
 * fails. A command without an answer in time costs the connection, because a half-open socket looks just like that and
 * would otherwise never be noticed.
 */
export class Connection {
  readonly #options: ConnectionOptions;
  #link: Link | null = null;
  #dialing: Promise<void> | null = null;
  /** Ends the attempt to connect that is under way. */
  #attempt: AbortController | null = null;
  readonly #closing = new AbortController();
  #lastFailure = '';

  readonly #dues: TimerHeap<Due>;
  /** The pause before the next attempt to connect. */
  #pause: AbortController | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#dues = new TimerHeap(options.clock, () => {
      for (const { pass } of this.#dues.takeDue(options.clock.monotonicMs())) pass();
    });
  }

  /** The first connection, or the reason why there is none. Later ones are made in the background. */
  async open(): Promise<void> {
    // Who wants to send something meanwhile waits for this attempt; a second one would leave a link that nobody closes.
    this.#dialing ??= this.#dial(CONNECT_TIMEOUT_MS).finally(() => {
      this.#dialing = null;
    });
    await this.#dialing;
  }

  /** Sees to a connection in the background, and goes on trying. */
  connect(): void {
    if (this.#link !== null || this.#closing.signal.aborted) return;
    this.#dialing ??= this.#redial();
    this.#dialing.catch(() => {});
  }

  /** The next attempt to connect is made at once: there is reason to believe that it succeeds. */
  hurry(): void {
    this.#pause?.abort();
  }

  /** Why the last attempt to connect failed, as the end of a sentence; '' where there was none. */
  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** Whether a command would be sent at once. */
  get isConnected(): boolean {
    return this.#link !== null;
  }

  /** Sends one command and gives its reply, inside `timeoutMs` whatever happens. */
  send(operation: string, args: readonly string[], timeoutMs: number): Promise<unknown> {
    return this.use(operation, timeoutMs, (link, deadline) => link.send(args, deadline));
  }

  /** Runs a script by its digest; a server that does not know it gets its source. Not executed, so safe to send again. */
  script(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    timeoutMs: number,
  ): Promise<unknown> {
    return this.use(script.operation, timeoutMs, (link, deadline) =>
      sendScript(link, script, keys, args, { deadline }),
    );
  }

  /**
   * Waits for a connection if there is none, then runs `send` on it; both inside `timeoutMs`. What `send` hands the
   * deadline to is not sent once that is over.
   */
  use<T>(operation: string, timeoutMs: number, send: Sending<T>): Promise<T> {
    if (timeoutMs <= OVER_MS) return Promise.reject(this.#unreachable(operation, TOO_LATE));
    if (this.#link !== null) return this.#within(this.#link, operation, timeoutMs, send);
    const leftMs = timeLeft(this.#options.clock, timeoutMs);
    return this.#connected(operation, timeoutMs).then((link) => {
      if (leftMs() >= LEAST_LEFT_MS) return this.#within(link, operation, leftMs(), send);
      const why = `only ${Math.round(leftMs())} ms of its time were left when it could be sent`;
      throw this.#unreachable(operation, why);
    });
  }

  /** Gives up the present connection; a new one is made at once. */
  drop(why: string): void {
    if (this.#link !== null) this.#discard(this.#link, why);
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new ClosedError({ operation: 'connection' }));
    this.#attempt?.abort(this.#closing.signal.reason);
    this.#pause?.abort();
    const link = this.#link;
    this.#link = null;
    link?.destroy();
    this.#dues.clear();
    // An attempt under way ends by itself: at once, or, towards an address that does not answer at all, at its timeout.
    this.#dialing?.catch(() => {});
    // A destroyed socket is gone one turn of the event loop later.
    await new Promise<void>((resolve) => this.#options.clock.afterInput(resolve));
  }

  #unreachable(operation: string, why: string): StoreUnreachableError {
    return new StoreUnreachableError({ store: this.#options.dialer.name, operation, why });
  }

  #within<T>(link: Link, operation: string, timeoutMs: number, send: Sending<T>): Promise<T> {
    const { clock, dialer } = this.#options;
    const where = { store: dialer.name, operation };
    const sentMs = clock.monotonicMs();
    const why = `no answer within ${Math.round(timeoutMs)} ms`;
    return new Promise((resolve, reject) => {
      let isAnswered = false;
      const giveUp = () => {
        const nowMs = clock.monotonicMs();
        reject(new OutcomeUnknownError({ ...where, afterMs: nowMs - sentMs, why }));
        // Rejecting again does nothing: this time it is only about the connection.
        const isSoon = nowMs - sentMs < PATIENCE_MS && this.#link === link;
        if (isSoon) this.#dues.schedule(due, sentMs + PATIENCE_MS);
        else this.#discard(link, why);
      };
      const due: Due = {
        dueMs: 0,
        slot: -1,
        // After a blocked event loop timers run before sockets are read: the answer may already be here.
        pass: () => clock.afterInput(() => !isAnswered && giveUp()),
      };
      const settle = () => {
        isAnswered = true;
        this.#dues.remove(due);
      };
      this.#dues.schedule(due, sentMs + timeoutMs);
      send(link, { isOver: () => clock.monotonicMs() - sentMs >= timeoutMs }).then(
        (reply) => {
          settle();
          resolve(reply);
        },
        (error: unknown) => {
          settle();
          if (!isErrorReply(error))
            return reject(noReply(error, where, clock.monotonicMs() - sentMs));
          reject(refused(error.message, where));
          if (isWrongServer(error.message)) this.#discard(link, error.message);
        },
      );
    });
  }

  /** A link once there is one, or `STORE_UNREACHABLE` when `timeoutMs` is over: nothing has been sent then. */
  #connected(operation: string, timeoutMs: number): Promise<Link> {
    const { clock } = this.#options;
    if (this.#closing.signal.aborted) return Promise.reject(new ClosedError({ operation }));
    this.#dialing ??= this.#redial();
    return new Promise((resolve, reject) => {
      const unreachable = (why: string) => this.#unreachable(operation, why);
      const timer = clock.after(timeoutMs, () => {
        reject(unreachable(`no connection within ${Math.round(timeoutMs)} ms${this.#lastFailure}`));
      });
      void this.#dialing?.then(
        () => {
          timer.cancel();
          if (this.#link) resolve(this.#link);
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
    const { signal } = this.#closing;
    let pauseMs = RECONNECT_FIRST_MS;
    let timeoutMs = REDIAL_FIRST_MS;
    try {
      for (;;) {
        try {
          const obstacle = this.#options.obstacle?.() ?? null;
          if (obstacle === null) return await this.#dial(timeoutMs);
          this.#lastFailure = obstacle;
        } catch (error) {
          if (error instanceof Error) this.#lastFailure = `; the last attempt: ${error.message}`;
        }
        signal.throwIfAborted();
        this.#pause = new AbortController();
        await clock.sleep(jittered(pauseMs, random), this.#pause.signal).catch(() => {});
        signal.throwIfAborted();
        pauseMs = Math.min(pauseMs * 2, RECONNECT_MOST_MS);
        timeoutMs = Math.min(timeoutMs * 2, REDIAL_MOST_MS);
      }
    } finally {
      this.#dialing = null;
      this.#pause = null;
    }
  }

  async #dial(timeoutMs: number): Promise<void> {
    const { clock, dialer } = this.#options;
    this.#closing.signal.throwIfAborted();
    const attempt = new AbortController();
    this.#attempt = attempt;
    const giveUp = clock.after(timeoutMs, () =>
      attempt.abort(new Error(`no connection within ${timeoutMs} ms`)),
    );
    let link: Link | null = null;
    let ended: string | null = null;
    const onEnd = (why: string) => {
      ended ??= why;
      if (link !== null) this.#discard(link, why);
    };
    try {
      link = await dialer.dial({ timeoutMs, signal: attempt.signal, onEnd });
      attempt.signal.addEventListener('abort', link.destroy);
      await this.#options.prepare(link);
      if (ended !== null) throw new Error(ended);
      attempt.signal.throwIfAborted();
      this.#link = link;
      this.#options.onConnected();
    } catch (error) {
      link?.destroy();
      this.#closing.signal.throwIfAborted();
      const isPlain = !isErrorReply(error) && !(error instanceof HoldfastError);
      throw this.#dialFailure(attempt.signal.aborted && isPlain ? attempt.signal.reason : error);
    } finally {
      giveUp.cancel();
      this.#attempt = null;
      if (link !== null) attempt.signal.removeEventListener('abort', link.destroy);
    }
  }

  #dialFailure(error: unknown): unknown {
    const where = { store: this.#options.dialer.name, operation: 'connect' };
    if (isErrorReply(error)) return refused(error.message, where);
    if (error instanceof HoldfastError) return error;
    const why =
      error instanceof Error
        ? error.message || String((error as NodeJS.ErrnoException).code)
        : String(error);
    return new StoreUnreachableError({ ...where, why }, { cause: error });
  }

  #discard(link: Link, why: string): void {
    link.destroy();
    if (this.#link !== link) return;
    this.#link = null;
    this.#options.onDisconnected(why);
    // Who waits for the connection hears of its failure; nobody waiting is no reason to crash.
    this.connect();
  }
}

/** Sends what a request consists of over a link. */
export type Sending<T> = (link: Link, deadline: Deadline) => Promise<T>;

export function sendScript(
  link: Link,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
  { isAsking = false, deadline }: { isAsking?: boolean; deadline?: Deadline } = {},
): Promise<unknown> {
  const command = ['EVALSHA', script.sha, String(keys.length)];
  for (const key of keys) command.push(key);
  for (const arg of args) command.push(arg);
  if (isAsking) {
    // It holds for the one command behind it, so that there is no second try with the source.
    void link.send(['ASKING'], deadline).catch(() => {});
    return link.send(['EVAL', script.source, ...command.slice(2)], deadline);
  }
  return link.send(command, deadline).catch((error: unknown) => {
    if (!isErrorReply(error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return link.send(['EVAL', script.source, ...command.slice(2)], deadline);
  });
}
