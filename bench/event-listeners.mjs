/** Many who listen to `/api/v3/events` over plain sockets, and what each of them has heard. */
import { connect } from 'node:net';
import { monotonicMs, quantile } from './statistics.mjs';

/** In the facts of every event that counts: its number, and when it was added to the log. */
const MARK = Buffer.from('"bench":"');
const MARK_END = 0x22;
/** Longer than any mark: a chunk may end in the middle of one. */
const LONGEST_MARK = 64;

export class EventListeners {
  #listeners = [];
  #failures = [];

  /** Resolves when all of them hear. */
  async open({ port, token, count }) {
    const request = [
      'GET /api/v3/events?from=now HTTP/1.1',
      `Host: 127.0.0.1:${port}`,
      `Authorization: Bearer ${token}`,
      'Accept: text/event-stream',
    ].join('\r\n');
    const open = (_, i) =>
      new Promise((resolve, reject) => {
        const listener = new EventListener(port, `${request}\r\n\r\n`);
        this.#listeners.push(listener);
        listener.onOpen = resolve;
        listener.onFailure = (why) => {
          this.#failures.push(`listener ${i}: ${why}`);
          reject(new Error(why));
        };
      });
    await Promise.all(Array.from({ length: count }, open));
  }

  /** Forgets what was heard so far. */
  reset() {
    for (const listener of this.#listeners) listener.reset();
  }

  /** How many have heard so many, each once and in order. */
  heard(count) {
    return this.#listeners.filter((listener) => listener.next === count && !listener.isWrong)
      .length;
  }

  get summary() {
    const tookMs = Float64Array.from(this.#listeners.flatMap((listener) => listener.tookMs));
    return {
      arrivals: tookMs.length,
      wrong: this.#listeners.filter(({ isWrong }) => isWrong).length,
      failures: this.#failures.slice(0, 5),
      p50Ms: quantile(tookMs, 0.5),
      p95Ms: quantile(tookMs, 0.95),
      p99Ms: quantile(tookMs, 0.99),
    };
  }

  close() {
    for (const listener of this.#listeners) listener.close();
    this.#listeners = [];
  }
}

class EventListener {
  next = 0;
  isWrong = false;
  tookMs = [];
  onOpen = () => {};
  onFailure = () => {};
  #socket;
  #rest = Buffer.alloc(0);
  #head = '';
  #isOpen = false;

  constructor(port, request) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('connect', () => this.#socket.write(request));
    this.#socket.on('data', (chunk) => this.#hear(chunk));
    this.#socket.on('error', (error) => this.onFailure(error.message));
    this.#socket.on('close', () => this.onFailure('the server has ended it'));
  }

  reset() {
    this.next = 0;
    this.tookMs = [];
  }

  close() {
    this.onFailure = () => {};
    this.#socket.destroy();
  }

  #hear(chunk) {
    if (!this.#isOpen) this.#begin(chunk);
    const nowMs = monotonicMs();
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = bytes.indexOf(MARK);
    let doneTo = Math.max(0, bytes.length - LONGEST_MARK);
    while (at !== -1) {
      const from = at + MARK.length;
      const end = bytes.indexOf(MARK_END, from);
      if (end === -1) {
        doneTo = at;
        break;
      }
      this.#note(bytes.latin1Slice(from, end), nowMs);
      doneTo = Math.max(doneTo, end);
      at = bytes.indexOf(MARK, end);
    }
    this.#rest = bytes.subarray(doneTo);
  }

  /** Open is who has been told where in the log it is: from then on it misses nothing. */
  #begin(chunk) {
    this.#head += chunk.latin1Slice();
    if (!this.#head.startsWith('HTTP/1.1 200 ')) this.onFailure(this.#head);
    if (!this.#head.includes('\nid: ')) return;
    this.#isOpen = true;
    this.#head = '';
    this.onOpen();
  }

  /** `<number> <when>` */
  #note(mark, nowMs) {
    const space = mark.indexOf(' ');
    if (Number(mark.slice(0, space)) !== this.next) this.isWrong = true;
    this.next++;
    this.tookMs.push(nowMs - Number(mark.slice(space + 1)));
  }
}
