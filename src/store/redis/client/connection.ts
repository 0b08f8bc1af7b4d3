import { backoff } from '../../../core/backoff.ts';
import { type Clock, timeLeft } from '../../../core/clock.ts';
import {
  ClosedError,
  HoldfastError,
  OutcomeUnknownError,
  StoreUnreachableError,
} from '../../../core/errors.ts';
import type { Random } from '../../../core/random.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import { type TimerEntry, TimerHeap } from '../../../core/timer-heap.ts';
import type { Script } from '../scripts.ts';
import type { Answer, Deadline, Dialer, Link } from './link.ts';
import { isErrorReply, isWrongServer, noReply, refused } from './replies.ts';
import { TOO_LATE } from './socket-connection.ts';

/** How long the first attempt to connect and authenticate may take. */
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * The time limit of the first attempt to reconnect. It is short, because leases expire meanwhile.
 * Each further attempt has twice as long, for networks that are slow.
 */
const MIN_REDIAL_MS = 500;
const MAX_REDIAL_MS = 10_000;
/**
 * An unanswered request ends the connection no sooner than this after it was sent. Its caller may
 * have had hardly any time left, and other callers share the connection.
 */
const MIN_UNANSWERED_MS = 100;
/**
 * A request that waited for the connection is refused if less time than this is left. Its answer
 * might come too late, and its outcome would be unknown.
 */
const MIN_LEFT_MS = 20;
/** The rest of a time limit that is over: `timeLeft` returns no less. */
const OVER_MS = 1;
/** Pauses between attempts to connect. */
const RECONNECT_PAUSES = { minMs: 50, maxMs: 1_000 };

/** The owner of a connection. */
export interface ConnectionHooks {
  /** What the connection is for, as CLIENT LIST shows it. */
  readonly role: string;
  /**
   * Why an attempt to reconnect is pointless now, or null if it is worth it. Called before each.
   */
  obstacle?(): string | null;
  /** Runs on every new link before any request is sent on it. If it throws, the link is dropped. */
  prepare(link: Link): Promise<void>;
  onConnected(): void;
  onDisconnected(why: string): void;
}

/** The deadline of a request. One timer serves all of them. */
interface Due extends TimerEntry {
  expire(): void;
}

/**
 * One connection to one Redis. A link that cannot be trusted any more is replaced by a new one. A
 * link never queues while offline, never reconnects and never resends: a lease command that runs
 * late is worse than one that fails. A command that is not answered in time ends the link, because
 * a half-open socket looks the same and would otherwise never be noticed.
 */
export class Connection {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #dialer: Dialer;
  readonly #hooks: ConnectionHooks;
  #link: Link | null = null;
  #dialing: Promise<void> | null = null;
  /** Ends the attempt to connect that is under way. */
  #attempt: AbortController | null = null;
  readonly #closing = new AbortController();
  #lastFailure = '';

  readonly #dues: TimerHeap<Due>;
  /** The pause before the next attempt to connect. */
  #pause: AbortController | null = null;

