import type { Call } from '../store/store.ts';
import type { HeldReply } from '../store/stream-store.ts';
import type { Settlement, WorkflowStore } from '../store/workflow-store.ts';
import type { Attempt, Ending } from './attempt.ts';

interface Waiting {
  readonly settlement: Settlement;
  resolve(reply: HeldReply): void;
  reject(error: unknown): void;
}

/** Outcomes in one request. */
const BATCH = 200;

/** Brings outcomes in, one request at a time: those that come up meanwhile go together in the next. */
export class Settling {
  readonly #parts: { workflows: WorkflowStore; target: string; call: Call };
  readonly #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(parts: { workflows: WorkflowStore; target: string; call: Call }) {
    this.#parts = parts;
  }

  settle(settlement: Settlement): Promise<HeldReply> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ settlement, resolve, reject });
      if (this.#isRunning) return;
      this.#isRunning = true;
      // Those of the same turn go along.
      queueMicrotask(() => void this.#runAll());
    });
  }

  async #runAll(): Promise<void> {
    while (this.#waiting.length > 0) await this.#send(this.#waiting.splice(0, BATCH));
    this.#isRunning = false;
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const { workflows, target, call } = this.#parts;
    try {
      const settlements = batch.map(({ settlement }) => settlement);
      const replies = await workflows.settle(target, settlements, call);
      for (const [i, { resolve }] of batch.entries()) resolve(replies[i] ?? 'gone');
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

/** What the store is told of an attempt: its result, or that it is to be tried again, if it may be. */
export function settlementOf(
  { workflow, fence, tries }: Attempt,
  ending: Ending,
  { mostTries, backoffMs }: { readonly mostTries: number; backoffMs(): number },
): Settlement {
  if (ending.kind === 'succeeded')
    return { workflow, fence, outcome: 'succeeded', value: ending.value };
  const { failure, isFinal } = ending;
  if (isFinal) return { workflow, fence, outcome: 'failed', value: failure };
  if (tries < mostTries) return { workflow, fence, outcome: 'retry', afterMs: backoffMs() };
  return { workflow, fence, outcome: 'dead', value: failure, reason: failure.message };
}
