/** What is polled: a server with a page for each thing, which writes down who asked, and whether two asked for the same at once. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** Long enough for two who poll the same thing to be seen doing it at once. */
const ANSWER_MS = 40;

export class Things {
  /** How often each was asked for, by whom last, and when. */
  polls = new Map();
  overlaps = 0;
  #busy = new Set();
  #server = createServer((request, response) => this.#answer(request, response));

  async serve() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  /** Each that somebody has asked for since, with who did. */
  since(atMs) {
    return [...this.polls].filter(([, poll]) => poll.atMs > atMs);
  }

  async #answer({ url, headers }, response) {
    const thing = url.slice(1);
    if (this.#busy.has(thing)) this.overlaps += 1;
    this.#busy.add(thing);
    const [by] = headers['x-polled-by'].split('/');
    this.polls.set(thing, { by, atMs: performance.now() });
    // Who was killed while it asked does not ask any more.
    response.once('close', () => this.#busy.delete(thing));
    await sleep(ANSWER_MS);
    response.end('ok');
  }
}
