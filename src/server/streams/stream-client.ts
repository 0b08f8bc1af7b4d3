/**
 * One who reads a stream of ours: as fast as it can, and what is known of how fast that is. Who does not keep up is dropped: a queue that grows
 * is no help to it, and harms the others. Coming back, it begins anew, at its own pace.
 *
 * **open**: it is given what there is. **ended**: by itself, or by us with a `bye` that says why. It never changes again.
 */
import type { Clock, Timer } from '../../core/clock.ts';
import { type Bye, byeFrame, comment, HELLO, placeFrame } from './event-frames.ts';

/** A client has room for a large piece when its queue is down to this part of what it may be. */
const ROOM = 1 / 4;
/** How long a `bye` may wait to be read, before the stream is cut. */
const FAREWELL_MS = 5_000;
/** Who has something to read, and has read nothing from one beat to the next so often, is not there any more. */
const IDLE_BEATS = 2;

export interface StreamClientParts {
  readonly clock: Clock;
  readonly tokenId: string;
  /** When its token is over, on the wall clock; Infinity for never. */
  readonly expiresAtMs: number;
  /** How much may lie unread in its queue. */
  readonly mostQueuedBytes: number;
  /** Called once, whoever ended it. */
  onEnd(): void;
}

export class StreamClient {
  readonly tokenId: string;
  readonly stream: ReadableStream<Uint8Array>;
  readonly #parts: StreamClientParts;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #isOver = false;
  #onRoom: (() => void) | null = null;
  #expiry: Timer | null = null;
  #farewell: Timer | null = null;
  #sentBytes = 0;
  /** As they were at the last beat. */
  #sentByBeat = 0;
  #readByBeat = 0;
  #idleBeats = 0;

  constructor(parts: StreamClientParts) {
    this.#parts = parts;
    this.tokenId = parts.tokenId;
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          if (this.#isRoomy) this.#letGo();
        },
        cancel: () => this.#leave(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: parts.mostQueuedBytes }),
    );
  }

  begin(): void {
    this.say(HELLO);
    this.#watchToken();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Gives it something to read; the same bytes may be given to many. A token that is over is noticed here, too: timers are late at times. */
  send(bytes: Uint8Array): void {
    if (this.#isOver) return;
    if (this.#isExpired()) this.end('token-expired');
    else if (this.#room <= 0) this.end('too-slow');
    else {
      this.#sentBytes += bytes.byteLength;
      this.#controller.enqueue(bytes);
    }
  }

  say(text: string): void {
    this.send(encoder.encode(text));
  }

  /** At once where it has read most of what it was given; otherwise when it has, or has ended. */
  hasRoom(): Promise<void> | undefined {
    if (this.#isOver || this.#isRoomy) return undefined;
    return new Promise((resolve) => {
      this.#onRoom = resolve;
    });
  }

  /** From time to time: shows it, and whoever is in between, that the stream is alive, and finds out whether it is. */
  beat(position: string | null = null): void {
    if (this.#isOver) return;
    const readBytes = this.#sentBytes - this.#queuedBytes;
    const isIdle = this.#queuedBytes > 0 && readBytes === this.#readByBeat;
    this.#readByBeat = readBytes;
    this.#idleBeats = isIdle ? this.#idleBeats + 1 : 0;
    if (this.#idleBeats >= IDLE_BEATS) this.end('too-slow');
    else if (this.#sentBytes === this.#sentByBeat)
      this.say(comment('ping') + (position === null ? '' : placeFrame(position)));
    this.#sentByBeat = this.#sentBytes;
  }

  /** Ends it from our side. */
  end(reason: Bye): void {
    if (this.#isOver) return;
    this.#controller.enqueue(encoder.encode(byeFrame(reason)));
    this.#controller.close();
    this.#leave();
    if (this.#queuedBytes === 0) return;
    // What nobody reads must not stay in memory for as long as somebody keeps the connection open.
    this.#farewell = this.#parts.clock.after(FAREWELL_MS, () =>
      this.#controller.error(
        new Error(`the stream was ended (${reason}), and not read to its end`),
      ),
    );
  }

  get #room(): number {
    return this.#controller.desiredSize ?? 0;
  }

  get #queuedBytes(): number {
    // Of a stream that is over there is nothing left to read, and no room either.
    const room = this.#controller.desiredSize;
    return room === null || (this.#isOver && room === 0) ? 0 : this.#parts.mostQueuedBytes - room;
  }

  get #isRoomy(): boolean {
    return this.#queuedBytes <= this.#parts.mostQueuedBytes * ROOM;
  }

  #letGo(): void {
    this.#onRoom?.();
    this.#onRoom = null;
  }

  #leave(): void {
    this.#farewell?.cancel();
    if (this.#isOver) return;
    this.#isOver = true;
    this.#expiry?.cancel();
    this.#letGo();
    this.#parts.onEnd();
  }

  #isExpired(): boolean {
    return this.#parts.clock.wallMs() >= this.#parts.expiresAtMs;
  }

  /** A timer holds some weeks at most, and the wall clock may be set meanwhile: so it looks again. */
  #watchToken(): void {
    const { clock, expiresAtMs } = this.#parts;
    if (this.#isOver || expiresAtMs === Number.POSITIVE_INFINITY) return;
    if (this.#isExpired()) this.end('token-expired');
    else this.#expiry = clock.after(expiresAtMs - clock.wallMs(), () => this.#watchToken());
  }
}

const encoder = new TextEncoder();
