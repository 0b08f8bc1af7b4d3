import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Heard {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

/** What is done with a request; it may also not answer, or cut the connection. */
export type Step = (response: ServerResponse, heard: Heard) => void;

/** An HTTP server that does with the first request the first step, with the next the next; with all further ones, the last. */
export class ScriptedServer {
  readonly heard: Heard[] = [];
  /** How many did not wait for the end of their answer. */
  left = 0;
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(...steps: Step[]): Promise<ScriptedServer> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const scripted = new ScriptedServer(server);
    server.on('request', (request, response) => {
      void heardOf(request).then((heard) => {
        scripted.heard.push(heard);
        response.once('close', () => {
          if (!response.writableFinished) scripted.left += 1;
        });
        const step = steps[Math.min(scripted.heard.length, steps.length) - 1];
        step?.(response, heard);
      });
    });
    return scripted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    if (this.#server.listening) await once(this.#server, 'close');
  }
}

async function heardOf(request: IncomingMessage): Promise<Heard> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return {
    ...{ method: request.method ?? '', path: request.url ?? '', headers: request.headers },
    body: text === '' ? null : JSON.parse(text),
  };
}

export function json(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Step {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };
}

/** A problem as the server tells it. */
export function problem(
  status: number,
  name: string,
  headers: Readonly<Record<string, string>> = {},
): Step {
  const code = name.toUpperCase().replaceAll('-', '_');
  const body = { type: `/problems/${name}`, title: 'No', status, detail: 'Because.', code };
  return json(status, body, { 'content-type': 'application/problem+json', ...headers });
}

/** The connection is cut, and nobody knows what came of it. */
export const cut: Step = (response) => response.destroy();

/** No answer, ever. */
export const silence: Step = () => {};

/** Pieces of an event stream, as they are sent; then it is left open, ended, or cut. */
export function stream(
  pieces: readonly (string | Uint8Array)[],
  end: 'open' | 'ended' | 'cut' = 'open',
): Step {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (i: number): void => {
      const piece = pieces[i];
      // Each in a packet of its own: the next only when the kernel has this one.
      if (piece !== undefined) response.write(piece, () => setImmediate(send, i + 1));
      else if (end === 'ended') response.end();
      else if (end === 'cut') response.destroy();
    };
    response.flushHeaders();
    send(0);
  };
}
