import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const CHILD = fileURLToPath(new URL('./child.mjs', import.meta.url));
const TASK_DEADLINE_MS = 30_000;

/** A contender in a process of its own, and the tasks it is given there; `child.mjs` is the other side. */
export class ContenderProcess {
  #process;
  #asked = new Map();
  #lastId = 0;

  constructor({ name, client }, url) {
    this.name = name;
    this.client = client;
    this.#process = fork(CHILD, [name, client, url], {
      execArgv: ['--expose-gc'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#process.on('message', ({ id, result, error }) => {
      if (error === undefined) this.#settle(id, ({ resolve }) => resolve(result));
      else this.#settle(id, ({ reject }) => reject(new Error(`${name}: ${error}`)));
    });
    this.#process.once('exit', (code, signal) => {
      const ended = new Error(`the process of ${name} ended (${signal ?? code})`);
      for (const id of [...this.#asked.keys()]) this.#settle(id, ({ reject }) => reject(ended));
    });
  }

  /** Has the task done over there, inside a deadline. */
  ask(task, facts = {}) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const what = `${this.name} did not finish '${task}' within ${TASK_DEADLINE_MS} ms`;
      const late = () => this.#settle(id, () => reject(new Error(what)));
      this.#asked.set(id, { resolve, reject, timer: setTimeout(late, TASK_DEADLINE_MS) });
      this.#process.send({ id, task, facts }, (error) => {
        if (error) this.#settle(id, () => reject(error));
      });
    });
  }

  async stop() {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
  }

  #settle(id, how) {
    const asked = this.#asked.get(id);
    if (asked === undefined) return;
    this.#asked.delete(id);
    clearTimeout(asked.timer);
    how(asked);
  }
}
