import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const TASK_DEADLINE_MS = 30_000;

/** A process that is given tasks over the IPC channel, one message each; `answerTasks` is its other side. */
export class TaskProcess {
  #process;
  #asked = new Map();
  #lastId = 0;

  /** `file` is beside this one. */
  constructor(name, file, args) {
    this.name = name;
    this.#process = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
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
  ask(task, facts = {}, { withinMs = TASK_DEADLINE_MS } = {}) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const what = `${this.name} did not finish '${task}' within ${withinMs} ms`;
      const late = () => this.#settle(id, () => reject(new Error(what)));
      this.#asked.set(id, { resolve, reject, timer: setTimeout(late, withinMs) });
      this.#process.send({ id, task, facts }, (error) => {
        if (error) this.#settle(id, () => reject(error));
      });
    });
  }

  get pid() {
    return this.#process.pid;
  }

  /** Kills it: nothing is handed over or cleaned up there. */
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

/**
 * In the process itself: does what it is told, `{ id, task, facts }`, and answers `{ id, result }` or `{ id, error }`. Each
 * task is given what `open` resolved with, and the facts.
 */
export function answerTasks(tasks, open) {
  let opened = null;
  process.on('message', async ({ id, task, facts }) => {
    try {
      opened ??= open();
      process.send({ id, result: await tasks[task](await opened, facts) });
    } catch (error) {
      process.send({ id, error: error?.stack ?? String(error) });
    }
  });
  // The bench has ended, however it did.
  process.once('disconnect', () => process.exit());
}
