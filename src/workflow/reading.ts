import type { Call } from '../store/store.ts';
import type { WorkflowSnapshot, WorkflowStore } from '../store/workflow-store.ts';

interface Waiting {
  readonly id: string;
  resolve(found: WorkflowSnapshot | null): void;
  reject(error: unknown): void;
}

/**
 * Asks how workflows are, one request at a time: those that are asked about meanwhile go together in the next. A process that holds
 * many of them hears of many results at once, and each may mean that something else has happened.
 */
export class Reading {
  readonly #workflows: WorkflowStore;
  readonly #call: Call;
  #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(workflows: WorkflowStore, call: Call) {
    this.#workflows = workflows;
    this.#call = call;
  }

  /** How it is at some moment from now on; null if there is none. */
  read(id: string): Promise<WorkflowSnapshot | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, resolve, reject });
      if (!this.#isRunning) void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      await this.#readAll(batch);
    }
    this.#isRunning = false;
  }

  async #readAll(batch: readonly Waiting[]): Promise<void> {
    try {
      const ids = [...new Set(batch.map(({ id }) => id))];
      const all = await this.#workflows.read(ids, this.#call);
      const found = new Map(ids.map((id, i) => [id, all[i] ?? null]));
      for (const { id, resolve } of batch) resolve(found.get(id) ?? null);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
