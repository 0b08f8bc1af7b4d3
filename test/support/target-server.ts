import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { FENCE_HEADER } from '../../src/lease/fence.ts';
import { hostMs } from './host-clock.ts';
import type { Poll } from './poll-record.ts';

/** Longer than any test: a connection that the server closes as it is reused would cost a poll. */
const KEEP_ALIVE_MS = 600_000;
const DEFAULT_LATENCY_MS = 20;
const PATH = '/t/';

/** Who polls, and when it began in nanoseconds of `process.hrtime`: what a poller says of itself. */
export const INSTANCE_HEADER = 'x-instance';
export const STARTED_HEADER = 'x-started';

/**
 * Any number of targets, each at `/t/<id>`, and the record of who polled which of them when. Every answer takes a while,
 * so that a poll has a length: two that overlap are seen to. The end of a poll is taken before its answer is sent, and
 * so never later than the poller's own.
 */
export class TargetServer {
  /** In the order in which they arrived. */
  readonly polls: Poll[] = [];
  /** How long an answer takes. */
  latencyMs: number;
  readonly #server: Server;
  readonly #latencies = new Map<string, number>();
  readonly #host: string;
  #port = 0;

  private constructor(latencyMs: number, host: string) {
    this.latencyMs = latencyMs;
    this.#host = host;
    this.#server = createServer((request, response) => this.#answer(request, response));
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
  }

  static async start({
    latencyMs = DEFAULT_LATENCY_MS,
    host = '127.0.0.1',
  } = {}): Promise<TargetServer> {
    const server = new TargetServer(latencyMs, host);
    server.#server.listen(0, host);
    await once(server.#server, 'listening');
    const address = server.#server.address();
    if (address === null || typeof address === 'string') throw new Error('no TCP address');
    server.#port = address.port;
    return server;
  }

  urlOf(target: string): string {
    return `http://${this.#host}:${this.#port}${PATH}${encodeURIComponent(target)}`;
  }

  /** One target answers slower than the others; Infinity: never. */
  slow(target: string, latencyMs: number): void {
    this.#latencies.set(target, latencyMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const arrivedMs = hostMs();
    const { url = '', headers } = request;
    const instance = headers[INSTANCE_HEADER];
    const started = headers[STARTED_HEADER];
    if (!url.startsWith(PATH) || typeof instance !== 'string' || typeof started !== 'string') {
      response.writeHead(400).end(`give ${PATH}<id>, ${INSTANCE_HEADER} and ${STARTED_HEADER}`);
      return;
    }
    const target = decodeURIComponent(url.slice(PATH.length));
    const fence = headers[FENCE_HEADER];
    const poll = {
      target,
      instance,
      fence: fence === undefined ? null : Number(fence),
      startMs: Number(started) / 1e6,
      arrivedMs,
      endMs: Number.POSITIVE_INFINITY,
    };
    this.polls.push(poll);
    const end = () => {
      if (poll.endMs === Number.POSITIVE_INFINITY) poll.endMs = hostMs();
    };
    const latencyMs = this.#latencies.get(target) ?? this.latencyMs;
    const timer =
      latencyMs === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => {
            end();
            response.end('ok');
          }, latencyMs);
    response.once('close', () => {
      clearTimeout(timer);
      end();
    });
  }
}
