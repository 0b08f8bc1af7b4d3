import type { Clock, Timer } from '../../core/clock.ts';
import { ClosedError, OutcomeUnknownError, StoreUnreachableError } from '../../core/errors.ts';
import type { BaseRuntime } from '../../core/runtime.ts';
import type { PostgresLink } from './dialer.ts';
import { dialError, endsLink, sentError } from './failures.ts';

/** A connection is given up after this. */
const DIAL_MS = 5_000;

interface Request {
  readonly operation: string;
  readonly text: string;
  readonly untilMs: number;
  sentAtMs: number;
  timer: Timer;
  resolve(reply: string | null): void;
  reject(error: Error): void;
}

/** Makes a link that is ready for requests: connected, and its server examined. */
export type LinkMaker = (timeoutMs: number) => Promise<PostgresLink>;

/**
 * Sends requests over one connection at a time, one after the other, each once.
 *
 * **No link.** The next request dials. **Dialing.** Requests wait; they fail if it fails, or if
 * their time is over: nothing was sent. **Ready.** The first request is sent. **Busy.** The others
 * wait. A request whose time is over ends the link: the server then rolls it back, or has committed
 * it, and its outcome is unknown. A lost link leads to **No link**. **Closed.** By `close()`.
 */
export class PostgresConnection {
  readonly #clock: Clock;
  readonly #store: string;
  readonly #make: LinkMaker;
  readonly #waiting: Request[] = [];
  #link: PostgresLink | null = null;
  #sent: Request | null = null;
  /** `close` waits for it. */
  #onIdle = () => {};
  #state: 'open' | 'dialing' | 'closed' = 'open';

  constructor({ clock }: Pick<BaseRuntime, 'clock'>, store: string, make: LinkMaker) {
    this.#clock = clock;
    this.#store = store;
    this.#make = make;
  }

  /** How many requests it has. */
  get load(): number {
    return this.#waiting.length + (this.#sent === null ? 0 : 1);
  }

  run(operation: string, text: string, timeoutMs: number): Promise<string | null> {
    if (this.#state === 'closed') return Promise.reject(new ClosedError({ operation }));
    return new Promise((resolve, reject) => {
      const untilMs = this.#clock.monotonicMs() + timeoutMs;
      const timer = this.#clock.after(timeoutMs, () => this.#onTimeOver(request));
      const request: Request = { operation, text, untilMs, sentAtMs: 0, timer, resolve, reject };
      this.#waiting.push(request);
      this.#sendNext();
    });
  }

  /** Ends the link. The next request dials again. */
  drop(): void {
    const link = this.#link;
    this.#link = null;
    link?.destroy();
  }

  /** Waits for the request under way, no longer than its timeout, and ends the connection. */
  async close(): Promise<void> {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    for (const request of this.#waiting.splice(0)) {
      request.timer.cancel();
      request.reject(new ClosedError({ operation: request.operation }));
    }
    if (this.#sent !== null)
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    this.drop();
  }

  #sendNext(): void {
    if (this.#sent !== null || this.#waiting.length === 0 || this.#state === 'dialing') return;
    if (this.#link === null) {
      void this.#dial();
      return;
    }
    const request = this.#waiting.shift() as Request;
    this.#sent = request;
    request.sentAtMs = this.#clock.monotonicMs();
    const link = this.#link;
    link.query(request.text).then(
      (reply) => this.#finish(request, () => request.resolve(reply)),
      (error: unknown) => {
        if (endsLink(error) && this.#link === link) this.drop();
        this.#finish(request, () => request.reject(this.#asSentError(error, request)));
      },
    );
  }

  #finish(request: Request, settle: () => void): void {
    // A request whose time was over has been answered already.
    if (this.#sent !== request) return;
    this.#sent = null;
    request.timer.cancel();
    settle();
    this.#onIdle();
    this.#sendNext();
  }

  #asSentError(error: unknown, { operation, sentAtMs }: Request): Error {
    const afterMs = this.#clock.monotonicMs() - sentAtMs;
    return sentError(error, { store: this.#store, operation }, afterMs);
  }

  #onTimeOver(request: Request): void {
    const { operation, sentAtMs } = request;
    const where = { store: this.#store, operation };
    if (this.#sent !== request) {
      this.#waiting.splice(this.#waiting.indexOf(request), 1);
      const why = this.#link === null ? 'no connection in time' : 'earlier requests took too long';
      request.reject(new StoreUnreachableError({ ...where, why }));
      return;
    }
    this.drop();
    const afterMs = this.#clock.monotonicMs() - sentAtMs;
    const error = new OutcomeUnknownError({ ...where, afterMs, why: 'its time is over' });
    this.#finish(request, () => request.reject(error));
  }

  async #dial(): Promise<void> {
    this.#state = 'dialing';
    try {
      const link = await this.#make(DIAL_MS);
      if (this.#isClosed()) return link.destroy();
      this.#state = 'open';
      this.#link = link;
      link.onLost(() => {
        if (this.#link === link) this.#link = null;
      });
    } catch (error) {
      if (this.#isClosed()) return;
      this.#state = 'open';
      for (const request of this.#waiting.splice(0)) {
        request.timer.cancel();
        const { operation } = request;
        request.reject(dialError(error, { store: this.#store, operation }));
      }
    }
    this.#sendNext();
  }

  /** `close` may be called while it dials. */
  #isClosed(): boolean {
    return this.#state === 'closed';
  }
}
