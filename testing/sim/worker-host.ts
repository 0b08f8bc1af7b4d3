/** The machine as one simulated process sees it: its id, and which processes live there. */
import type { Host, HostLock } from '../../src/worker/supervisor/host.ts';
import type { SimProcess } from './host.ts';

/** What a process has started may keep its locks for up to this long after it is gone. */
const LINGERS_MOST_MS = 300;

export class SimWorkerHost implements Host {
  readonly id: string;
  readonly self: string;
  readonly #process: SimProcess;
  readonly #lingersMs: number;

  /** `id`: its machine's, which no other has. */
  constructor(process: SimProcess, id: string) {
    this.#process = process;
    this.id = id;
    this.self = process.name;
    this.#lingersMs = process.random.next() * LINGERS_MOST_MS;
  }

  isAlive(self: string): boolean {
    return [...this.#process.host.processes].some(({ name }) => name === self);
  }

  lock(name: string): Promise<HostLock | null> {
    const { locks } = this.#process.host;
    const holder = locks.get(name);
    if (holder !== undefined && !this.#isOver(holder)) return Promise.resolve(null);
    locks.set(name, this.#process);
    const close = () => {
      if (locks.get(name) === this.#process) locks.delete(name);
    };
    return Promise.resolve({ fd: -1, close });
  }

  /** What its pipelines start is gone with its process. */
  endGroup(): Promise<boolean> {
    return Promise.resolve(true);
  }

  #isOver({ diedMs }: SimProcess): boolean {
    return diedMs !== null && this.#process.trueMs >= diedMs + this.#lingersMs;
  }
}