  constructor(
    { clock, random }: Pick<BaseRuntime, 'clock' | 'random'>,
    dialer: Dialer,
    hooks: ConnectionHooks,
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#dialer = dialer;
    this.#hooks = hooks;
    this.#dues = new TimerHeap(clock, () => {
      for (const { expire } of this.#dues.takeDue(clock.monotonicMs())) expire();
    });
  }

  /**
   * Makes the first link, or throws the reason why there is none. Later links are made in the
   * background.
   */
  async open(): Promise<void> {
    // Requests wait for this attempt meanwhile: a second attempt would leave a link that is never
    // closed.
    this.#dialing ??= this.#dial(CONNECT_TIMEOUT_MS).finally(() => {
      this.#dialing = null;
    });
    await this.#dialing;
  }

  /** Connects in the background, and keeps trying. */
  connect(): void {
    if (this.#link !== null || this.#closing.signal.aborted) return;
    this.#dialing ??= this.#redial();
    this.#dialing.catch(() => {});
  }

  /** Makes the next attempt to connect at once, because it is likely to succeed. */
  retryNow(): void {
    this.#pause?.abort();
  }

  /** Why the last attempt to connect failed, as the end of a sentence; '' if none has. */
  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** Whether a command would be sent at once. */
  get isConnected(): boolean {
    return this.#link !== null;
  }

  /** Sends one command. Settles within `timeoutMs`. */
  send(operation: string, args: readonly string[], timeoutMs: number): Promise<unknown> {
    return this.use(operation, timeoutMs, (link, deadline) => link.send(args, deadline));
  }

  /**
   * Runs a script by its digest. A server that does not know the digest executes nothing, so the
   * source is sent next.
   */
  script(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    timeoutMs: number,
  ): Promise<unknown> {
    return this.#use(script.operation, timeoutMs, (link, deadline, answer) =>
      submitScript(link, scriptCommand(script, keys, args), script, { deadline, answer }),
    );
  }

  /**
   * Waits for a link if there is none, then runs `send` on it, both within `timeoutMs`. Commands
   * that `send` passes the deadline to are not sent after it.
   */
  use<T>(operation: string, timeoutMs: number, send: Sending<T>): Promise<T> {
    return this.#use(operation, timeoutMs, (link, deadline, { resolve, reject }) => {
      send(link, deadline).then(resolve, reject);
    }) as Promise<T>;
  }

  #use(operation: string, timeoutMs: number, submit: Submitting): Promise<unknown> {
    if (timeoutMs <= OVER_MS) return Promise.reject(this.#unreachable(operation, TOO_LATE));
    if (this.#link !== null) return this.#within(this.#link, operation, timeoutMs, submit);
    const leftMs = timeLeft(this.#clock, timeoutMs);
    return this.#connected(operation, timeoutMs).then((link) => {
      if (leftMs() >= MIN_LEFT_MS) return this.#within(link, operation, leftMs(), submit);
      const why = `only ${Math.round(leftMs())} ms of its time were left when it could be sent`;
      throw this.#unreachable(operation, why);
    });
  }

  /** Ends the present link and connects again at once. */
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
    // An attempt under way ends at once, or at its timeout if the address does not answer.
    this.#dialing?.catch(() => {});
    // A destroyed socket is gone one turn of the event loop later.
    await new Promise<void>((resolve) => this.#clock.afterInput(resolve));
  }

  #unreachable(operation: string, why: string): StoreUnreachableError {
    return new StoreUnreachableError({ store: this.#dialer.name, operation, why });
  }

  /** Sends first: what keeps the time limit can be done while the server works. */
  #within(link: Link, operation: string, timeoutMs: number, submit: Submitting): Promise<unknown> {
    const clock = this.#clock;
    const sentMs = clock.monotonicMs();
    const where = () => ({ store: this.#dialer.name, operation });
    return new Promise((resolve, reject) => {
      let isAnswered = false;
      const giveUp = () => {
        const nowMs = clock.monotonicMs();
        const why = `no answer within ${Math.round(timeoutMs)} ms`;
        reject(new OutcomeUnknownError({ ...where(), afterMs: nowMs - sentMs, why }));
        // The second time the rejection does nothing, and only the link is ended.
        const isSoon = nowMs - sentMs < MIN_UNANSWERED_MS && this.#link === link;
        if (isSoon) this.#dues.schedule(due, sentMs + MIN_UNANSWERED_MS);
        else this.#discard(link, why);
      };
      const due: Due = {
        dueAtMs: 0,
        index: -1,
        // After a blocked event loop timers run before sockets are read: the answer may already be
        // here.
        expire: () => clock.afterInput(() => !isAnswered && giveUp()),
      };
      const onAnswer = () => {
        isAnswered = true;
        this.#dues.remove(due);
      };
      const answer: Answer = {
        resolve: (reply) => {
          onAnswer();
          resolve(reply);
        },
        reject: (error) => {
          onAnswer();
          if (!isErrorReply(error))
            return reject(noReply(error, where(), clock.monotonicMs() - sentMs));
          reject(refused(error.message, where()));
          if (isWrongServer(error.message)) this.#discard(link, error.message);
        },
      };
      submit(link, { isOver: () => clock.monotonicMs() - sentMs >= timeoutMs }, answer);
      if (!isAnswered) this.#dues.schedule(due, sentMs + timeoutMs);
    });
  }

  /**
   * Resolves with a link, or rejects with `STORE_UNREACHABLE` after `timeoutMs`: nothing was sent
   * then.
   */
  #connected(operation: string, timeoutMs: number): Promise<Link> {
    if (this.#closing.signal.aborted) return Promise.reject(new ClosedError({ operation }));
    this.#dialing ??= this.#redial();
    return new Promise((resolve, reject) => {
      const unreachable = (why: string) => this.#unreachable(operation, why);
      const timer = this.#clock.after(timeoutMs, () => {
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

  /** Tries again until there is a link, or `close()` was called. */
  async #redial(): Promise<void> {
    const { signal } = this.#closing;
    const pauses = backoff(RECONNECT_PAUSES, this.#random);
    let timeoutMs = MIN_REDIAL_MS;
    try {
      for (;;) {
        try {
          const obstacle = this.#hooks.obstacle?.() ?? null;
          if (obstacle === null) return await this.#dial(timeoutMs);
          this.#lastFailure = obstacle;
        } catch (error) {
          if (error instanceof Error) this.#lastFailure = `; the last attempt: ${error.message}`;
        }
        signal.throwIfAborted();
        this.#pause = new AbortController();
        await this.#clock.sleep(pauses.nextMs(), this.#pause.signal).catch(() => {});
        signal.throwIfAborted();
        timeoutMs = Math.min(timeoutMs * 2, MAX_REDIAL_MS);
      }
    } finally {
      this.#dialing = null;
      this.#pause = null;
    }
  }

  async #dial(timeoutMs: number): Promise<void> {
    this.#closing.signal.throwIfAborted();
    const attempt = new AbortController();
    this.#attempt = attempt;
    const giveUp = this.#clock.after(timeoutMs, () =>
      attempt.abort(new Error(`no connection within ${timeoutMs} ms`)),
    );
    let link: Link | null = null;
    let ended: string | null = null;
    const onEnd = (why: string) => {
      ended ??= why;
      if (link !== null) this.#discard(link, why);
    };
    try {
      const { role } = this.#hooks;
      link = await this.#dialer.dial({ timeoutMs, signal: attempt.signal, role, onEnd });
      attempt.signal.addEventListener('abort', link.destroy);
      await this.#hooks.prepare(link);
      if (ended !== null) throw new Error(ended);
      attempt.signal.throwIfAborted();
      this.#link = link;
      this.#hooks.onConnected();
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
    const where = { store: this.#dialer.name, operation: 'connect' };
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
    this.#hooks.onDisconnected(why);
    this.connect();
  }
}

/** Sends the commands of one request over a link. */
export type Sending<T> = (link: Link, deadline: Deadline) => Promise<T>;
type Submitting = (link: Link, deadline: Deadline, answer: Answer) => void;

export function sendScript(
  link: Link,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
  { isAsking = false, deadline }: { isAsking?: boolean; deadline?: Deadline | undefined } = {},
): Promise<unknown> {
  const command = scriptCommand(script, keys, args);
  if (isAsking) {
    // ASKING is valid for one command, so the source is sent at once.
    void link.send(['ASKING'], deadline).catch(() => {});
    return link.send(withSource(command, script), deadline);
  }
  return new Promise((resolve, reject) =>
    submitScript(link, command, script, { deadline, answer: { resolve, reject } }),
  );
}

function scriptCommand(
  script: Script,
  keys: readonly string[],
  args: readonly string[],
): readonly string[] {
  const command = ['EVALSHA', script.sha, String(keys.length)];
  for (let i = 0; i < keys.length; i++) command.push(keys[i] as string);
  for (let i = 0; i < args.length; i++) command.push(args[i] as string);
  return command;
}

function withSource(command: readonly string[], { source }: Script): readonly string[] {
  return ['EVAL', source, ...command.slice(2)];
}

/** A server that does not know the digest executes nothing: then the source is sent. */
function submitScript(
  link: Link,
  command: readonly string[],
  script: Script,
  { deadline, answer }: { deadline: Deadline | undefined; answer: Answer },
): void {
  const reject = (error: unknown) => {
    if (isErrorReply(error) && error.message.startsWith('NOSCRIPT'))
      submit(link, withSource(command, script), deadline, answer);
    else answer.reject(error);
  };
  submit(link, command, deadline, { resolve: answer.resolve, reject });
}

function submit(
  link: Link,
  command: readonly string[],
  deadline: Deadline | undefined,
  answer: Answer,
): void {
  if (link.submit !== undefined) link.submit(command, deadline, answer);
  else link.send(command, deadline).then(answer.resolve, answer.reject);
}
