import { monotonicMs } from './statistics.mjs';

/** What the pipelines of a worker do: they note when they begin and end, and last until they are told to end. */
export class Stage {
  /** When each session's began, and how to end it. */
  #running = new Map();
  #begun = new Map();
  #waiting = new Map();
  lastBeginMs = 0;
  lastEndMs = 0;

  /** For a worker, as the function that runs for a session. */
  pipeline = async ({ id }, { signal }) => {
    const atMs = monotonicMs();
    this.lastBeginMs = atMs;
    this.#begun.set(id, atMs);
    this.#waiting.get(id)?.(atMs);
    this.#waiting.delete(id);
    await new Promise((end) => {
      this.#running.set(id, end);
      signal.addEventListener('abort', end, { once: true });
    });
    this.#running.delete(id);
    this.lastEndMs = monotonicMs();
  };

  get running() {
    return this.#running.size;
  }

  /** How many have begun. */
  get begun() {
    return this.#begun.size;
  }

  /** Resolves with the moment at which it began. */
  whenBegun(id) {
    const atMs = this.#begun.get(id);
    if (atMs !== undefined) return Promise.resolve(atMs);
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  /** Ends one; when that was. */
  end(id) {
    const atMs = monotonicMs();
    this.#running.get(id)();
    return atMs;
  }
}
