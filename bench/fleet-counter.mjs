import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { scripts } from '../dist/store/redis/scripts.js';

/** Name, script and number of keys: what is kept of a command. */
const HEAD_ARGS = 3;
const CR = 13;

const verbOf = new Map(
  Object.values(scripts).flatMap(({ sha, source, operation }) => [
    [sha, operation],
    [source, operation],
  ]),
);

/**
 * Stands before a Redis and counts what clients send it: `{ url, take(), stop() }`, where `take` gives per command, or verb
 * of a script, `{ calls, keys }` since it was last asked.
 */
export async function startCounter({ port }) {
  let counts = new Map();
  const count = (head) => {
    const [name, script, keys] = head;
    const isScript = name.startsWith('EVAL');
    const what = isScript ? (verbOf.get(script) ?? 'a script') : name;
    const known = counts.get(what) ?? { calls: 0, keys: 0 };
    counts.set(what, known);
    known.calls++;
    if (isScript) known.keys += Number(keys);
  };
  const sockets = new Set();
  const server = createServer((client) => {
    const redis = connect({ port, host: '127.0.0.1' });
    const reader = new CommandReader(count);
    client.on('data', (chunk) => reader.feed(chunk));
    client.pipe(redis);
    redis.pipe(client);
    for (const [socket, other] of [
      [client, redis],
      [redis, client],
    ]) {
      sockets.add(socket.setNoDelay(true));
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${server.address().port}`,
    take() {
      const taken = counts;
      counts = new Map();
      return taken;
    },
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Reads commands as clients send them, `*3 $3 SET $1 k $1 v`, and tells of the head of each. */
class CommandReader {
  #onCommand;
  #line = '';
  #argsLeft = 0;
  #head = [];
  /** What is still to come of the argument that is being read, with its line end; 0 while a line is. */
  #bytesLeft = 0;
  #text = null;

  constructor(onCommand) {
    this.#onCommand = onCommand;
  }

  feed(chunk) {
    for (let at = 0; at < chunk.length; ) {
      if (this.#bytesLeft > 0) {
        const end = Math.min(chunk.length, at + this.#bytesLeft);
        if (this.#text !== null) this.#text += chunk.latin1Slice(at, end);
        this.#bytesLeft -= end - at;
        at = end;
        if (this.#bytesLeft === 0) this.#endArg();
      } else {
        const end = chunk.indexOf('\n', at);
        this.#line += chunk.latin1Slice(at, end < 0 ? chunk.length : end);
        at = end < 0 ? chunk.length : end + 1;
        if (end >= 0) this.#endLine();
      }
    }
  }

  #endLine() {
    const line = this.#line;
    this.#line = '';
    if (line.charCodeAt(line.length - 1) !== CR) throw new Error(`no line of a command: ${line}`);
    const number = Number(line.slice(1, -1));
    if (line[0] === '*') {
      this.#argsLeft = number;
      this.#head = [];
    } else {
      this.#bytesLeft = number + 2;
      this.#text = this.#head.length < HEAD_ARGS ? '' : null;
    }
  }

  #endArg() {
    if (this.#text !== null) this.#head.push(this.#text.slice(0, -2));
    this.#argsLeft--;
    if (this.#argsLeft === 0) this.#onCommand(this.#head);
  }
}
