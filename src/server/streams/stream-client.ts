/**
 * One client of an event stream (SSE), with the queue of bytes that it has not read. A client that
 * does not keep up is disconnected: a growing queue does not help it, and harms the others. After
 * it reconnects, it catches up at its own pace.
 *
 * **Open.** In: the client connected. Out: the client closes the connection, or the server ends the
 * stream with a `bye` that says why → ended.
 *
 * **Ended.** Final.
 */
import type { Clock, Timer } from '../../core/clock.ts';
import type { Caller } from '../http/route.ts';
import { type Bye, byeFrame, commentFrame, HELLO, positionFrame } from './sse-frames.ts';

/** A client has room for a page when its queue is below this share of its limit. */
const ROOM_SHARE = 1 / 4;
/** How long a `bye` may stay unread before the connection is cut. */
const BYE_TIMEOUT_MS = 5_000;
/** A client that read nothing for this many heartbeats, with bytes in its queue, is gone. */
const MAX_IDLE_BEATS = 2;

export interface StreamClientOptions {
  readonly caller: Caller;
  /** Unread bytes that the queue may hold. */
  readonly maxQueuedBytes: number;
  /** Called once, whichever side ended the stream. */
  onEnd(): void;
}

export class StreamClient {
  readonly tokenId: string;
  readonly stream: ReadableStream<Uint8Array>;
  readonly #clock: Clock;
  readonly #options: StreamClientOptions;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #isEnded = false;
  #onRoom: (() => void) | null = null;
  #tokenTimer: Timer | null = null;
  #byeTimer: Timer | null = null;
  #sentBytes = 0;
  /** Sent and read bytes at the last heartbeat. */
  #sentAtBeat = 0;
  #readAtBeat = 0;
  #idleBeats = 0;

  constructor(clock: Clock, options: StreamClientOptions) {
    this.#clock = clock;
    this.#options = options;
    this.tokenId = options.caller.tokenId;
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          if (this.#hasRoom) this.#wake();
        },
        cancel: () => this.#finish(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: options.maxQueuedBytes }),
    );
  }

  start(): void {
    this.sendText(HELLO);
    this.#watchToken();
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Queues bytes, which clients may share. Checks the token's expiry: its timer may be late. */
  send(bytes: Uint8Array): void {
    if (this.#isEnded) return;
    if (this.#isTokenExpired()) this.end('token-expired');
    else if (this.#freeBytes <= 0) this.end('too-slow');
    else {
      this.#sentBytes += bytes.byteLength;
      this.#controller.enqueue(bytes);
    }
  }

  sendText(text: string): void {
    this.send(encoder.encode(text));
  }

  /** Resolves when the client has read most of its queue, or has ended; undefined if so already. */
  untilRoom(): Promise<void> | undefined {
    if (this.#isEnded || this.#hasRoom) return undefined;
    return new Promise((resolve) => {
      this.#onRoom = resolve;
    });
  }

  /** A heartbeat: keeps proxies from closing a silent connection, and finds lost clients. */
  beat(position: string | null = null): void {
    if (this.#isEnded) return;
    const readBytes = this.#sentBytes - this.#queuedBytes;
    const isIdle = this.#queuedBytes > 0 && readBytes === this.#readAtBeat;
    this.#readAtBeat = readBytes;
    this.#idleBeats = isIdle ? this.#idleBeats + 1 : 0;
    if (this.#idleBeats >= MAX_IDLE_BEATS) this.end('too-slow');
    else if (this.#sentBytes === this.#sentAtBeat)
      this.sendText(commentFrame('ping') + (position === null ? '' : positionFrame(position)));
    this.#sentAtBeat = this.#sentBytes;
  }

  /** Ends the stream from the server's side. */
  end(reason: Bye): void {
    if (this.#isEnded) return;
    this.#controller.enqueue(encoder.encode(byeFrame(reason)));
    this.#controller.close();
    this.#finish();
    if (this.#queuedBytes === 0) return;
    // A client that keeps the connection open and reads nothing must not keep the queue in memory.
    this.#byeTimer = this.#clock.after(BYE_TIMEOUT_MS, () =>
      this.#controller.error(
        new Error(`the stream was ended (${reason}), and the client did not read its end`),
      ),
    );
  }

  get #freeBytes(): number {
    return this.#controller.desiredSize ?? 0;
  }

  get #queuedBytes(): number {
    // The desired size of a closed stream is 0, or null after an error: its queue is empty.
    const free = this.#controller.desiredSize;
    const isDrained = free === null || (this.#isEnded && free === 0);
    return isDrained ? 0 : this.#options.maxQueuedBytes - free;
  }

  get #hasRoom(): boolean {
    return this.#queuedBytes <= this.#options.maxQueuedBytes * ROOM_SHARE;
  }

  #wake(): void {
    this.#onRoom?.();
    this.#onRoom = null;
  }

  #finish(): void {
    this.#byeTimer?.cancel();
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#tokenTimer?.cancel();
    this.#wake();
    this.#options.onEnd();
  }

  #isTokenExpired(): boolean {
    return this.#clock.wallMs() >= this.#options.caller.expiresAtMs;
  }

  /** A timer lasts some weeks at most, and the wall clock may be set: so the timer checks again. */
  #watchToken(): void {
    const { expiresAtMs } = this.#options.caller;
    if (this.#isEnded || expiresAtMs === Number.POSITIVE_INFINITY) return;
    if (this.#isTokenExpired()) this.end('token-expired');
    else {
      const leftMs = expiresAtMs - this.#clock.wallMs();
      this.#tokenTimer = this.#clock.after(leftMs, () => this.#watchToken());
    }
  }
}

const encoder = new TextEncoder();
