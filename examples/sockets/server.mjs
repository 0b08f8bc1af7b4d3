/**
 * The service that the accounts connect to. It judges: one connection for each account at any time. A client says
 * `hello ACCOUNT FENCE NAME` once, and `beat` from then on.
 */
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

export class Judge {
  /** What should not have happened. */
  faults = [];
  /** The processes that are frozen: the kernel keeps their connections open for them. */
  frozen = new Set();
  #lines = new Map();
  #server = createServer({ allowHalfOpen: true }, (socket) => this.#serve(socket));

  async listen() {
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this.#server.address().port;
  }

  /** The connections that are open, by account. */
  get connected() {
    return [...this.#lines].flatMap(([account, { by, isOpen, beats }]) =>
      isOpen ? [{ account, by, beats }] : [],
    );
  }

  close() {
    this.#server.close();
  }

  #serve(socket) {
    let line = null;
    const over = () => {
      if (line !== null) line.isOpen = false;
      socket.end();
    };
    createInterface({ input: socket }).on('line', (text) => {
      const [word, account, fence, by] = text.split(' ');
      if (word === 'hello') line = this.#hello({ account, fence: Number(fence), by, socket });
      else if (line !== null) this.#beat(line);
    });
    socket.on('end', over).on('close', over).on('error', over);
  }

  #hello(told) {
    const line = { ...told, isOpen: true, beats: 0 };
    const before = this.#lines.get(line.account);
    if (before?.isOpen && !this.frozen.has(before.by))
      this.faults.push(`${line.account}: ${before.by} and ${line.by} were connected at once`);
    if (before !== undefined && before.fence >= line.fence)
      this.faults.push(`${line.account}: ${line.by} came with an old fence`);
    // What a real service does with the connection of a frozen client: the newer one wins.
    if (before?.isOpen) before.socket.destroy();
    this.#lines.set(line.account, line);
    return line;
  }

  #beat(line) {
    line.beats++;
    if (this.#lines.get(line.account) !== line)
      this.faults.push(`${line.account}: ${line.by} spoke after another had taken over`);
  }
}
