/**
 * What the polls write to: it accepts a write unless it has seen a higher fence for its target, and writes down what came
 * and what became of it. Being one process, it has one order for all of them.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { hostMs } from '../test/support/host-clock.ts';
import type { HistoryFile } from './history.ts';

/** Longer than any run: a connection that the sink closes as it is reused would cost a write. */
const KEEP_ALIVE_MS = 24 * 3_600_000;

interface Write {
  readonly target: string;
  readonly fence: number | null;
  readonly by: string;
  readonly poll: number;
}

export class Sink implements AsyncDisposable {
  accepted = 0;
  refused = 0;
  readonly #history: HistoryFile;
  readonly #server: Server;
  readonly #highest = new Map<string, number>();
  readonly #lastMs = new Map<string, number>();
  #url = '';

  private constructor(history: HistoryFile) {
    this.#history = history;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
  }

  static async start(history: HistoryFile, host = '127.0.0.1'): Promise<Sink> {
    const sink = new Sink(history);
    sink.#server.listen(0, host);
    await once(sink.#server, 'listening');
    const address = sink.#server.address();
    if (address === null || typeof address === 'string') throw new Error('no TCP address');
    sink.#url = `http://${host}:${address.port}/`;
    return sink;
  }

  get url(): string {
    return this.#url;
  }

  /** Whether each of them has been written since that moment. */
  hasAll(targets: readonly string[], sinceMs: number): boolean {
    return targets.every((target) => (this.#lastMs.get(target) ?? 0) > sinceMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const isAccepted = this.#take(JSON.parse(Buffer.concat(chunks).toString()) as Write);
      response.writeHead(isAccepted ? 200 : 409).end();
    } catch {
      // Its sender died while it wrote: nothing has arrived.
      response.destroy();
    }
  }

  #take(write: Write): boolean {
    const { target, fence } = write;
    const highest = this.#highest.get(target) ?? 0;
    const isAccepted = fence === null || fence >= highest;
    this.#history.write('sink', isAccepted ? 'sink.accepted' : 'sink.refused', { ...write });
    if (!isAccepted) {
      this.refused += 1;
      return false;
    }
    this.accepted += 1;
    this.#highest.set(target, Math.max(highest, fence ?? 0));
    this.#lastMs.set(target, hostMs());
    return true;
  }
}
